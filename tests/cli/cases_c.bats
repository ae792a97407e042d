#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Download state, provenance, verify; and names of any length (E01).

load common

REV=5555555555555555555555555555555555555555

@test "C01 a hub blob whose content is not what its name says" {
    fx c01 bad
    fx cache good
    want=$(basename "$(readlink good/models--acme--tiny/snapshots/$REV/model.safetensors)")
    have=$(sha256sum <bad/models--acme--tiny/blobs/"$want" | cut -d' ' -f1)
    reject 3 model.safetensors "$want" "$have" -- ingot convert bad/models--acme--tiny
    reject 3 "$want" "$have" -- ingot convert bad/models--acme--tiny/snapshots/$REV
    accept -- ingot convert good/models--acme--tiny
}

@test "C01 a flipped bit of a tensor is found, by name and byte range" {
    fx p3s m
    ingot convert -q m
    p=$(pack m)
    name=model.layers.1.mlp.down_proj.weight
    at=$(tensors m "[t['offset'] + 1000 for t in d['tensors'] if t['name'] == '$name'][0]")
    patch "$p" "$at"
    run --separate-stderr ingot verify m
    [ "$status" -eq 1 ]
    grep -q "$name" <<<"$output$stderr"
    run --separate-stderr ingot verify --json m
    [ "$status" -eq 1 ]
    echo "$output"
    bad=$(json 'd["models"][0]["bad"]' <<<"$output")
    [ "$(json "all(b['offset'] <= $at < b['offset'] + b['length'] for b in d if 'offset' in b)" \
        <<<"$bad")" = true ]
    # whatever is named as bad is that tensor, and no intact one
    [ "$(json 'sorted({b["tensor"] for b in d if "tensor" in b})' <<<"$bad")" = "[\"$name\"]" ]
    [ "$(json "any(b.get('page') == $((at / 4096)) for b in d)" <<<"$bad")" = true ]
    run --separate-stderr ingot verify --fast m
    [ "$status" -eq 1 ]
    patch "$p" "$at"
    verified
}

