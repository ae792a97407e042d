#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The store: names, index, gc, and the commands ls, tag, rm, gc, reindex, find.

load common

setup() {
    setup_store
    three=$(model phi3-pocket)
    four=$(model phi4-pocket)
}

# of NAME EXPRESSION: evaluate Python on m, the entry of a model in ls --json.
of() {
    "$INGOT" ls --json "$1" | json "(lambda m: $2)(d['models'][0])"
}

age() { # PACK-OR-NAME: make its files two hours old
    local d
    d=$(of "$1" 'm["digest"].split(":")[1]')
    touch -d '2 hours ago' "$INGOT_STORE/packs/$d".*
}

packs() {
    find "$INGOT_STORE/packs" -name '*.ingot' | wc -l
}

# Run without the right to write where the mode forbids it, even as root.
unprivileged() {
    setpriv --bounding-set=-all --inh-caps=-all -- "$@"
}

# A preloaded flock: FAIL makes it fail with ENOLCK, else it succeeds for everyone.
flock_shim() {
    cat >flock.c <<'END'
#include <errno.h>
#include <stdlib.h>
#include <sys/file.h>
int flock(int fd, int how)
{
    (void)fd, (void)how;
    if (!getenv("FAIL")) return 0;
    errno = ENOLCK;
    return -1;
}
END
    ${CC:-gcc} -shared -fPIC -o flock.so flock.c || skip "no C compiler"
    asan=$(ldd "$(program)" | awk '/libasan|libclang_rt.asan/ { print $3 }')
    flock_so="$asan $PWD/flock.so"
}

@test "ls: an absent store is an empty one, and stays absent" {
    run --separate-stderr ingot ls
    [ "$status" -eq 0 ]
    [ -z "$output" ]
    run --separate-stderr ingot ls --json
    [ "$(json 'd["models"]' <<<"$output")" = "[]" ]
    run --separate-stderr ingot gc
    [ "$status" -eq 0 ]
    for cmd in "rm x" "tag x y"; do
        # shellcheck disable=SC2086
        run --separate-stderr ingot $cmd
        [ "$status" -eq 3 ]
        one_error_line
    done
    [ ! -e "$INGOT_STORE" ]
}

@test "ls: names in natural order, packs without a name by digest, patterns" {
    ingot convert -q -n m-10 "$three"
    ingot tag m-10 m-9
    ingot tag m-10 org/model
    ingot convert -q -n gone "$four"
    hex=$(of gone 'm["digest"].split(":")[1]')
    ingot rm -q gone
    run --separate-stderr ingot ls
    [ "$status" -eq 0 ]
    [ -z "$stderr" ]
    [ "${#lines[@]}" -eq 5 ]
    [[ ${lines[0]} == "NAME "* ]]
    [[ ${lines[1]} == "m-9 "* ]]
    [[ ${lines[2]} == "m-10 "* ]]
    [[ ${lines[3]} == "org/model "* ]]
    [[ ${lines[4]} == "${hex:0:12} "* ]]
    [ "$(ingot ls -0 'm-*' | tr '\0' ' ')" = "m-9 m-10 " ]
    [ "$(ingot ls -0 "$hex" | tr '\0' ' ')" = "$hex " ]
    [ "$(ingot ls -0 'org*' | tr '\0' ' ')" = "org/model " ]
    ingot ls -l | grep -q "fsverity-sha256:$hex"
    [ "$(of org/model 'm["derivation"]')" = identity ]
}

@test "ls: a damaged pack and a name without its pack are shown as what they are" {
    ingot convert -q -n bad "$three"
    ingot convert -q -n good "$four"
    ingot convert -q -n gone --dtype f32 "$four"
    hex=$(of bad 'm["digest"].split(":")[1]')
    rm -f "$INGOT_STORE/packs/$(of gone 'm["digest"].split(":")[1]').ingot"
    chmod u+w "$INGOT_STORE/packs/$hex.ingot"
    truncate -s 70000 "$INGOT_STORE/packs/$hex.ingot"
    for i in 1 2; do
        run --separate-stderr ingot ls
        [ "$status" -eq 0 ]
        grep -q "^bad .*damaged" <<<"$output"
        grep -q "^gone .*missing" <<<"$output"
        grep -q "$hex.ingot" <<<"$stderr"
        [ "$(of good 'm["state"]')" = ok ]
    done
    reject 3 gone missing -- ingot tag gone there
    # gc cannot know what the damaged one was derived from, and says so
    reject 3 bad "$hex" -- ingot gc --all-ages
    ingot rm -q bad
    ingot gc --all-ages
    [ "$(packs)" -eq 1 ]
}

