#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# ingot export: the original files, or one safetensors file.

load common

# header FILE: the names and dtypes of a safetensors file, in the order of its data.
header() {
    "$PYTHON" -c '
import json, struct, sys
f = open(sys.argv[1], "rb")
h = json.loads(f.read(struct.unpack("<Q", f.read(8))[0]))
h.pop("__metadata__", None)
for n, e in sorted(h.items(), key=lambda x: (x[1]["data_offsets"], x[0])):
    print(n, e["dtype"], e["shape"])' "$1"
}

@test "export: every kind of source comes back byte for byte" {
    fx p3 p3
    fx p3s p3s
    fx llama llama bias
    fx llama moe moe
    fx llama tied tied
    fx b04 shadow bytes 2
    for m in p3 p3s llama moe tied shadow; do
        ingot convert -q $m
        round_trip $m $m
        if has_numpy; then
            rm -rf second
            "$PYTHON" "$srcdir/tests/interop/packread.py" export "$(pack $m)" second
            diff -r $m second
        fi
    done
}

@test "export: nothing is written over" {
    fx p3 m
    ingot convert -q m
    mkdir full empty
    echo mine >full/config.json
    reject 3 full -- ingot export m full
    [ "$(ls full)" = config.json ] && [ "$(cat full/config.json)" = mine ]
    ingot export m empty
    diff -r m empty
    echo mine >file
    reject 3 file -- ingot export m file
    reject 3 file -- ingot export --safetensors file m
    [ "$(cat file)" = mine ]
}

@test "export: a damaged pack gives no folder" {
    fx p3 m
    ingot convert -q m
    patch "$(pack m)" 70000
    run --separate-stderr ingot export m out
    [ "$status" -eq 1 ]
    one_error_line
    grep -q model.safetensors <<<"$stderr"
    [ ! -e out ]
    [ -z "$(find . -maxdepth 1 -name '.*' ! -name .)" ]
}

@test "export: one safetensors file, and the content digest stays" {
    fx llama m moe
    fx b04 shadow bytes 2
    for x in m shadow; do
        ingot convert -q $x
        ingot export --safetensors $x.safetensors $x
        accept -- ingot convert -n $x-merged $x.safetensors
        [ "$(content $x-merged)" = "$(content $x)" ]
    done
    [ "$(header m.safetensors | sort)" = "$(header m/model.safetensors | sort)" ]
}

@test "export: folder and file at once" {
    fx p3s m
    ingot convert -q m
    ingot export --safetensors all.safetensors m out
    diff -r m out
    [ "$(header all.safetensors | wc -l)" = 15 ]
}

@test "export: a derived pack as canonical safetensors" {
    src=$(model phi3-pocket)
    ingot convert -q --dtype bf16 -n d "$src"
    ingot export d out
    cmp "$src/config.json" out/config.json
    cmp "$src/tokenizer.model" out/tokenizer.model
    [ "$(for f in out/*.safetensors; do header "$f"; done | awk '{ print $1 }' | sort)" = \
        "$(for f in "$src"/*.safetensors; do header "$f"; done | awk '{ print $1 }' | sort)" ]
    [ "$(for f in out/*.safetensors; do header "$f"; done | awk '{ print $2 }' | sort -u)" = BF16 ]
    accept -- ingot convert -n e out
    [ "$(content e)" = "$(content d)" ]
}

@test "export: wrong command lines" {
    fx p3 m
    ingot convert -q m
    for args in "" "m" "a b c"; do
        # shellcheck disable=SC2086
        run --separate-stderr ingot export $args
        [ "$status" -eq 2 ] || flunk "'$args': $status"
    done
    reject 3 nothing -- ingot export nothing out
    [ ! -e out ]
}
