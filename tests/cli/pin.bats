#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Input sets: packs of files without tensors.

load common

setup() {
    setup_store
    mkdir -p in/sub
    echo hello >in/a.txt
    echo deep >"in/sub/ümläut 模型.txt"
    : >in/empty
}

pack_of() {
    ingot show --json "$1" | "$PYTHON" -c 'import json, sys; print(json.load(sys.stdin)["pack"])'
}

@test "pin: a set is a model to every command, and comes back as it was" {
    accept -- ingot pin -n evals/v1 --license "MIT OR Apache-2.0" --attribution in/a.txt in
    run --separate-stderr "$INGOT" show evals/v1
    [[ $output == *"license     MIT OR Apache-2.0"*"attributed  hello\\n"* ]]
    sum=$(sha256sum <in/a.txt)
    [[ $output == *"blob        a.txt  6 B  sha256:${sum%% *}"* ]]
    run --separate-stderr "$INGOT" verify evals/v1
    [[ $output == *"0 of 0 tensors"* ]]
    ingot export -q evals/v1 out
    diff -r in out
    ingot tag evals/v1 again
    ingot rm evals/v1
    ingot gc -q --all-ages
    ingot verify -q again
    run --separate-stderr "$INGOT" ls --json
    [[ $output == *'"derivation": "inputs"'* ]]
}

@test "pin: the digest is of names and bytes alone" {
    first=$(ingot pin -n one in)
    cp -r in elsewhere
    touch -d 2001-01-01 elsewhere/a.txt
    chmod 600 elsewhere/a.txt
    second=$(ingot pin -n two elsewhere)
    [ "${first#one}" = "${second#two}" ]
    mv elsewhere/a.txt elsewhere/b.txt
    third=$(ingot pin -n three elsewhere)
    [ "${first#one}" != "${third#three}" ]
    fourth=$(ingot pin -n four --license MIT in)
    [ "${first#one}" != "${fourth#four}" ]
}

@test "pin: several arguments keep their own names" {
    mkdir other
    echo x >other/x
    ingot pin -n many in/a.txt in/sub ./other/
    ingot export -q many out
    (cd out && find . -type f | LC_ALL=C sort) >names
    printf '%s\n' ./a.txt ./other/x "./sub/ümläut 模型.txt" | diff - names
    cp in/a.txt other/a.txt
    reject 3 'would both be called "a.txt"' -- ingot pin -n twice in/a.txt other/a.txt
}

@test "pin: the name is the folder's, and is not taken over unasked" {
    run --separate-stderr "$INGOT" pin in
    [[ $output == "in  fsverity-sha256:"* ]]
    echo more >>in/a.txt
    reject 3 "not the new" -- ingot pin in
    accept -- ingot pin -f in
    run --separate-stderr "$INGOT" pin in/a.txt in/empty
    [ "$status" -eq 2 ]
    [[ $stderr == *"-n NAME"* ]]
}

@test "pin: --check says what is missing, changed, extra" {
    ingot pin -n set in
    run --separate-stderr "$INGOT" pin --check in set
    [ "$status" -eq 0 ]
    [ "$output" = "set: 3 files, all as pinned" ]
    echo new >in/new
    rm in/empty
    echo HELLO >in/a.txt
    run --separate-stderr "$INGOT" pin --check in set
    [ "$status" -eq 1 ]
    sum=$(echo HELLO | sha256sum)
    [ "${lines[0]}" = "missing empty" ]
    [[ ${lines[1]} == "changed a.txt  expected "*" found ${sum%% *}" ]]
    [ "${lines[2]}" = "extra new" ]
    run --separate-stderr "$INGOT" pin --json --check in set
    [ "$status" -eq 1 ]
    echo "$output" | "$PYTHON" -c '
import json, sys
r = json.load(sys.stdin)
assert (r["ok"], r["missing"], r["extra"]) == (False, ["empty"], ["new"]) and r["changed"][0]["name"] == "a.txt"'
}

@test "pin: --check believes the digest, not the pack" {
    ingot pin -n set in
    pack=$(pack_of set)
    chmod u+w "$pack"
    sum=$(sha256sum <in/a.txt)
    # The recorded hash of a.txt, inside the blob table.
    "$PYTHON" - "$pack" "${sum%% *}" <<'EOF'
import sys
data = bytearray(open(sys.argv[1], "rb").read())
at = data.index(bytes.fromhex(sys.argv[2]))
data[at] ^= 1
open(sys.argv[1], "wb").write(data)
EOF
    run --separate-stderr "$INGOT" pin --check in set
    [ "$status" -ne 0 ]
    [ -z "$output" ]
    [ -n "$stderr" ]
}

@test "pin: every byte of a pinned file is held to the digest" {
    ingot pin -n set in
    pack=$(pack_of set)
    chmod u+w "$pack"
    at=$(LC_ALL=C grep -abo hello "$pack" | head -1 | cut -d: -f1)
    printf J | dd of="$pack" bs=1 seek="$at" conv=notrunc status=none
    run --separate-stderr "$INGOT" verify set
    [ "$status" -eq 1 ]
    [[ $output == *"blob"*"a.txt"* ]]
    reject 3 "a.txt" -- ingot export set out
}

@test "pin: larger than a model's small files may be" {
    truncate -s 70M in/large
    echo end >>in/large
    accept -- ingot pin -n large in
    ingot export -q large out
    cmp in/large out/large
    ingot pin -q --check in large
    run bash -c "ulimit -v 200000; '$(program)' verify -q --store '$INGOT_STORE' large"
    has_sanitizer || [ "$status" -eq 0 ]
}

@test "pin: what is no set of inputs, and no input" {
    ingot convert -q -n m "$(model phi3-pocket)"
    ingot pin -n set in
    reject 2 "is a model" -- ingot pin --check in m
    reject 3 "no tensors to load" -- ingot load -d host set
    reject 3 "no tensors" -- ingot convert --dtype f16 set
    reject 2 "pin --check" -- ingot verify --reproduce set
    reject 3 "no files" -- ingot pin -n e "$(mkdir -p nothing && echo nothing)"
    reject 3 "absent: cannot open" -- ingot pin -n e absent
    reject 2 "SPDX" -- ingot pin -n e --license 'MIT;rm' in
    printf '\377' >bad
    reject 3 "UTF-8" -- ingot pin -n e --attribution bad in
    mkfifo pipe
    reject 3 "neither a file nor a folder" -- ingot pin -n e pipe
    run --separate-stderr "$INGOT" pin --check in
    [ "$status" -eq 2 ]
    run --separate-stderr "$INGOT" pin --check in -n x set
    [ "$status" -eq 2 ]
}

@test "pin: an unfinished download and a Git-LFS pointer are no inputs" {
    touch in/x.incomplete
    reject 3 "x.incomplete" -- ingot pin in
    rm in/x.incomplete
    printf 'version https://git-lfs.github.com/spec/v1\noid sha256:%064d\nsize 12\n' 0 >in/data.bin
    reject 3 "data.bin" -- ingot pin in
}

@test "pin: a set is signed and checked like a model" {
    command -v openssl >/dev/null || skip "openssl is not installed"
    openssl genpkey -quiet -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out key.pem
    openssl pkey -in key.pem -pubout -out key.pub
    ingot pin -n set in
    ingot sign -q --key key.pem -o set.sig set
    run --separate-stderr "$INGOT" verify --signature set.sig --key key.pub set
    [ "$status" -eq 0 ]
    [[ $output == *"3 files signed, 3 matched"* ]]
    run --separate-stderr "$INGOT" lineage set
    [[ $output == *"pinned files"*"a.txt  sha256:"* ]]
}