@test "names: a malformed name file is named, and can be replaced or removed" {
    ingot convert -q -n m "$three"
    printf 'fsverity-sha256:12 x\n' >"$INGOT_STORE/names/x"
    cp "$INGOT_STORE/names/m" "$INGOT_STORE/names/m.bak"
    for name in x m.bak; do
        run --separate-stderr ingot rm $name
        [ "$status" -eq 3 ]
        grep -q "names/$name" <<<"$stderr"
        one_error_line
    done
    run --separate-stderr ingot ls
    [ "$status" -eq 0 ]
    grep -q names/x <<<"$stderr"
    [ "$(ingot ls -0 2>/dev/null | tr '\0' ' ')" = "m " ]
    reject 3 names/x -- ingot gc
    ingot tag -f m x
    ingot rm -f m.bak
    ingot gc
}

@test "tag: syntax, case folding, replacing only with -f" {
    ingot convert -q -n m "$three"
    for name in .m a:b a@b deadbeef 0123456789 x.ingot a/b/c/d/e m/ /m 'a b' ''; do
        reject 2 name -- ingot tag m "$name"
    done
    ingot tag m Org/Model
    reject 3 case Org/Model -- ingot tag m org/model
    reject 3 folder -- ingot tag m Org/Model/x
    reject 3 folder -- ingot tag m org
    ingot convert -q -n n "$four"
    reject 3 'already points' -- ingot tag n Org/Model
    ingot tag -f n Org/Model
    [ "$(of Org/Model 'm["digest"]')" = "$(of n 'm["digest"]')" ]
    run --separate-stderr ingot tag --json n q
    [ "$(json 'd["name"]' <<<"$output")" = q ]
    # a path is taken by its digest, and only when that pack is here
    ingot tag "$INGOT_STORE/packs/$(of n 'm["digest"].split(":")[1]').ingot" by-path
    cp "$INGOT_STORE/packs/$(of n 'm["digest"].split(":")[1]').ingot" x.ingot
    reject 2 x.ingot digest -- ingot tag x.ingot other
    reject 3 'did you mean' by-path -- ingot tag by-pth other
}

@test "rm: names go, a digest only with -f, empty folders go too" {
    ingot convert -q -n a/b/c "$three"
    ingot tag a/b/c x
    d=$(of x 'm["digest"]')
    reject 3 'still named' -- ingot rm "$d"
    run --separate-stderr ingot rm a/b/c
    [ "$status" -eq 0 ]
    grep -q "still named x" <<<"$output"
    [ ! -e "$INGOT_STORE/names/a" ]
    reject 3 'did you mean "x"' -- ingot rm y
    reject 2 path -- ingot rm ./x
    reject 3 nothere -- ingot rm x nothere
    run --separate-stderr ingot rm -f "${d:0:30}"
    [ "$status" -eq 0 ]
    grep -q "gc will free" <<<"$output"
    [ -z "$(ls -A "$INGOT_STORE/names")" ]
    [ "$(packs)" -eq 1 ]
}

@test "rm: says what gc will free, and gc frees that much" {
    ingot convert -q -n m "$three"
    age m
    run --separate-stderr ingot rm --json m
    bytes=$(json 'd["gc_bytes"]' <<<"$output")
    [ "$bytes" -gt 100000 ]
    [ "$(json 'd["packs"][0]["state"]' <<<"$output")" = free ]
    run --separate-stderr ingot gc --dry-run --json
    [ "$(json 'd["freed_bytes"]' <<<"$output")" = "$bytes" ]
    [ "$(packs)" -eq 1 ]
    run --separate-stderr ingot gc --json
    [ "$(json 'd["freed_bytes"]' <<<"$output")" = "$bytes" ]
    [ -z "$(ls -A "$INGOT_STORE/packs")" ]
}

@test "gc: spares names, the young, and what kept packs were derived from" {
    ingot convert -q -n base "$four"
    ingot convert -q -n half --dtype f32 "$four"
    ingot convert -q -n other "$three"
    ingot rm -q base other
    ingot gc
    [ "$(packs)" -eq 3 ]
    run --separate-stderr ingot gc --all-ages --json
    [ "$(json 'sorted(p["state"] for p in d["packs"])' <<<"$output")" = '["free", "named", "parent"]' ]
    [ "$(packs)" -eq 2 ]
    run --separate-stderr ingot rm half
    grep -q 'gc will free' <<<"$output"
    ingot gc --all-ages
    [ "$(packs)" -eq 0 ]
    [ -z "$(ls -A "$INGOT_STORE/packs")" ]
}

