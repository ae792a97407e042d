#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# What a model means, as far as converting goes.

load common

@test "G01 tied, no lm_head" {
    fx g01 m true
    accept -- ingot convert m
    round_trip m m
    [ "$(tensors m 'len(d["tensors"])')" = 14 ]
}

@test "G01 not tied, no lm_head" {
    fx g01 m false
    reject 3 lm_head.weight tie_word_embeddings -- ingot convert m
}

@test "G01 tied, no embed_tokens" {
    fx g01 m noembed
    reject 3 embed_tokens.weight -- ingot convert m
}

@test "G01 no key, no lm_head: the architecture decides" {
    fx g01 m absent
    reject 3 lm_head.weight -- ingot convert m
}

@test "G01 tied and equal: the bytes are stored once" {
    fx llama tied tied
    fx llama plain
    accept -- ingot convert tied
    round_trip tied tied
    ingot convert -q plain
    [ "$(tensors tied 'sum(t["tied"] for t in d["tensors"])')" = 2 ]
    [ "$(tensors tied 'len({t["offset"] for t in d["tensors"] if t["tied"]})')" = 1 ]
    [ $(($(stat -c %s "$(pack plain)") - $(stat -c %s "$(pack tied)"))) -ge 36864 ]
}

@test "G01 tied by the config, but different bytes: both are kept, and it is said" {
    fx llama m untied-claim
    accept -- ingot convert m
    grep -q lm_head.weight <<<"$stderr"
    [ "$(tensors m 'sum(t["tied"] for t in d["tensors"])')" = 0 ]
    round_trip m m
}

@test "G10 convert copies bits exactly, NaN payloads included" {
    fx g10 m
    accept -- ingot convert m
    round_trip m m
}

@test "G10 out of range for F16: refused with tensor and count" {
    fx g10 m
    reject 3 '\<wide\>' '\<3\>' -- ingot convert --dtype f16 m
}

@test "G10 saturate: the largest value, Inf and NaN kept" {
    fx g10 m
    accept -- ingot convert --dtype f16 --saturate -n m m
    ingot export --safetensors out.safetensors m
    # 65280, 65504, 65504, -65504, Inf, -Inf, NaN, NaN quieted, 0, -0
    [ "$("$PYTHON" -c 'print(open("out.safetensors", "rb").read()[-20:].hex())')" = \
        f87bff7bff7bfffb007c00fc007e087e00000080 ] ||
        [ "$("$PYTHON" -c 'print(open("out.safetensors", "rb").read()[-28:-8].hex())')" = \
            f87bff7bff7bfffb007c00fc007e087e00000080 ]
    ingot show --json m | json 'd'
}

@test "G10 FP8 with every form of scale" {
    for v in scalar one row block; do
        fx g10 m$v $v
        accept -- ingot convert m$v
        round_trip m$v m$v
        run --separate-stderr ingot show --scales m$v
        [ "$status" -eq 0 ]
        grep -q 'down_proj.weight_scale' <<<"$output"
    done
}

@test "G10 FP8 without scale, or with one that does not fit: stored, and reported" {
    for v in none odd; do
        fx g10 m$v $v
        accept -- ingot convert m$v
        round_trip m$v m$v
        run --separate-stderr ingot show --scales m$v
        [ "$status" -eq 0 ]
        grep -q down_proj <<<"$output$stderr"
    done
}

@test "T07 no tokenizer: converted, with a warning" {
    fx t07 m
    accept -- ingot convert m
    grep -qi tokenizer <<<"$stderr"
}

# Scales that can be joined follow their weights into the view; others leave it without links.
@test "G10 views of FP8 weights carry the scales that are joined with them" {
    for v in block row tensor; do
        fx fp8-llama m$v $v
        accept -- ingot convert m$v
        run --separate-stderr ingot show --scales --json m$v
        [ "$status" -eq 0 ]
        links=$(json 'sorted([l["tensor"], l["scale"], l["granularity"], l["operation"]]
            for l in d["scales"] if "qkv_proj" in l["tensor"])' <<<"$output")
        case $v in
        block) suffix=weight_scale_inv ;;
        row) suffix=weight_scale ;;
        tensor)
            [ "$links" = '[]' ]
            continue
            ;;
        esac
        p=model.layers.0.self_attn.qkv_proj
        [ "$links" = "[[\"$p.weight\", \"$p.$suffix\", \"$v\", \"multiply\"]]" ]
        [ "$(json '[v["name"] for v in d["views"] if v["name"].endswith("'"$suffix"'")]' <<<"$output")" = \
            "[\"model.layers.0.mlp.gate_up_proj.$suffix\", \"$p.$suffix\"]" ]
    done
}
