#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# ingot load from outside, on the host's device: what it says, what it refuses, what it survives.

load common

# field PATH: a value of the JSON report on stdin, such as loads.0.proven.
field() {
    "$PYTHON" -c '
import json, sys
v = json.load(sys.stdin)
for k in sys.argv[1].split("."):
    v = v[int(k)] if isinstance(v, list) else v[k]
print(v)' "$1"
}

convert_pocket() {
    ingot convert -q "$(model phi3-pocket)" >/dev/null
    p=$(pack phi3-pocket)
}

# misused PATTERN -- OPTION...: exit 2, the line of the error, and the usage.
misused() {
    run --separate-stderr "$INGOT" load "${@:3}"
    [ "$status" -eq 2 ] || flunk "exit $status: $*"
    head -n 1 <<<"$stderr" | grep -Eq -e "$1" || flunk "does not say '$1': $stderr"
    grep -q '^usage: ingot load ' <<<"$stderr"
}

BEFORE=65536 # of the weights

@test "load: says what was proven, how fast, and by whom" {
    convert_pocket
    run --separate-stderr ingot load -d host phi3-pocket
    [ "$status" -eq 0 ]
    grep -q '^phi3-pocket: loaded and verified on host  fsverity-sha256:b377b3eca0e2' <<<"$output"
    grep -q '11.3 MB proven by SHA-256 where they lie, 33 of 33 tensors' <<<"$output"
    grep -q 'GB/s (.* % of .* GB/s that copies alone reach here)' <<<"$output"
    [ -z "$stderr" ]
    ingot load -d host --json --repeat 3 phi3-pocket >j
    [ "$(field device <j)" = host ]
    [ "$(field loads.2.ok <j)" = True ]
    [ "$(field loads.0.proven <j)" = "$(field loads.0.placed <j)" ]
    [ "$(field loads.0.tensors <j)" = 33 ]
    ! field loads.3.ok <j 2>/dev/null
}

@test "load: levels and engines say what they did, and no more" {
    convert_pocket
    for engine in auto ring map direct; do
        run --separate-stderr ingot load -d host --engine $engine phi3-pocket
        [ "$status" -eq 0 ]
        grep -q 'loaded and verified' <<<"$output"
    done
    ingot load -d host --verify fast phi3-pocket >out
    grep -q 'loaded, intact' out
    grep -q '0 bytes proven, 0 of 33 tensors' out
    ingot load -d host --verify off phi3-pocket >out
    grep -q 'loaded, unchecked' out
    grep -q 'nothing checked, 0 of 33 tensors' out
    ! grep -q -i 'verified\|intact' out
}

@test "load: some tensors, and what a rank holds" {
    convert_pocket
    ingot load -d host --json -t 'model.norm.weight,model.layers.0.*' phi3-pocket >j
    [ "$(field loads.0.tensors <j)" = 7 ]
    [ "$(field loads.0.tensors_proven <j)" = 7 ]
    [ "$(field loads.0.early <j)" = True ]
    ingot load -d host -t model.norm.weight phi3-pocket | grep -q ', in part, on host'
    for r in 0 1 2; do
        ingot load -d host --json --rank $r/3 phi3-pocket >j
        [ "$(field loads.0.tensors_proven <j)" = 33 ]
        [ "$(field loads.0.placed <j)" -lt 4000000 ]
    done
    reject 3 '3 heads cannot be cut in 2' -- "$INGOT" load -d host --rank 0/2 phi3-pocket
    reject 3 'no.such' -- "$INGOT" load -d host -t no.such phi3-pocket
}

