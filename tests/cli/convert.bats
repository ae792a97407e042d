#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# ingot convert: what it makes of good input.

load common

REV=5555555555555555555555555555555555555555

@test "convert: the digest is fs-verity's, and the file's name" {
    fx p3 m
    accept -- ingot convert m
    d=$(digest m)
    [[ $d =~ ^fsverity-sha256:[0-9a-f]{64}$ ]]
    grep -Eq "^m +$d\$" <<<"$output"
    p=$(pack m)
    [ "$(stat -c %a "$p")" = 444 ]
    if has_numpy; then
        [ "$("$PYTHON" "$srcdir/tests/interop/packread.py" digest "$p")" = "$d" ]
    fi
    command -v fsverity >/dev/null || skip "the rest needs fsverity"
    [ "$(fsverity digest --compact "$p")" = "${d#*:}" ]
}

@test "convert: the tree beside the pack is what fsverity writes" {
    command -v fsverity >/dev/null || skip "needs fsverity"
    ingot convert -q "$(model phi3-pocket)"
    p=$(pack phi3-pocket)
    [ -f "${p%.ingot}.tree" ]
    fsverity digest --out-merkle-tree=tree "$p" >/dev/null
    cmp tree "${p%.ingot}.tree"
    if has_numpy; then
        "$PYTHON" "$srcdir/tests/interop/packread.py" check "$p" --tree "${p%.ingot}.tree"
    fi
}

@test "convert: the pocket models, both ways, and again" {
    for m in phi3-pocket phi4-pocket; do
        accept -- ingot convert "$(model $m)"
        round_trip "$(model $m)" $m
        d=$(digest $m)
        accept -- ingot convert "$(model $m)"
        [ "$(digest $m)" = "$d" ]
    done
}

@test "convert: golden digests of rules 1" {
    ingot convert -q --rules 1 "$(model phi3-pocket)"
    ingot convert -q --rules 1 "$(model phi4-pocket)"
    [ "$(digest phi3-pocket)" = \
        fsverity-sha256:b377b3eca0e2cae65965a8c7107edf7e8e2a5411ea1b6e6f64b6ef41eafea6b1 ]
    [ "$(digest phi4-pocket)" = \
        fsverity-sha256:be654d4c8d62c3b4ab270516a734b75265f284f9ca39983ea5281390391838df ]
}

