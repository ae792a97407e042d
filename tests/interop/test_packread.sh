#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The second reader on packs of many kinds: it accepts them, agrees on their digest, rebuilds the
# files, and refuses each of them with a byte changed anywhere.  Speaks TAP.
# Environment: INGOT, srcdir, PYTHON (with numpy).
set -euo pipefail

srcdir=$(cd "${top_srcdir:-${srcdir:-$(dirname "$0")/../..}}" && pwd)
INGOT=$(realpath "${INGOT:-${top_builddir:-.}/ingot}")
PYTHON=${PYTHON:-python3}
"$PYTHON" -c 'import numpy' 2>/dev/null ||
    { echo "1..0 # SKIP $PYTHON has no numpy"; exit 0; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
export INGOT_STORE=$work/store

count=0
ok() {
    count=$((count + 1))
    echo "ok $count - $*"
}

read_pack() {
    "$PYTHON" "$srcdir/tests/interop/packread.py" "$@"
}

fx() {
    "$PYTHON" "$srcdir/tests/fixtures.py" "$@"
}

one() {
    local name=$1 src=$2 digest pack tree
    digest=$("$INGOT" convert -n "$name" "$src" 2>/dev/null | awk '{ print $2 }')
    pack=store/packs/${digest#*:}.ingot
    tree=${pack%.ingot}.tree
    if [ -e "$tree" ]; then set -- --tree "$tree"; else set --; fi
    [ "$(read_pack check "$pack" "$@")" = "$digest" ] || { echo "# $name: other digest"; exit 1; }
    [ "$(read_pack digest "$pack")" = "$digest" ]
    read_pack export "$pack" "out-$name"
    diff -r "$src" "out-$name"
    rm -r "out-$name"
    ok "pack of $name"
}

"$PYTHON" - "$srcdir/tests/interop" <<'END'
import sys
sys.path.insert(0, sys.argv[1])
import xxh3
WANT = [(0, "99aa06d3014798d86001c324468d497f"),
        (1, "a6cd5e9392000f6ac44bdff4074eecdb"),
        (3, "656e81c56e41fe02c3489259e968ad9e"),
        (4, "ab5c3e7474d809db81a65295de8e7dde"),
        (8, "e4b9dd0b66ff3c50ebabbd0695002ff6"),
        (9, "82ddc95bc76007671c69c3f04aaed08c"),
        (16, "ddf6c1254d70f76794eaa17b20756f46"),
        (17, "263f67af63088041735fe434ded90c3c"),
        (128, "dd9e5aa9bd51cc9cc6bd21ecc865f29f"),
        (129, "00433635cf8d872e7f4accb76587485b"),
        (240, "89e3a0a2ee355d25d10beb4e0599e4b3"),
        (241, "75f4da43f23cce5a541b19226f0052e8"),
        (1024, "8bbb9f7af37f2f52dc5acf0b043c445b"),
        (1025, "20609de0583fad86e1d9cd946277ae26"),
        (65536, "b084f8868341a84a0563d19d53652969"),
        (70000, "ae63055728a0366bca0ee3680cd64c48")]
data = bytes(i * 7 & 255 for i in range(70000))
for n, want in WANT:
    assert xxh3.xxh3_128(data[:n]).hex() == want, n
assert xxh3.xxh3_128_spans(data, 65536) == xxh3.xxh3_128(data[:65536]) + xxh3.xxh3_128(data[65536:])
END
ok "XXH3 gives what the xxHash library gives"

for m in phi3-pocket phi4-pocket; do one $m "$srcdir/tests/models/$m"; done
fx p3 p3 && one p3 p3
fx p3s p3s && one p3s p3s
fx llama llama bias && one llama llama
fx llama moe moe bias && one moe moe
fx llama tied tied && one tied tied
fx b04 shadow bytes 2 && one shadow shadow
fx blocks fits 128 && one fits fits
fx blocks ragged 200 && one ragged ragged
fx small tiny 1 && one tiny tiny
fx small page 4096 && one page page
fx a15 empty matrix && one empty empty
fx e01 names && one names names
for v in scalar row block; do fx g10 $v $v && one fp8-$v $v; done

for seed in $(seq 20); do
    rm -rf zoo
    fx zoo zoo "$seed"
    one zoo zoo
    "$INGOT" rm -q zoo
done

# One changed byte anywhere: refused, with the rule that it breaks.
digest=$("$INGOT" convert -n flip shadow 2>/dev/null | awk '{ print $2 }')
cp "store/packs/${digest#*:}.ingot" flip.ingot
chmod u+w flip.ingot
"$PYTHON" - flip.ingot "$srcdir/tests/interop" <<'END'
import random
import sys
sys.path.insert(0, sys.argv[2])
import packread
good = packread.check(sys.argv[1])
data = bytearray(open(sys.argv[1], "rb").read())
r = random.Random(11)
places = [0, 9, 33, 79, 80, 4095, 5000] + [r.randrange(len(data)) for _ in range(80)]
for at in places:
    data[at] ^= 1 << at % 8
    with open(sys.argv[1], "wb") as f:
        f.write(data)
    try:
        packread.check(sys.argv[1])
        sys.exit(f"byte {at} was changed, and nothing was found")
    except (packread.Bad, ValueError, KeyError):
        pass
    data[at] ^= 1 << at % 8
END
ok "changed bytes are found"
echo "1..$count"
