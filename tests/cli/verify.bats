#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# ingot verify: levels, expectations, reports.

load common

setup() {
    setup_store
    fx p3s m
    ingot convert -q m
    p=$(pack m)
    d=$(digest m)
}

@test "verify: every level passes on a good pack" {
    for how in "" --fast --quick "--source m" "--expect $d" "--threads 1" "--threads 7"; do
        # shellcheck disable=SC2086
        run --separate-stderr ingot verify $how m
        [ "$status" -eq 0 ] || flunk "$how: $status $stderr"
    done
    run --separate-stderr ingot verify --fast m
    ! grep -qw verified <<<"$output$stderr" || flunk "--fast says verified"
}

@test "verify: the report for programs" {
    for how in full fast quick source; do
        case $how in full) o= ;; source) o="--source m" ;; *) o=--$how ;; esac
        # shellcheck disable=SC2086
        run --separate-stderr ingot verify $o --json m
        [ "$status" -eq 0 ]
        [ "$(json 'd["ok"] and d["models"][0]["ok"]' <<<"$output")" = true ]
        # --source is a full check and one more
        [ "$(json 'd["models"][0]["level"]' <<<"$output")" = ${how/source/full} ]
        [ "$(json 'd["models"][0]["bad"]' <<<"$output")" = '[]' ]
        [ "$(json 'd["models"][0]["digest"]' <<<"$output")" = "$d" ]
    done
}

@test "verify: by name, digest, prefix and path" {
    for m in m "$d" "${d#*:}" "$(cut -c17-26 <<<"$d")" "$p"; do
        ingot verify "$m"
    done
    run --separate-stderr ingot verify nothing
    [ "$status" -eq 3 ]
    one_error_line
}

@test "verify: a pack by itself needs an expected digest, or --self" {
    cp "$p" received.ingot
    run --separate-stderr ingot verify ./received.ingot
    [ "$status" -eq 1 ]
    ingot verify --expect "$d" ./received.ingot
    ingot verify --expect "${d#*:}" ./received.ingot
    run --separate-stderr ingot verify --self ./received.ingot
    [ "$status" -eq 0 ]
    grep -q "${d#*:}" <<<"$output"
    run --separate-stderr ingot verify --expect "$(printf '%064d' 1)" ./received.ingot
    [ "$status" -eq 1 ]
    grep -q "${d#*:}" <<<"$output$stderr"
    run --separate-stderr ingot verify --expect 12345678 ./received.ingot
    [ "$status" -eq 2 ] || [ "$status" -eq 3 ]
}

@test "verify: a pack under another pack's digest" {
    fx p3 n
    ingot convert -q n
    other=$(pack n)
    rm -f "$p"
    cp "$other" "$p"
    run --separate-stderr ingot verify m
    [ "$status" -eq 1 ]
    run --separate-stderr ingot verify "$p"
    [ "$status" -eq 1 ]
}

@test "verify: all bad regions in one run" {
    at=$(tensors m "[t['offset'] for t in d['tensors'] if t['name'] == 'lm_head.weight'][0]")
    patch "$p" "$at"
    patch "$p" $((at + 20000))
    patch "$p" 66000
    patch "$p" 20000
    run --separate-stderr ingot verify --json m
    [ "$status" -eq 1 ]
    [ "$(json 'd["ok"]' <<<"$output")" = false ]
    bad=$(json '[b for m in d["models"] for b in m["bad"]]' <<<"$output")
    echo "$bad"
    for page in $((at / 4096)) $(((at + 20000) / 4096)) 16; do
        [ "$(json "any(b.get('page') == $page for b in d)" <<<"$bad")" = true ]
    done
    [ "$(json 'any(b.get("tensor") == "lm_head.weight" for b in d)' <<<"$bad")" = true ]
    [ "$(json 'any(b.get("tensor") == "model.embed_tokens.weight" for b in d)' <<<"$bad")" = true ]
}

@test "verify: --source names what differs" {
    cp -r m copy
    patch copy/model-00002-of-00002.safetensors 9000
    run --separate-stderr ingot verify --source copy m
    [ "$status" -eq 1 ]
    grep -q model-00002-of-00002.safetensors <<<"$output$stderr"
    rm -r copy
    cp -r m copy
    patch copy/config.json 3
    run --separate-stderr ingot verify --source copy m
    [ "$status" -eq 1 ]
    grep -q config.json <<<"$output$stderr"
}

