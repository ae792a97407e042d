#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Trouble with the operating system and the storage.

load common

# small_store SIZE: mount a tmpfs of that many bytes as the store; teardown unmounts it.
small_store() {
    skip_unless_root
    mkdir -p "$INGOT_STORE"
    mount -t tmpfs -o size="$1" none "$INGOT_STORE" 2>/dev/null || skip "cannot mount a tmpfs"
}

teardown() {
    if mountpoint -q "$BATS_TEST_TMPDIR/store"; then umount -l "$BATS_TEST_TMPDIR/store"; fi
    if [ -d "$BATS_TEST_TMPDIR/cg" ]; then
        rmdir "$BATS_TEST_TMPDIR/cg/ingot-test" 2>/dev/null || true
        umount "$BATS_TEST_TMPDIR/cg" 2>/dev/null || true
    fi
}

@test "D01 a pack truncated after it was converted" {
    fx p3 m
    ingot convert -q m
    p=$(pack m)
    truncate -s 100000 "$p"
    for how in "" --fast --quick; do
        # shellcheck disable=SC2086
        run --separate-stderr ingot verify $how m
        [ "$status" -eq 1 ]
        grep -q 100000 <<<"$output$stderr"
    done
    run --separate-stderr ingot export m out
    [ "$status" -eq 3 ] || [ "$status" -eq 4 ]
    one_error_line
    [ ! -e out ]
}

@test "D03 the store inside the source folder" {
    fx p3s m
    INGOT_STORE=$PWD/m/store
    accept -- ingot convert m
    d=$(digest m)
    accept -- ingot convert m
    [ "$(digest m)" = "$d" ]
}

@test "D03 converted again while a reader holds the old pack" {
    fx p3 m
    ingot convert -q m
    p=$(pack m)
    before=$(sha256sum <"$p")
    exec 9<"$p"
    patch m/model.safetensors 5000
    accept -- ingot convert -f m
    [ "$(pack m)" != "$p" ]
    [ "$(sha256sum <&9)" = "$before" ]
    exec 9<&-
    # a damaged pack is healed by a new file; who has it open keeps what was open
    patch m/model.safetensors 5000
    patch "$p" 70000
    exec 9<"$p"
    accept -- ingot convert -f m
    [ "$(sha256sum <"$p")" = "$before" ]
    [ "$(sha256sum <&9)" != "$before" ]
    exec 9<&-
}

