#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# ingot show: what it says about a pack.

load common

setup() {
    setup_store
    fx llama m
    ingot convert -q m
}

@test "show: digest, content, sources, for people and for programs" {
    run --separate-stderr ingot show m
    [ "$status" -eq 0 ]
    grep -q "$(digest m)" <<<"$output"
    grep -q "$(content m)" <<<"$output"
    grep -q "tensors only" <<<"$output"
    grep -q "$(sha256sum <m/model.safetensors | cut -d' ' -f1)" <<<"$output"
    grep -q claimed <<<"$output"
    [[ $(content m) =~ ^ingot-content-v1:[0-9a-f]{64}$ ]]
}

@test "show: rows agree with the second reader" {
    has_numpy || skip "needs numpy"
    "$PYTHON" "$srcdir/tests/interop/packread.py" tensors "$(pack m)" |
        awk '{ print $5, $1, $2, $3 }' | sort >theirs
    tensors m '"\n".join(json.dumps(t["name"]) + " " + t["digest"].split(":")[1] + " " + t["dtype"]
        + " " + json.dumps(t["shape"], separators=(",", ":")) for t in d["tensors"])' | sort >ours
    diff theirs ours
}

@test "show: the offset is where the bytes are" {
    ingot convert -q "$(model phi4-pocket)"
    read -r offset bytes < <(tensors phi4-pocket "['%d %d' % (t['offset'], t['bytes'])
        for t in d['tensors'] if t['name'] == 'model.norm.weight'][0]")
    "$PYTHON" - "$(pack phi4-pocket)" "$(model phi4-pocket)/model.safetensors" "$offset" "$bytes" \
        <<'END'
import json, struct, sys
pack, st = (open(name, "rb").read() for name in sys.argv[1:3])
at, n = map(int, sys.argv[3:])
length = struct.unpack("<Q", st[:8])[0]
b, e = json.loads(st[8:8 + length])["model.norm.weight"]["data_offsets"]
assert pack[at:at + n] == st[8 + length + b:8 + length + e]
END
}

@test "show: names for xargs" {
    ingot show -0 --tensors m >names
    [ "$(tr -cd '\0' <names | wc -c)" = "$(tensors m 'len(d["tensors"])')" ]
}

@test "show: the config as it was" {
    ingot show --config m >config
    cmp config m/config.json
    printf '{"model_type":"test","x":[0.0,NaN]}' >odd.json
    fx small s
    cp odd.json s/config.json
    ingot convert -q s
    ingot show --config s | cmp - odd.json
}

@test "show: scales" {
    fx blocks b
    ingot convert -q b
    run --separate-stderr ingot show --scales --json b
    [ "$status" -eq 0 ]
    json 'd' <<<"$output"
    run --separate-stderr ingot show --scales b
    [ "$status" -eq 0 ]
    grep -q 'q_proj.weight_scale_inv' <<<"$output"
    grep -qi multiply <<<"$output"
}

@test "show: weights are not read, the structure is" {
    p=$(pack m)
    patch "$p" 70000
    ingot show m
    patch "$p" 30
    run --separate-stderr ingot show m
    [ "$status" -eq 3 ]
    one_error_line
}
