#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Trouble with the index, the shards and what else lies in the folder.

load common

ONE=model-00001-of-00002.safetensors
TWO=model-00002-of-00002.safetensors

@test "B01 the index names a shard that is not there" {
    fx b01 m2 2
    reject 3 $TWO '\<2\>' '\<1\>' model.layers.1.input_layernorm.weight -- ingot convert m2
    fx b01 m1 1
    reject 3 $ONE model.embed_tokens.weight -- ingot convert m1
}

@test "B01 four shards are named, two are there" {
    fx b01 m four
    reject 3 model-00003-of-00004 model-00004-of-00004 '\<4\>' '\<2\>' model.extra.a.weight \
        model.extra.b.weight -- ingot convert m
}

@test "B01 a gap in the numbering, no index" {
    fx b01 m gap
    reject 3 00002 -- ingot convert m
}

@test "B03 the index points into a shard that lacks the tensor" {
    fx b03 m wrong
    reject 3 model.norm.weight $ONE $TWO -- ingot convert m
}

@test "B03 an entry for a tensor in no shard" {
    fx b03 m nowhere
    reject 3 model.mtp.weight $TWO -- ingot convert m
}

@test "B03 a tensor that the index does not list, and the option" {
    fx b03 m absent
    reject 3 model.norm.weight $TWO keep-unindexed -- ingot convert m
    accept -- ingot convert --keep-unindexed m
    round_trip m m
    [ "$(tensors m 'len(d["tensors"])')" = 15 ]
}

@test "B03 total_size that disagrees is a warning with both numbers" {
    fx b03 m total
    total=$(fx p3s p && sed -n 's/.*"total_size": \([0-9]*\).*/\1/p' p/model.safetensors.index.json)
    accept -- ingot convert m
    grep -q 12345 <<<"$stderr"
    grep -q "$total" <<<"$stderr"
}

@test "B04 one tensor in two shards, the index says which" {
    name=model.layers.0.self_attn.o_proj.weight
    fx p3s plain
    ingot convert -q plain
    good=$(tensors plain "[t['digest'] for t in d['tensors'] if t['name'] == '$name']")
    for v in equal bytes; do
        for map in 1 2; do
            fx b04 m$v$map $v $map
            accept -- ingot convert m$v$map
            [ "$(grep -c '1 tensors\? stands\? in two files' <<<"$stderr")" = 1 ]
            round_trip m$v$map m$v$map
            [ "$(tensors m$v$map "sum(t['shadow'] for t in d['tensors'])")" = 1 ]
            used=$(tensors m$v$map \
                "[t['digest'] for t in d['tensors'] if t['name'] == '$name' and not t['shadow']]")
            if [ $v$map = bytes2 ]; then [ "$used" != "$good" ]; else [ "$used" = "$good" ]; fi
        done
    done
    [ "$(content mbytes1)" = "$(content plain)" ]
    [ "$(content mbytes2)" != "$(content plain)" ]
}

@test "B04 another shape, or no index" {
    name=model.layers.0.self_attn.o_proj.weight
    for i in 1 2; do
        fx b04 ms$i shape $i
        reject 3 $name $ONE $TWO -- ingot convert ms$i
    done
    for v in equal bytes shape; do
        fx b04 mn$v $v none
        reject 3 $name $ONE $TWO -- ingot convert mn$v
    done
}

@test "B06 shard names that leave the folder" {
    for v in dotdot absolute sub nul empty number; do
        fx b06 m$v $v
        reject 3 model.safetensors.index.json -- ingot convert m$v/model
    done
}

@test "B06 a shard that is a link to a file outside" {
    fx b06 m link
    accept -- ingot convert m/model
    [ "$(find "$INGOT_STORE" -type l)" = "" ]
    rm m/outside.safetensors
    verified
}

@test "B07 no safetensors at all" {
    for v in bin binindex; do
        fx b07 m$v $v
        reject 3 pytorch_model.bin safetensors -- ingot convert m$v
    done
    fx b07 mpth pth
    reject 3 consolidated.00.pth safetensors -- ingot convert mpth
    fx b07 mempty empty
    reject 3 safetensors -- ingot convert mempty
}

@test "B07 both formats, and no config" {
    fx b07 both both
    accept -- ingot convert both
    grep -q pytorch_model.bin <<<"$stderr"
    rm both/pytorch_model.bin
    round_trip both both
    fx b07 noconfig noconfig
    reject 3 config.json no-config -- ingot convert noconfig
    accept -- ingot convert --no-config noconfig
    round_trip noconfig noconfig
    # one file says what it is by itself
    accept -- ingot convert -n file noconfig/model.safetensors
}

@test "B07 no such source" {
    reject 3 nothing-here -- ingot convert ./nothing-here
}

@test "B09 quantised checkpoints are stored" {
    for v in gptq bnb; do
        fx b09 m$v $v
        accept -- ingot convert m$v
        round_trip m$v m$v
    done
}

@test "B09 a stale claim of quantisation, and the option" {
    fx b09 m stale
    reject 3 gptq accept-stale-quant -- ingot convert m
    accept -- ingot convert --accept-stale-quant m
}

@test "B10 a config with Infinity in an unused key, or a byte-order mark" {
    for v in infinity bom; do
        fx b10 m$v $v
        accept -- ingot convert m$v
        round_trip m$v m$v
    done
}

@test "B10 a config that is broken" {
    fx b10 comma comma
    reject 3 'config.json:[0-9]+:[0-9]+' -- ingot convert comma
    fx b10 deep deep
    reject 3 'config.json:[0-9]+:[0-9]+' -- ingot convert deep
}

@test "B10 a config with an unusable value in a used key" {
    for v in nan string float; do
        fx b10 m$v $v
        case $v in nan) key=rms_norm_eps ;; *) key=vocab_size ;; esac
        reject 3 config.json $key -- ingot convert m$v
    done
}