@test "convert: the same bytes with any number of threads, from any place" {
    src=$(model phi3-pocket)
    ingot convert -q -n a "$src"
    for n in 1 2 3 7 16; do
        ingot convert -q --threads $n -n a "$src"
    done
    cp -r "$src" elsewhere
    touch elsewhere/*
    (cd elsewhere && INGOT_STORE=../store ingot convert -q -n b .)
    ingot convert -q -n c "$src/"
    ingot convert -q -n d --rules 1 "$src"
    [ "$(find "$INGOT_STORE/packs" -name '*.ingot' | wc -l)" = 1 ]
}

@test "convert: names from the folder, the cache, or -n" {
    fx p3 'my model'
    run --separate-stderr ingot convert 'my model'
    [ "$status" -eq 0 ] || grep -q -- '-n' <<<"$stderr"
    fx cache hub
    accept -- ingot convert hub/models--acme--tiny
    digest acme/tiny
    accept -- ingot convert hub/models--acme--tiny/snapshots/$REV
    accept -- ingot convert -n other/name hub/models--acme--tiny
    [ "$(digest other/name)" = "$(digest acme/tiny)" ]
    for bad in '../x' 'a//b' '/abs' 'a/b/c/d/e' 'deadbeef' 'x.ingot' 'a:b' 'a@b' '' '-x'; do
        run --separate-stderr ingot convert "--name=$bad" hub/models--acme--tiny
        [ "$status" -eq 2 ] || [ "$status" -eq 3 ] || flunk "name '$bad': $status"
        one_error_line
    done
}

@test "convert: a cache and a plain copy of it give one pack" {
    fx cache hub
    ingot convert -q -n a hub/models--acme--tiny
    cp -rL hub/models--acme--tiny/snapshots/$REV plain
    ingot convert -q -n b plain
    [ "$(digest a)" = "$(digest b)" ]
}

@test "convert: several snapshots" {
    fx cache two two
    accept -- ingot convert two/models--acme--tiny
    fx cache noref noref
    reject 3 snapshot refs/main -- ingot convert noref/models--acme--tiny
}

@test "convert: a name is not turned to another digest unasked" {
    fx p3 m
    fx llama n
    ingot convert -q -n x m
    d=$(digest x)
    reject 3 '\<x\>' 'force|-f' -- ingot convert -n x n
    [ "$(digest x)" = "$d" ]
    accept -- ingot convert -f -n x n
    [ "$(digest x)" != "$d" ]
}

@test "convert: one file as the source" {
    accept -- ingot convert -n shard "$(model phi3-pocket)/model-00001-of-00002.safetensors"
    ingot export shard out
    cmp out/model-00001-of-00002.safetensors \
        "$(model phi3-pocket)/model-00001-of-00002.safetensors"
    [ "$(ls out)" = model-00001-of-00002.safetensors ]
}

@test "convert: what is taken, and what is listed as not taken" {
    fx extras m
    accept -- ingot convert --json m
    report=$output
    grep -q model.onnx <<<"$report$stderr"
    grep -q model.gguf <<<"$report$stderr"
    ingot export m out
    rm -r m/.git m/.cache m/model.onnx m/model.gguf
    diff -r m out
}

@test "convert: the report for programs" {
    fx p3s m
    run --separate-stderr ingot convert --json m
    [ "$status" -eq 0 ]
    [ "$(json 'd["name"]' <<<"$output")" = m ]
    [ "$(json 'd["digest"]' <<<"$output")" = "$(digest m)" ]
    [ "$(json 'd["content"]' <<<"$output")" = "$(content m)" ]
    [ "$(json 'd["tensors"]' <<<"$output")" = 15 ]
    [ "$(json 'd["bytes"] > 0' <<<"$output")" = true ]
    [ "$(json 'len(d["sources"])' <<<"$output")" = 2 ]
    [ "$(json 'd["sources"][0]["sha256"]' <<<"$output")" = \
        "$(sha256sum <m/model-00001-of-00002.safetensors | cut -d' ' -f1)" ]
    [ "$(json 'd["warnings"]' <<<"$output")" = '[]' ]
    [ "$(realpath "$(json 'd["pack"]' <<<"$output")")" = "$(realpath "$(pack m)")" ]
}

@test "convert: an error for programs" {
    fx a05 m 1
    run --separate-stderr ingot convert --json m
    [ "$status" -eq 3 ]
    [ "$(json 'd["error"]["status"]' <<<"$output")" = bad_input ]
    [ "$(json 'd["error"]["tensor"]' <<<"$output")" = lm_head.weight ]
    grep -q model-00002 <<<"$(json 'd["error"]["file"]' <<<"$output")"
}

@test "convert: groups of q k v, gate up and experts" {
    for kind in "" bias moe; do
        # shellcheck disable=SC2086
        fx llama "m$kind" $kind
        accept -- ingot convert "m$kind"
        round_trip "m$kind" "m$kind"
    done
    name=model.layers.1.self_attn.qkv_proj.weight
    [ "$(tensors m "[t['shape'] for t in d['tensors'] if t['name'] == '$name']")" = \
        '[[128, 64]]' ]
    name=model.layers.0.mlp.gate_up_proj.weight
    [ "$(tensors m "[t['view'] for t in d['tensors'] if t['name'] == '$name']")" = '[true]' ]
    name=model.layers.0.self_attn.qkv_proj.bias
    [ "$(tensors mbias "[t['shape'] for t in d['tensors'] if t['name'] == '$name']")" = '[[128]]' ]
    name=model.layers.0.mlp.experts.gate_up_proj.weight
    [ "$(tensors mmoe "[t['shape'] for t in d['tensors'] if t['name'] == '$name']")" = \
        '[[4, 192, 64]]' ]
    name=model.layers.0.mlp.experts.down_proj.weight
    [ "$(tensors mmoe "[t['shape'] for t in d['tensors'] if t['name'] == '$name']")" = \
        '[[4, 64, 96]]' ]
}

@test "convert: block scales group only where the blocks fit" {
    fx blocks fits 128
    fx blocks ragged 200
    accept -- ingot convert fits
    accept -- ingot convert ragged
    name=model.layers.0.self_attn.qkv_proj.weight
    [ "$(tensors fits "sorted(t['name'] for t in d['tensors'] if t['view'])")" = \
        "[\"$name\", \"${name}_scale_inv\"]" ]
    [ "$(tensors ragged "[t['name'] for t in d['tensors'] if t['view']]")" = "[\"$name\"]" ]
}

@test "convert: --dtype from the folder and from the pack are one pack" {
    src=$(model phi3-pocket)
    ingot convert -q "$src"
    for t in bf16 f32; do
        accept -- ingot convert --dtype $t -n a-$t "$src"
        accept -- ingot convert --dtype $t -n b-$t phi3-pocket
        [ "$(digest a-$t)" = "$(digest b-$t)" ]
    done
    # F16 to F32 and back loses nothing
    accept -- ingot convert --dtype f16 -n back a-f32
    [ "$(content back)" = "$(content phi3-pocket)" ]
    # there is nothing to convert: the content is that of the source
    accept -- ingot convert --dtype f16 -n same "$src"
    [ "$(content same)" = "$(content phi3-pocket)" ]
}

@test "convert: wrong command lines" {
    for args in "" "a b" "--dtype f8 m" "--rules 2 m" "--threads x m" "--no-such m"; do
        # shellcheck disable=SC2086
        run --separate-stderr ingot convert $args
        [ "$status" -eq 2 ] || flunk "'$args': $status"
    done
    [ -z "$(store_state)" ]
}

@test "convert: pipes and devices are refused" {
    fx p3 m
    mkfifo m/pipe
    run --separate-stderr timeout 10 "$INGOT" convert m
    [ "$status" -eq 0 ] || [ "$status" -eq 3 ]
    rm m/model.safetensors
    mkfifo m/model.safetensors
    reject 3 model.safetensors -- timeout 10 "$INGOT" convert m
}

@test "convert: file names that are not UTF-8 are refused" {
    fx p3 m
    : >m/$'a\xffb'
    reject 3 UTF-8 -- ingot convert m
}

@test "convert: full standard output is an error" {
    [ -w /dev/full ] || skip "no /dev/full"
    fx p3 m
    full() { "$INGOT" convert m >/dev/full; }
    run --separate-stderr full
    [ "$status" -eq 4 ]
}

@test "convert: a source, a store and an export whose paths are not UTF-8" {
    fx p3 m
    odd=$PWD/$'odd \xff\n'
    mkdir "$odd"
    cp -R m "$odd/m"
    INGOT_STORE=$odd/store
    export INGOT_STORE
    accept -- ingot convert --json "$odd/m"
    for command in "verify --json m" "verify --json --all" "show --json m" "ls --json" "find --json --tensor model.norm.weight"; do
        # shellcheck disable=SC2086  # words on purpose
        run --separate-stderr ingot $command
        [ "$status" -eq 0 ]
        json 1 <<<"$output"
    done
    run --separate-stderr ingot export --json m "$odd/out"
    [ "$status" -eq 0 ]
    diff -r m "$odd/out"
    run --separate-stderr ingot export --json m "$odd/out"
    [ "$status" -eq 3 ]
    [ "$(wc -l <<<"$stderr")" -eq 1 ]
    json 1 <<<"$output"
}

@test "convert: an index that names more missing files than a message holds" {
    fx p3 many
    "$PYTHON" - many/model.safetensors.index.json <<'END'
import json, sys
names = {f"t{i}": f"{i:06}-{'x' * 200}.safetensors" for i in range(30000)}
json.dump({"weight_map": names}, open(sys.argv[1], "w"))
END
    run --separate-stderr timeout 20 "$INGOT" convert many
    [ "$status" -eq 3 ]
    one_error_line
    grep -q "0 of 30000 shards found" <<<"$stderr"
}