@test "verify: --source without the folder derives the SHA-256 again" {
    run --separate-stderr ingot verify --source gone m
    [ "$status" -eq 0 ]
    # a pack that is consistent with itself, but not with what it says of its sources, is found
    # by nobody else
    patch "$p" 70000
    run --separate-stderr ingot verify --source gone m
    [ "$status" -eq 1 ]
}

@test "verify: files that are not packs" {
    : >empty.ingot
    head -c 70000 /dev/urandom >noise.ingot
    head -c 8192 /dev/zero >zero.ingot
    cp m/model-00001-of-00002.safetensors st.ingot
    mkdir folder.ingot
    for f in empty noise zero st folder gone; do
        run --separate-stderr ingot verify --self ./$f.ingot
        [ "$status" -eq 1 ] || [ "$status" -eq 3 ] || [ "$status" -eq 4 ] || flunk "$f: $status"
    done
}

@test "verify: levels exclude each other, --all takes no model" {
    for args in "--quick --fast m" "--all m" "" "m m"; do
        # shellcheck disable=SC2086
        run --separate-stderr ingot verify $args
        [ "$status" -eq 2 ] || flunk "'$args': $status"
    done
}

@test "verify: --trust-stamp believes a full check of the very same file, and says so" {
    ingot convert -q -n s "$(model phi3-pocket)"
    pack=$(echo "$INGOT_STORE"/packs/b377*.ingot)
    run --separate-stderr "$INGOT" verify --trust-stamp s
    [ "$status" -eq 0 ]
    [[ $output == *"s: verified"*"remembered: no: it is too young"* ]]
    [ ! -e "${pack%.ingot}.stamp" ]
    sleep 3
    run --separate-stderr "$INGOT" verify --trust-stamp s
    [[ $output == *"s: verified"*"remembered: yes"* ]]
    run --separate-stderr "$INGOT" verify --trust-stamp s
    [ "$status" -eq 0 ]
    [[ $output == *"s: trusted"*"not verified now: a stamp says"*"0 bytes hashed"* ]]
    [[ $output != *"s: verified"* ]]
    run --separate-stderr "$INGOT" verify --trust-stamp --all --strict
    [ "$status" -eq 0 ] # the stamp belongs to the store
    # Without the option nobody looks at it.
    chmod u+w "$pack"
    printf '\001' | dd of="$pack" bs=1 seek=300000 conv=notrunc status=none
    run --separate-stderr "$INGOT" verify --trust-stamp s
    [ "$status" -eq 1 ]
    reject 1 "$pack" -- ingot load -d host s
    # A change that takes back size and modification time shows in the change time.
    ingot convert -q -n s "$(model phi3-pocket)"
    sleep 3
    ingot verify --trust-stamp s
    run --separate-stderr "$INGOT" verify --trust-stamp s
    [[ $output == *"s: trusted"* ]]
    touch -r "$pack" times
    chmod u+w "$pack"
    printf '\001' | dd of="$pack" bs=1 seek=300000 conv=notrunc status=none
    touch -r times "$pack"
    run --separate-stderr "$INGOT" verify --trust-stamp s
    [ "$status" -eq 1 ]
    [[ $output == *FAILED* ]]
}

@test "verify: a stamp of another boot, another digest, or another file is none" {
    ingot convert -q -n s "$(model phi3-pocket)"
    pack=$(echo "$INGOT_STORE"/packs/b377*.ingot)
    stamp=${pack%.ingot}.stamp
    sleep 3
    ingot verify -q --trust-stamp s
    for edit in 's/"boot":"./"boot":"x/' 's/"inode":/"inode":1/' 's/"v":1/"v":2/' 's/sha256:./sha256:x/' 's/}$/,"more":1}/'; do
        sed "$edit" "$stamp" >edited
        ! cmp -s edited "$stamp" || flunk "$edit changes nothing"
        mv "$stamp" kept
        cp edited "$stamp"
        run --separate-stderr "$INGOT" verify --trust-stamp s
        [ "$status" -eq 0 ]
        [[ $output == *"s: verified"* ]] || flunk "$edit"
        mv -f kept "$stamp"
    done
    run --separate-stderr "$INGOT" verify --trust-stamp --fast s
    [ "$status" -eq 2 ]
    ingot rm s
    ingot gc -q --all-ages
    [ ! -e "$stamp" ]
}