@test "load: what cannot be meant is exit 2" {
    convert_pocket
    misused 'verify maybe' -- --verify maybe phi3-pocket
    misused 'engine warp' -- --engine warp phi3-pocket
    misused 'rank 3/3' -- --rank 3/3 phi3-pocket
    misused 'rank 1' -- --rank 1 phi3-pocket
    misused 'exclude' -- --rank 0/1 -t x phi3-pocket
    misused 'at most 64' -- --threads 65 phi3-pocket
    misused 'repeat' -- --repeat 0 phi3-pocket
    reject 2 'device .tpu' -- "$INGOT" load -d tpu phi3-pocket
    reject 2 'at least [0-9]+ are needed' -- "$INGOT" load -d host --limit-memory 1K phi3-pocket
    reject 3 'no-such-model' -- "$INGOT" load -d host no-such-model
}

@test "load: a device that is not there is told from a driver that is not" {
    convert_pocket
    run --separate-stderr env CUDA_VISIBLE_DEVICES= "$INGOT" load -d cuda:0 phi3-pocket
    [ "$status" -eq 3 ]
    one_error_line
    grep -Eq 'no NVIDIA driver|no CUDA device|without CUDA' <<<"$stderr"
    run --separate-stderr env CUDA_VISIBLE_DEVICES= "$INGOT" load phi3-pocket # then the host will do
    [ "$status" -eq 0 ]
    grep -q 'on host' <<<"$output"
}

@test "load: a pack that nobody knows the digest of is refused, or loaded unverified" {
    convert_pocket
    cp "$p" received.ingot
    reject 1 'no digest' 'b377b3eca0e2cae6' -- "$INGOT" load -d host ./received.ingot
    run ingot load -d host --verify fast ./received.ingot
    [ "$status" -eq 0 ]
}

@test "C08 a level that hashes says how much; a flipped byte is found in the warm cache" {
    convert_pocket
    ingot load -d host --verify off phi3-pocket
    at=$((BEFORE + 3000000))
    patch "$p" $at
    run --separate-stderr ingot load -d host phi3-pocket
    [ "$status" -eq 1 ]
    one_error_line
    grep -q 'tensor "model' <<<"$stderr"
    grep -q "offset $((at / 4096 * 4096)), 4096 bytes" <<<"$stderr"
    grep -q 'FAILED on host' <<<"$output"
    run --separate-stderr ingot load -d host --verify fast phi3-pocket
    [ "$status" -eq 1 ]
    # A subset without it passes, and says of how many.
    run ingot load -d host -t model.norm.weight phi3-pocket
    [ "$status" -eq 0 ]
    grep -q '1 of 33 tensors' <<<"$output"
    ingot load -d host --verify off phi3-pocket | grep -q '0 of 33 tensors'
}

@test "D01 EIO while it loads: file and offset, exit 4" {
    build_shim
    convert_pocket
    for nth in 3 9 14 20; do
        run --separate-stderr shimmed "pread:.ingot:$nth:EIO" "$INGOT" load -d host --engine ring phi3-pocket
        echo "$nth: $status $stderr"
        [ "$status" -eq 4 ]
        one_error_line
        grep -q "$(basename "$p")" <<<"$stderr"
    done
}

@test "D01 a pack cut while it loads, by every engine: no signal" {
    build_shim
    convert_pocket
    cp "$p" kept
    chmod 644 "$p"
    for engine in auto ring map direct; do
        run --separate-stderr shimmed "pread:.ingot:16:CUT" "$INGOT" load -d host --engine $engine phi3-pocket
        echo "$engine: $status $stderr"
        [ "$status" -lt 128 ]
        if [ "$(stat -c %s "$p")" != "$(stat -c %s kept)" ] && [ $engine != map ]; then
            [ "$status" -ne 0 ]
        fi
        cp kept "$p"
    done
}

@test "load: short reads are read on" {
    build_shim
    convert_pocket
    for what in SHORT PART; do
        run --separate-stderr shimmed "pread:.ingot:%2:$what" "$INGOT" load -d host --engine ring phi3-pocket
        [ "$status" -eq 0 ]
    done
}

