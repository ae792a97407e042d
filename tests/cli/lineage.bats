#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Derived models: what they were made from, and doing it again.

load common

setup() {
    setup_store
    ingot convert -q -n pocket "$(model phi3-pocket)"
    ingot convert -q -n small --dtype bf16 pocket
}

# Path of a name's pack.
pack_of() {
    ingot show --json "$1" | "$PYTHON" -c 'import json, sys; print(json.load(sys.stdin)["pack"])'
}

# misused TEXT ARG...: a usage error that says so
misused() {
    run --separate-stderr "$INGOT" "${@:2}"
    [ "$status" -eq 2 ]
    [[ $stderr == *"$1"* ]]
}

@test "reproduce: from the store, from the folder, and a model that was not derived" {
    state=$(store_state)
    run --separate-stderr "$INGOT" verify --reproduce small
    [ "$status" -eq 0 ]
    [[ $output == *"made again from $(basename "$(pack_of pocket)" .ingot): the same digest"* ]]
    for name in small pocket; do
        run --separate-stderr "$INGOT" verify --reproduce --source "$(model phi3-pocket)" "$name"
        [ "$status" -eq 0 ]
        [[ $output == *"phi3-pocket: the same digest"* ]]
    done
    [ "$(store_state)" = "$state" ] # nothing is kept
    reject 2 "--source DIR" -- ingot verify --reproduce pocket
    misused "not with --quick or --fast" verify --reproduce --fast small
    misused "--all takes no" verify --reproduce --all
}

@test "reproduce: two casts in a row, one step at a time" {
    ingot convert -q -n wide --dtype f32 small
    run --separate-stderr "$INGOT" verify --reproduce wide
    [ "$status" -eq 0 ]
    [[ $output == *"made again from $(basename "$(pack_of small)" .ingot): the same digest"* ]]
    run --separate-stderr "$INGOT" verify --reproduce --source "$(model phi3-pocket)" wide
    [ "$status" -eq 1 ]
    [[ $output == *"itself derived"* ]]
}

@test "reproduce: without the parent it is an error, not an answer" {
    rm -f "$(pack_of pocket)"
    reject 3 "is not in the store" -- ingot verify --reproduce small
    run --separate-stderr "$INGOT" verify --reproduce --source "$(model phi3-pocket)" small
    [ "$status" -eq 0 ]
}

@test "reproduce: a pack that only says that it was made by that cast" {
    has_numpy || skip "needs numpy"
    forged=$("$PYTHON" "$srcdir/tests/interop/forge.py" "$(pack_of small)" '"rounded":4870209' '"rounded":4870208')
    run --separate-stderr "$INGOT" verify "$forged"
    [ "$status" -eq 0 ] # it is what its digest says
    run --separate-stderr "$INGOT" verify --reproduce "$forged"
    [ "$status" -eq 1 ]
    [[ $output == *"derivation"*"expected $(basename "$(pack_of small)" .ingot)"*"made again, it is another pack"* ]]
}

@test "reproduce: other originals than those it was made from" {
    cp -r "$(model phi3-pocket)" other
    chmod -R u+w other
    printf '\1' | dd of=other/model-00001-of-00002.safetensors bs=1 seek=400000 conv=notrunc status=none
    run --separate-stderr "$INGOT" verify --reproduce --source other small
    [ "$status" -eq 1 ]
    [[ $output == *"made again, it is another pack"* ]]
    rm other/model-00002-of-00002.safetensors
    run --separate-stderr "$INGOT" verify --reproduce --source other small
    [ "$status" -eq 1 ]
    [[ $output == *"derivation"*"model-00002-of-00002.safetensors"* ]]
}

@test "lineage: from a cast to the files, in words and as JSON" {
    run --separate-stderr "$INGOT" lineage small
    [ "$status" -eq 0 ]
    [[ ${lines[0]} == "small  fsverity-sha256:$(basename "$(pack_of small)" .ingot)" ]]
    [ "${lines[1]}" = "  made by dtype BF16 from" ]
    [[ ${lines[2]} == "pocket  fsverity-sha256:"* ]]
    [ "${lines[3]}" = "  packed from the files" ]
    sum=$(sha256sum <"$(model phi3-pocket)/model-00001-of-00002.safetensors")
    [[ ${lines[4]} == *"model-00001-of-00002.safetensors  sha256:${sum%% *}  6.57 MB" ]]
    [ "${#lines[@]}" -eq 6 ]
    ingot lineage --json small | "$PYTHON" -c '
import json, sys
r = json.load(sys.stdin)
assert [c["derived"] for c in r["chain"]] == [True, False]
assert r["chain"][0]["derivation"]["from"] == r["chain"][1]["content"]
assert len(r["sources"]) == 2 and "missing" not in r and "signed" not in r'
}

@test "lineage: a parent that is gone is said to be" {
    rm -f "$(pack_of pocket)"
    run --separate-stderr "$INGOT" lineage small
    [ "$status" -eq 0 ]
    [[ $output == *"ingot-content-v1:"*"which the store does not have"* ]]
}

@test "lineage: down to signed files" {
    command -v openssl >/dev/null || skip "openssl is not installed"
    for k in key other; do
        openssl genpkey -quiet -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out $k.pem
        openssl pkey -in $k.pem -pubout -out $k.pub
    done
    run --separate-stderr "$INGOT" lineage --key key.pub small
    [ "$status" -eq 1 ]
    ingot sign -q --key key.pem pocket
    run --separate-stderr "$INGOT" lineage small
    [ "$status" -eq 0 ]
    [[ $output == *"bundle "*".sig (not checked)"* ]]
    run --separate-stderr "$INGOT" lineage --key key.pub small
    [ "$status" -eq 0 ]
    [[ $output == *".sig: good, by sha256:"* ]]
    [[ $output == *"6.57 MB  signed by "*".sig"* ]]
    run --separate-stderr "$INGOT" lineage --key other.pub small
    [ "$status" -eq 1 ]
    [[ $output == *"NOT GOOD (made with the key"* ]]
    [[ $output != *"signed by"* ]]
    # What is signed is the cast itself, not the files at the end.
    rm -r "$INGOT_STORE"/packs/*.sigs
    ingot sign -q --key key.pem small
    run --separate-stderr "$INGOT" lineage --key key.pub small
    [ "$status" -eq 1 ]
    misused "need --certificate-chain" lineage --at 2026-01-01 small
    misused "not both" lineage --key key.pub --system-roots small
}

@test "lineage: a pack whose tables are not its digest's is refused" {
    pack=$(pack_of small)
    chmod u+w "$pack"
    size=$(stat -c %s "$pack")
    printf '\1' | dd of="$pack" bs=1 seek=$((size - 100)) conv=notrunc status=none
    run --separate-stderr "$INGOT" lineage small
    [ "$status" -ne 0 ]
    [ -n "$stderr" ]
}