@test "C01 any flipped bit of a pack is found, padding included" {
    fx llama m bias
    ingot convert -q m
    p=$(pack m)
    size=$(stat -c %s "$p")
    bad=0
    # the superblock, pages 1 to 15, the weights, each page of the tail, and some more in between
    for at in 0 9 30 75 100 4095 4096 40000 65535 $("$PYTHON" -c "
import random
r = random.Random(5)
print(*[r.randrange(65536, $size) for _ in range(60)], *range(65536 + 700, $size, 8192))"); do
        patch "$p" "$at" $((1 << (at % 8)))
        run --separate-stderr ingot verify m
        [ "$status" -eq 1 ] || { bad=1 && echo "offset $at: exit $status: $output $stderr"; }
        patch "$p" "$at" $((1 << (at % 8)))
    done
    [ $bad = 0 ]
    verified
}

@test "C02 links that lead nowhere, or round in circles" {
    fx c02 missing missing
    reject 3 model.safetensors symlink 'target' elsewhere/gone -- ingot convert missing
    fx c02 folder folder
    reject 3 model.safetensors -- ingot convert folder
    fx c02 self self
    reject 3 model.safetensors 'loop|levels' -- ingot convert self
    fx c02-copy copy
    reject 3 symlink target -- ingot convert copy/models--acme--tiny
}

@test "C02 a chain of three good links" {
    fx c02 m chain
    accept -- ingot convert m
    [ "$(find "$INGOT_STORE" -type l)" = "" ]
    rm -r m
    verified
}

@test "C04 an unfinished download is named, never read" {
    fx c04 m folder
    reject 3 model.safetensors.incomplete -- ingot convert m
    fx c04 c cache
    reject 3 'incomplete|model.safetensors' -- ingot convert c/models--acme--tiny
}

@test "C04 fifty pairs of converts of one source, one killed, a verify meanwhile" {
    fx p3s m
    ingot convert -q m
    d=$(digest m)
    for i in $(seq 50); do
        ingot convert -q -f -n a m 2>e1 & a=$!
        ingot convert -q -f -n a m 2>e2 & b=$!
        ingot convert -q -f -n a m 2>/dev/null & c=$!
        ingot verify m >/dev/null 2>e3 & v=$!
        sleep 0.0$((RANDOM % 5))$((RANDOM % 10))
        kill -9 $c 2>/dev/null || true
        for e in "$a:e1" "$b:e2"; do
            wait "${e%:*}" || grep -qi busy "${e#*:}" || flunk "round $i: $(cat "${e#*:}")"
        done
        wait $v || flunk "verify in round $i: $(cat e3)"
        wait $c || true
    done
    [ "$(digest a)" = "$d" ]
    ingot convert -q -f -n a m
    verified
    [ "$(find "$INGOT_STORE/packs" -name '*.ingot' | wc -l)" = 1 ]
}

@test "C05 same tensors, different file hash" {
    for v in plain metadata entries padding layout; do
        fx c05 m$v $v
        accept -- ingot convert m$v
        round_trip m$v m$v
        [ "$(tensors m$v)" = "$(tensors mplain)" ]
        [ "$(content m$v)" = "$(content mplain)" ]
    done
    digests=$(for v in plain metadata entries padding layout; do digest m$v; done)
    [ "$(sort -u <<<"$digests" | wc -l)" = 5 ]
}

@test "C05 any change of name, dtype, shape or byte changes the content digest" {
    for v in none name dtype shape byte; do
        fx c05-change m$v $v
        ingot convert -q m$v
    done
    [ "$(for v in none name dtype shape byte; do content m$v; done | sort -u | wc -l)" = 5 ]
    # the bytes of these are the same: so are the tensors' digests
    [ "$(tensors mdtype)" = "$(tensors mnone)" ]
    [ "$(tensors mshape)" = "$(tensors mnone)" ]
}

@test "C06 unknown files in a store: a warning, a failure when strict" {
    fx p3 m
    ingot convert -q m
    echo hello >"$INGOT_STORE/packs/notes.txt"
    echo hello >"$INGOT_STORE/packs/x.ingot~"
    mkdir "$INGOT_STORE/lost+found"
    run --separate-stderr ingot verify --all
    [ "$status" -eq 0 ]
    grep -q notes.txt <<<"$output$stderr"
    run --separate-stderr ingot verify --all --strict
    [ "$status" -eq 1 ]
    grep -q notes.txt <<<"$output$stderr"
}

@test "C06 one run lists what is changed, missing and extra" {
    fx p3 m
    fx llama n
    fx small s
    for x in m n s; do ingot convert -q $x; done
    patch "$(pack m)" 70000
    gone=$(pack n)
    rm -f "$gone"
    echo hello >"$INGOT_STORE/packs/stray"
    run --separate-stderr ingot verify --all --json
    [ "$status" -eq 1 ]
    echo "$output" "$stderr"
    text=$output$stderr
    grep -q missing <<<"$text"
    grep -q stray <<<"$text"
    grep -q changed <<<"$text"
    [ "$(json '[m["ok"] for m in d["models"] if m["model"] == "s"]' <<<"$output")" = '[true]' ]
    [ "$(json '[m["ok"] for m in d["models"] if m["model"] == "m"]' <<<"$output")" = '[false]' ]
}

@test "C08 verify says how much it hashed" {
    fx p3 m
    ingot convert -q m
    total=$(stat -c %s "$(pack m)")
    run --separate-stderr ingot verify --json m
    [ "$status" -eq 0 ]
    [ "$(json 'd["models"][0]["bytes_hashed"]' <<<"$output")" -ge "$total" ]
    [ "$(json 'd["models"][0]["tensors_hashed"]' <<<"$output")" = 15 ]
    run --separate-stderr ingot verify --quick --json m
    [ "$status" -eq 0 ]
    [ "$(json 'd["models"][0]["tensors_hashed"]' <<<"$output")" = 0 ]
    # what --quick does not look at, the default does: nothing is remembered between runs
    patch "$(pack m)" 70000
    ingot verify --quick m
    run ingot verify m
    [ "$status" -eq 1 ]
}

@test "C08 an empty store verifies nothing, and says so" {
    run --separate-stderr ingot verify --all
    [ "$status" -eq 1 ]
    grep -qi nothing <<<"$output$stderr"
}

@test "E01 names of 510 bytes and more" {
    fx e01 m
    accept -- ingot convert m
    round_trip m m
    [ "$(tensors m 'len({t["name"] for t in d["tensors"]})')" = 8 ]
    [ "$(tensors m 'max(len(t["name"]) for t in d["tensors"])')" = 20000 ]
}
