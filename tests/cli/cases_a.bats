#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Trouble with the safetensors container.  Unit tests exhaust the parser; these go through the
# program.

load common

@test "A01 one shard is a Git-LFS pointer" {
    fx a01 m 2
    oid=$(sed -n 's/^oid sha256://p' m/model-00002-of-00002.safetensors)
    size=$(sed -n 's/^size //p' m/model-00002-of-00002.safetensors)
    reject 3 'git[- ]lfs' model-00002-of-00002.safetensors "$oid" "$size" -- ingot convert m
}

@test "A01 all pointers are listed in one run" {
    fx a01 m 1 2 tokenizer
    reject 3 'git[- ]lfs' model-00001-of-00002 model-00002-of-00002 tokenizer.json \
        -- ingot convert m
}

@test "A01 only tokenizer.json is a pointer" {
    fx a01 m tokenizer
    reject 3 'git[- ]lfs' tokenizer.json -- ingot convert m
}

@test "A03 a zip named model.safetensors" {
    fx a03 m zip
    reject 3 model.safetensors zip pickle '!header' -- ingot convert m
}

@test "A03 a pickle named model.safetensors" {
    fx a03 m pickle
    reject 3 model.safetensors pickle '!header' -- ingot convert m
}

# cut WORD TENSOR: a shard shortened so that TENSOR is the first one affected.
cut_shard() {
    fx a05 "m$1" "$1"
    fx p3s whole
    local file=model-00002-of-00002.safetensors
    reject 3 "$file" "$(stat -c %s whole/$file)" "$(stat -c %s "m$1/$file")" "$2" \
        -- ingot convert "m$1"
}

@test "A05 data shorter by one byte" {
    cut_shard 1 lm_head.weight
}

@test "A05 data shorter by two bytes" {
    cut_shard 2 lm_head.weight
}

@test "A05 data shorter by the last tensor" {
    cut_shard last lm_head.weight
}

@test "A05 no data at all" {
    cut_shard all model.layers.1.input_layernorm.weight
}

@test "A05 verify of a pack cut short" {
    fx p3s m
    ingot convert -q m
    p=$(pack m)
    size=$(stat -c %s "$p")
    cp "$p" whole
    for keep in $((size - 1)) $((size - 2)) $((size - 4096)) 70000 4096 100 0; do
        cp whole cut.ingot
        truncate -s "$keep" cut.ingot
        run --separate-stderr ingot verify --self ./cut.ingot
        echo "$keep: $status $output $stderr"
        [ "$status" -eq 1 ]
        grep -q "$keep" <<<"$output$stderr"
    done
}

@test "A06 header lengths around every plausible read size" {
    lengths=$({ seq 4087 4097; seq 65527 65537; seq 99990 100008; seq 1048567 1048577; })
    for n in $lengths; do
        fx a06 "m$n" "$n"
        ingot convert -q "m$n"
        round_trip "m$n" "m$n"
    done
    verified
    [ "$(for n in $lengths; do tensors "m$n"; done | sort -u | wc -l)" = 1 ]
}

@test "A06 half a header" {
    fx a06 m half
    n=$(stat -c %s m/model.safetensors)
    reject 3 model.safetensors header "$n" -- ingot convert m
}

@test "A07 one byte after the last tensor" {
    fx a07 m byte
    reject 3 model.safetensors '\<1 byte' 'after|beyond|past' '!truncated' -- ingot convert m
}

@test "A07 text after the last tensor" {
    fx a07 m text
    reject 3 '\<34 bytes' 'after|beyond|past' '!truncated' -- ingot convert m
}

@test "A07 a zip archive after the last tensor" {
    fx a07 m zip
    reject 3 'after|beyond|past' '!truncated' -- ingot convert m
}

@test "A08a 1,300,000 tensors" {
    skip_unless_slow
    fx a08 m a
    accept -- ingot convert -n many m
    [ "$(stat -c %s "$(pack many)")" -lt 1000000000 ]
    ingot convert -q -n again m
}

@test "A08b a header of 132,000,000 bytes" {
    skip_unless_slow
    fx a08 m b
    n=$(od -An -t u8 -N 8 m/model.safetensors)
    [ "$n" -gt 130000000 ]
    reject 3 100000000 "\\<${n// /}\\>" max-header -- ingot convert m
    accept -- ingot convert --max-header 200000000 m
}

@test "A08c a header of exactly 100,000,000 bytes" {
    fx a08 m c
    accept -- ingot convert m
}

@test "A08d a header of one byte more, and the option" {
    fx a08 m d
    reject 3 100000000 100000001 max-header -- ingot convert m
    ingot convert -q --max-header 100000001 m
    ingot verify m
}

@test "A09 header lengths that wrap or are absurd" {
    for n in max wrap '2^63' '2^63-1' '2^32' size size-7 0 1; do
        fx a09 "m$n" "$n"
        reject 3 model.safetensors 'header|offset 9' -- ingot convert "m$n"
    done
}