@test "gc: takes what lies beside a pack, old strays and dead temporaries, nothing else" {
    ingot convert -q -n m "$three"
    d=$(of m 'm["digest"].split(":")[1]')
    mkdir -p "$INGOT_STORE/packs/$d.sigs/more"
    echo '{}' >"$INGOT_STORE/packs/$d.sigs/more/a.json"
    stray=$(printf '%064d' 5)
    echo x >"$INGOT_STORE/packs/$stray.tree"
    echo x >"$INGOT_STORE/packs/$(printf '%064d' 6).tree"
    touch -d '2 hours ago' "$INGOT_STORE/packs/$stray.tree"
    echo x >"$INGOT_STORE/packs/notes.txt"
    echo x >"$INGOT_STORE/packs/.tmp-1-0123456789abcdef"
    echo x >"$INGOT_STORE/names/.tmp-1-0123456789abcdef"
    ingot gc
    [ "$(find "$INGOT_STORE" -name '.tmp*')" = "" ]
    [ ! -e "$INGOT_STORE/packs/$stray.tree" ]
    [ -e "$INGOT_STORE/packs/$(printf '%064d' 6).tree" ]
    [ -e "$INGOT_STORE/packs/$d.sigs/more/a.json" ]
    ingot rm -q m
    ingot gc --all-ages
    [ "$(ls "$INGOT_STORE/packs")" = notes.txt ]
}

@test "gc: a loader that has the pack open keeps it" {
    ingot convert -q -n m "$three"
    exec 9<"$INGOT_STORE/packs/$(of m 'm["digest"].split(":")[1]').ingot"
    want=$(of m 'm["size"]')
    ingot rm -q m
    ingot gc -q --all-ages
    [ "$(packs)" -eq 0 ]
    [ "$(wc -c <&9)" = "$want" ]
    exec 9<&-
}

@test "find: by tensor, digest and source file" {
    ingot convert -q -n three "$three"
    ingot convert -q -n four "$four"
    run --separate-stderr ingot find --tensor '*embed_tokens*'
    [ "$status" -eq 0 ]
    [ "${#lines[@]}" -eq 3 ]
    run --separate-stderr ingot find --json --tensor model.norm.weight
    [ "$(json 'sorted(n for m in d["matches"] for n in m["names"])' <<<"$output")" = '["four", "three"]' ]
    hex=$(json 'd["matches"][0]["digest"].split(":")[1]' <<<"$output")
    run --separate-stderr ingot find --json --digest "${hex:0:16}"
    [ "$(json 'd["matches"][0]["tensor"]' <<<"$output")" = model.norm.weight ]
    sha=$(sha256sum <"$four/model.safetensors" | cut -d' ' -f1)
    run --separate-stderr ingot find --json --sha256 "sha256:$sha"
    [ "$(json 'd["matches"][0]["file"]' <<<"$output")" = model.safetensors ]
    [ "$(json 'd["matches"][0]["names"]' <<<"$output")" = '["four"]' ]
    [ "$(ingot find -0 --sha256 "$sha" | tr '\0' ' ')" = "four model.safetensors " ]
    run --separate-stderr ingot find --tensor nothing.like.it
    [ "$status" -eq 1 ]
    [ -z "$output" ]
    run --separate-stderr ingot find --digest xyz
    [ "$status" -eq 2 ]
    run --separate-stderr ingot find
    [ "$status" -eq 2 ]
    ingot tag "sha256:$sha" by-hash
    [ "$(of by-hash 'm["digest"]')" = "$(of four 'm["digest"]')" ]
}

@test "index: damaged, cut, foreign or absent, the answers are the same" {
    ingot convert -q -n three "$three"
    ingot convert -q -n four "$four"
    index=$INGOT_STORE/index.mdb
    want=$(ingot ls --json)
    [ -e "$index" ]
    good=$(sha256sum <"$index")
    size=$(stat -c %s "$index")
    for at in 0 20 4100 $((size / 2)) $((size - 4096)) $((size - 4060)); do
        patch "$index" "$at"
        run --separate-stderr ingot ls --json
        [ "$status" -eq 0 ]
        [ "$output" = "$want" ]
        grep -q 'index.mdb' <<<"$stderr"
        [ "$(sha256sum <"$index")" = "$good" ]
    done
    truncate -s 5000 "$index"
    [ "$(ingot ls --json 2>/dev/null)" = "$want" ]
    head -c 100000 /dev/urandom >"$index"
    [ "$(ingot ls --json 2>/dev/null)" = "$want" ]
    rm "$index"
    [ "$(ingot ls --json)" = "$want" ]
    run --separate-stderr ingot reindex --json
    [ "$(json 'd["packs"]' <<<"$output")" = 2 ]
    [ "$(ingot ls --json)" = "$want" ]
}