@test "D04 a store that is too small, by a page, 1 MB and half a model" {
    src=$(model phi3-pocket)
    INGOT_STORE=$PWD/big ingot convert -q "$src"
    size=$(stat -c %s big/packs/*.ingot)
    fx small seed
    for less in 4096 1000000 $((size / 2)); do
        small_store $((size - less))
        ingot convert -q seed
        reject 4 'space|ENOSPC' '[0-9]{8}' -- ingot convert -n big "$src"
        verified
        run ingot show big
        [ "$status" -ne 0 ]
        mount -o remount,size=100000000 none "$INGOT_STORE"
        accept -- ingot convert -n big "$src"
        umount "$INGOT_STORE"
    done
}

@test "D04 killed at 20 random moments" {
    src=$(model phi3-pocket)
    fx small seed
    accept -- ingot convert seed
    start=$(date +%s%N)
    ingot convert -q -n whole "$src"
    took=$((($(date +%s%N) - start) / 1000000))
    ingot export whole whole
    d=$(digest whole)
    rm -rf "$INGOT_STORE" && ingot convert -q seed
    RANDOM=4
    for _ in $(seq 20); do
        ingot convert -q -n big "$src" & pid=$!
        sleep "$("$PYTHON" -c "print($((RANDOM % (took + 1))) / 1000)")"
        kill -9 $pid 2>/dev/null || true
        wait $pid || true
        run --separate-stderr ingot verify --all
        [ "$status" -eq 0 ]
        if ingot show big >/dev/null 2>&1; then
            [ "$(digest big)" = "$d" ]
            rm -rf "$INGOT_STORE" && ingot convert -q seed
        fi
    done
    accept -- ingot convert -n big "$src"
    [ "$(digest big)" = "$d" ]
    [ "$(find "$INGOT_STORE/packs" -type f | wc -l)" = "$(find "$INGOT_STORE/packs" -type f \
        ! -name '.*' ! -name '*tmp*' | wc -l)" ]
}

@test "D04 a limit on the size of files" {
    fx p3 m
    fx small seed
    ingot convert -q seed
    limited() { (ulimit -f 100 && exec "$INGOT" convert m); }
    reject 4 'large|limit|EFBIG|space' -- limited
    accept -- ingot convert m
}

@test "D05 a store on shared memory" {
    [ -w /dev/shm ] || skip "no /dev/shm"
    fx p3s m
    ingot convert -q m
    d=$(digest m)
    INGOT_STORE=$(mktemp -d /dev/shm/ingot-test.XXXXXX)
    accept -- ingot convert m
    [ "$(digest m)" = "$d" ]
    round_trip m m
    rm -r "$INGOT_STORE"
}

@test "D07 convert and verify in less address space than the model has bytes" {
    ! has_sanitizer || skip "a sanitizer reserves address space"
    fx sparse m 512
    bounded() { (ulimit -v 480000 && exec "$INGOT" "$@"); }
    bounded convert -q --threads 2 m
    bounded verify --threads 2 m
    bounded export -q m out
    cmp m/model.safetensors out/model.safetensors
}

@test "D07 memory of its own stays below the documented bound" {
    ! has_sanitizer || skip "a sanitizer needs memory of its own"
    fx sparse m 256
    for command in "convert m" "verify m"; do
        # shellcheck disable=SC2086
        run --separate-stderr peak "$INGOT" $command
        [ "$status" -eq 0 ]
        echo "$command: $output KiB"
        [ "$output" -lt $((128 * 1024 + 24 * 1024)) ]
    done
}

@test "D07 a cgroup of 512 MB, a model of 1.2 GB" {
    skip_unless_slow
    skip_unless_root
    mkdir cg
    mount -t cgroup -o memory none cg 2>/dev/null || skip "no memory controller (cgroup v1)"
    mkdir cg/ingot-test
    echo $((512 << 20)) >cg/ingot-test/memory.limit_in_bytes
    fx noisy m 1200
    inside() { (echo $BASHPID >cg/ingot-test/cgroup.procs && exec "$INGOT" "$@"); }
    inside convert -q m
    inside verify m
    [ "$(sed -n 's/^oom_kill //p' cg/ingot-test/memory.oom_control)" = 0 ]
    inside export -q m out
    diff -r m out
}

# in_mounts SCRIPT: run it where mounts are private.
in_mounts() {
    skip_unless_root
    unshare -m true 2>/dev/null || skip "cannot unshare mounts"
    unshare -m bash -ec "$1"
}

@test "D09 shared memory small and full, read-only, or absent" {
    [ -d /dev/shm ] || skip "no /dev/shm"
    fx p3s m
    in_mounts "mount -t tmpfs -o size=64k none /dev/shm; head -c 65536 /dev/zero >/dev/shm/x || true
        '$INGOT' convert -q -n full m; '$INGOT' verify full"
    in_mounts "mount -t tmpfs -o ro none /dev/shm; '$INGOT' convert -q -n ro m; '$INGOT' verify ro"
    in_mounts "umount -l /dev/shm 2>/dev/null || mount -t tmpfs -o ro,mode=0 none /dev/shm
        '$INGOT' convert -q -n absent m; '$INGOT' verify absent"
    verified
}

@test "D09 a full shared memory as the store is ENOSPC, not a signal" {
    small_store 64k
    fx p3s m
    reject 4 'space|ENOSPC' -- ingot convert m
}

@test "E02 convert into a read-only store" {
    skip_unless_root
    fx small seed
    fx p3 m
    accept -- ingot convert seed
    mount --bind "$INGOT_STORE" "$INGOT_STORE" 2>/dev/null || skip "cannot bind-mount"
    mount -o remount,ro,bind "$INGOT_STORE"
    reject 4 'read-only' store -- ingot convert m
    ingot verify seed
    ingot show seed
}