@test "D05 O_DIRECT refused at open or at read: one notice, the same bytes" {
    build_shim
    convert_pocket
    for rule in "odirect:.ingot:*:EINVAL" "uring:*:*:EPERM;rdirect:.ingot:%3:EINVAL"; do
        run --separate-stderr shimmed "$rule" "$INGOT" load -d host --engine direct phi3-pocket
        echo "$rule: $status $stderr"
        [ "$status" -eq 0 ]
        grep -q 'loaded and verified' <<<"$output"
        [ "$(grep -c 'direct reads are refused' <<<"$stderr")" = 1 ]
    done
    # No io_uring: by plain reads past the cache.
    run --separate-stderr shimmed "uring:*:*:EPERM" "$INGOT" load -d host --engine direct --json phi3-pocket
    [ "$status" -eq 0 ]
    [ "$(field loads.0.read_by.direct <<<"$output")" -gt 11000000 ]
    # A file system that has none.
    [ -w /dev/shm ] || skip "no tmpfs"
    shm=$(mktemp -d /dev/shm/ingot-XXXXXX)
    cp -r "$INGOT_STORE/." "$shm"
    run --separate-stderr "$INGOT" load -s "$shm" -d host --engine direct phi3-pocket
    rm -rf "$shm"
    [ "$status" -eq 0 ]
}

@test "load: --drop-cache reads from the disk, and says when it cannot" {
    convert_pocket
    run --separate-stderr ingot load -d host --drop-cache --json phi3-pocket
    [ "$status" -eq 0 ]
    left=$(field resident_before <<<"$output")
    if [ "$left" -gt 0 ]; then
        grep -q 'still in the page cache' <<<"$stderr"
    else
        [ "$(field loads.0.read_by.direct <<<"$output")" -gt 11000000 ]
    fi
}

@test "F01 F02 its own memory is what it was told, and what it says" {
    convert_pocket
    for limit in 6M 24M 65M 1025M; do
        ingot load -d host --json --limit-memory $limit phi3-pocket >j
        asked=$(field loads.0.pinned_asked <j)
        real=$(field loads.0.pinned <j)
        [ "$real" -eq "$asked" ]
        [ "$real" -le "$((${limit%M} * 1000000))" ]
        [ "$real" -le $((128 << 20)) ]
    done
    (ulimit -l 64 && ingot load -d host phi3-pocket >out)
    grep -q 'loaded and verified' out
}

@test "D09 shared memory that is full or absent is not needed" {
    skip_unless_root
    convert_pocket
    run --separate-stderr unshare -m bash -c '
        mount -t tmpfs -o size=64k,ro tmpfs /dev/shm || exit 77
        "$0" load -d host phi3-pocket' "$INGOT"
    [ "$status" -ne 77 ] || skip "no mounts here"
    [ "$status" -eq 0 ]
}

@test "load: as a user who does not own the pack" {
    skip_unless_root
    convert_pocket
    chmod -R a+rX "$INGOT_STORE" "$BATS_TEST_TMPDIR"
    bin=$BATS_TEST_TMPDIR/bin
    cp "$(program)" "$bin" && chmod 755 "$bin"
    d=$BATS_TEST_TMPDIR
    while [ "$d" != / ]; do
        chmod a+x "$d" 2>/dev/null || true
        d=$(dirname "$d")
    done
    run --separate-stderr setpriv --reuid 65534 --regid 65534 --clear-groups \
        "$bin" load -s "$INGOT_STORE" -d host phi3-pocket
    echo "$status $stderr"
    [ "$status" -eq 0 ]
    grep -q 'loaded and verified' <<<"$output"
}

@test "load: a signal stops it" {
    convert_pocket
    "$INGOT" load -q -d host --repeat 100000 phi3-pocket >/dev/null 2>err &
    pid=$!
    sleep 0.5
    kill -TERM $pid
    code=0
    wait $pid || code=$?
    [ "$code" -eq 4 ] || [ "$code" -eq 143 ]
    ! grep -q 'Sanitizer' err
}