@test "A09 an absurd header length takes no memory" {
    ! has_sanitizer || skip "a sanitizer needs memory of its own"
    fx small good
    fx a09 m '2^32'
    good=$(peak "$INGOT" convert -q good)
    run --separate-stderr peak "$INGOT" convert m
    [ "$status" -eq 3 ]
    echo "good $good KiB, absurd $output KiB"
    [ "$output" -lt $((good + 1024)) ]
}

@test "A10 headers that leave the data unaligned" {
    for n in 8 1 2 3 4; do
        fx a10 "m$n" "$n"
        accept -- ingot convert "m$n"
        round_trip "m$n" "m$n"
        [ "$(tensors "m$n")" = "$(tensors m8)" ]
        [ "$(content "m$n")" = "$(content m8)" ]
    done
}

@test "A10 tensors at odd offsets, in two header orders" {
    fx a10 b b
    fx a10 c c
    fx a10-aligned aligned
    for m in b c aligned; do
        accept -- ingot convert $m
        round_trip $m $m
    done
    [ "$(tensors b)" = "$(tensors aligned)" ]
    [ "$(tensors c)" = "$(tensors aligned)" ]
    [ "$(content b)" = "$(content aligned)" ]
    run tensors b 'all(t["offset"] % 256 == 0 for t in d["tensors"])'
    [ "$output" = true ]
}

@test "A11 the same name twice" {
    for v in a b c d; do
        fx a11 m$v $v
        reject 3 'duplicate key' '\<w\>' '!u0077' -- ingot convert m$v
    done
}

@test "A11 a key twice inside an entry, and metadata twice" {
    fx a11 e e
    reject 3 'duplicate key' dtype -- ingot convert e
    fx a11 f f
    reject 3 'duplicate key' __metadata__ -- ingot convert f
}

@test "A11 one emoji, raw and as a surrogate pair" {
    fx a11 m emoji
    reject 3 'duplicate key' -- ingot convert m
}

@test "A12 overlaps name both tensors" {
    for v in a b; do
        fx a12 m$v $v
        reject 3 overlap '\<u\>' '\<v\>' -- ingot convert m$v
    done
}

@test "A12 uncovered bytes are given as a range" {
    fx a12 c c
    reject 3 '\<8\>' '\<16\>' -- ingot convert c
    fx a12 d d
    reject 3 '\<0\>' '\<8\>' -- ingot convert d
}

@test "A12 begin after end, and end past the file" {
    fx a12 e e
    reject 3 '\<u\>' -- ingot convert e
    fx a12 f f
    reject 3 '\<v\>' -- ingot convert f
}

@test "A12 entries listed backwards are fine" {
    fx a12 g g
    accept -- ingot convert g
    round_trip g g
}

@test "A13 names that are refused" {
    for v in nul empty surrogate utf8 overlong; do
        fx a13 m$v $v
        reject 3 model.safetensors -- ingot convert m$v
    done
}

@test "A13 odd names are accepted, kept apart and printed escaped" {
    for v in emoji pair path escape metadata composed; do
        fx a13 m$v $v
        accept -- ingot convert m$v
        round_trip m$v m$v
        run --separate-stderr ingot show --tensors m$v
        [ "$status" -eq 0 ]
        [ "$(tr -d '\n' <<<"$output" | tr -cd '\000-\037\177' | wc -c)" = 0 ]
    done
    [ "$(tensors mpath 'sorted(t["name"] for t in d["tensors"])')" = \
        '["../x", "/etc/x", "a/b"]' ]
    [ "$(tensors mcomposed 'len(d["tensors"])')" = 2 ]
    [ ! -e x ] && [ ! -e "$INGOT_STORE/x" ]
}

@test "A15 zero-size tensors and scalars" {
    for v in first middle last matrix two scalar zero-huge; do
        fx a15 m$v $v
        accept -- ingot convert m$v
        round_trip m$v m$v
    done
    [ "$(tensors mscalar '[t["shape"] for t in d["tensors"] if t["name"] == "s"]')" = '[[]]' ]
    [ "$(tensors mmatrix '[(t["shape"], t["bytes"]) for t in d["tensors"]]')" = '[[[2, 0], 0]]' ]
}

@test "A15 sizes that do not fit their range" {
    for v in bad bad2 missing huge-zero; do
        fx a15 m$v $v
        reject 3 model.safetensors -- ingot convert m$v
    done
}

@test "I public conformance inputs that are accepted" {
    for v in deserialization empty-shapes zero-sized padded leading fp4 extra-key; do
        fx table-i m$v $v
        accept -- ingot convert m$v
        round_trip m$v m$v
    done
}

@test "I public conformance inputs that are refused" {
    for v in incomplete-1 incomplete-2 too-large too-small invalid-length non-utf8 not-json \
        invalid-info overflow-1 overflow-2 json-attack fp4-misaligned fp4-invalid truncated-n liar \
        nan-in-header trailing-comma third-offset float-offset negative unknown-dtype; do
        fx table-i m$v $v
        reject 3 model.safetensors -- ingot convert m$v
    done
}