@test "E02 a read-only mount: everything that reads works and writes nothing" {
    skip_unless_root
    unshare -m true 2>/dev/null || skip "cannot unshare mounts"
    ingot convert -q -n m "$three"
    ingot ls >/dev/null
    want=$(ingot ls --json)
    for index in kept gone; do
        [ $index = kept ] || rm -f "$INGOT_STORE/index.mdb"
        before=$(find "$INGOT_STORE" -printf '%p %T@ %s\n' | sort)
        # shellcheck disable=SC2016
        run --separate-stderr unshare -m sh -c '
            mount --bind "$INGOT_STORE" "$INGOT_STORE" && mount -o remount,ro,bind "$INGOT_STORE" ||
                exit 77
            "$INGOT" ls --json && "$INGOT" find -0 --tensor "*" >/dev/null &&
                "$INGOT" gc --dry-run >/dev/null || exit 1
            "$INGOT" tag m n; test $? -eq 4 || exit 2
            "$INGOT" rm m; test $? -eq 4 || exit 3
            "$INGOT" gc; test $? -eq 4 || exit 4
            "$INGOT" reindex; test $? -eq 4 || exit 5'
        [ "$status" -ne 77 ] || skip "cannot bind-mount"
        echo "$status $stderr"
        [ "$status" -eq 0 ]
        [ "$output" = "$want" ]
        [ "$(grep -c "$INGOT_STORE.*EROFS" <<<"$stderr")" -ge 4 ]
        [ "$(find "$INGOT_STORE" -printf '%p %T@ %s\n' | sort)" = "$before" ]
    done
}

@test "E02 a store of another user: everything that reads works and writes nothing" {
    skip_unless_root
    unprivileged true 2>/dev/null || skip "no setpriv"
    ingot convert -q -n m "$three"
    rm -f "$INGOT_STORE/lock" "$INGOT_STORE/index.mdb"
    find "$INGOT_STORE" -type d -exec chmod 0555 {} + -o -type f -exec chmod 0444 {} +
    chown -R 12345 "$INGOT_STORE"
    before=$(store_state)
    run --separate-stderr unprivileged "$INGOT" ls
    [ "$status" -eq 0 ]
    [ "$(unprivileged "$INGOT" find -0 --tensor model.norm.weight | tr '\0' ' ')" = "m model.norm.weight " ]
    for cmd in "tag m n" "rm m" gc reindex "convert -n x $four"; do
        # shellcheck disable=SC2086
        reject 4 EACCES "$INGOT_STORE" -- unprivileged "$INGOT" $cmd
    done
    [ "$(store_state)" = "$before" ]
    [ ! -e "$INGOT_STORE/lock" ]
}

@test "E06 a file system without locks: reading works, publishing says why it does not" {
    ingot convert -q -n m "$three"
    flock_shim
    run --separate-stderr env FAIL=1 LD_PRELOAD="$flock_so" "$INGOT" ls
    [ "$status" -eq 0 ]
    for cmd in "tag m n" "rm m" gc; do
        # shellcheck disable=SC2086
        reject 4 lock ENOLCK -- env FAIL=1 LD_PRELOAD="$flock_so" "$INGOT" $cmd
    done
}

@test "C04 a file system where everybody gets the lock: converts, tags and gc at once" {
    ingot convert -q -n m "$three"
    want=$(of m 'm["digest"]')
    flock_shim
    export LD_PRELOAD=$flock_so
    for i in $(seq 10); do
        "$INGOT" convert -q -f -n a "$three" 2>e1 & a=$!
        "$INGOT" convert -q -f -n a "$three" 2>e2 & b=$!
        "$INGOT" gc -q 2>e3 & c=$!
        "$INGOT" tag -q m "tag$i" 2>e4 & t=$!
        for e in "$a:e1" "$b:e2" "$c:e3" "$t:e4"; do
            wait "${e%:*}" || flunk "round $i: $(cat "${e#*:}")"
        done
    done
    unset LD_PRELOAD
    [ "$(of a 'm["digest"]')" = "$want" ]
    [ "$(ingot ls -0 'tag*' | tr -cd '\0' | wc -c)" -eq 10 ]
    no_leftovers
}

@test "E04 two thousand packs in one store" {
    skip_unless_slow
    fx small seed
    ingot convert -q -n seed seed
    pack=$INGOT_STORE/packs/$(of seed 'm["digest"].split(":")[1]').ingot
    for i in $(seq 2000); do cp --reflink=auto "$pack" "$INGOT_STORE/packs/$(printf '%064x' "$i").ingot"; done
    [ "$(ingot ls -0 | tr -cd '\0' | wc -c)" -eq 2001 ]
    [ "$(ingot ls -0 | tr -cd '\0' | wc -c)" -eq 2001 ]
    ingot reindex | grep -q '^2001 packs (0 damaged)'
}
