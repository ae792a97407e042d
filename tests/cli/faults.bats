#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# System calls that fail at a chosen moment (tests/shim/shim.c).

load common

setup_file() {
    build_shim
}

setup() {
    setup_store
    fx small seed
    ingot convert -q seed
}

ONE=model-00001-of-00002
TWO=model-00002-of-00002

@test "D01 EIO at one offset of a source" {
    src=$(model phi3-pocket)
    for rule in "pread:$ONE:2:EIO" "pread:$TWO:3:EIO"; do
        file=${rule#pread:}
        reject 4 "${file%%:*}" 'input/output' -- shimmed "$rule" "$INGOT" convert "$src"
    done
}

@test "D01 EIO at one offset of a pack" {
    src=$(model phi3-pocket)
    ingot convert -q "$src"
    p=$(pack phi3-pocket)
    for nth in 1 2 4 9; do
        run --separate-stderr shimmed "pread:packs/:$nth:EIO" "$INGOT" verify phi3-pocket
        [ "$status" -eq 4 ] || [ "$status" -eq 1 ]
        grep -qi "$(basename "$p")" <<<"$output$stderr"
        run --separate-stderr shimmed "pread:packs/:$nth:EIO" "$INGOT" export phi3-pocket out
        [ "$status" -eq 4 ]
        one_error_line
        [ ! -e out ] || [ -z "$(ls -A out)" ]
    done
}

@test "D01 a source cut while it is read" {
    fx p3s m
    cp -r m fresh
    for nth in 1 2 3; do
        rm -rf m && cp -r fresh m
        shimmed "pread:$TWO:$nth:CUT" true
        run --separate-stderr shimmed "pread:$TWO:$nth:CUT" "$INGOT" convert m
        echo "$nth: $status $stderr"
        [ "$(stat -c %s m/$TWO.safetensors)" = "$(stat -c %s fresh/$TWO.safetensors)" ] && continue
        [ "$status" -eq 3 ] || [ "$status" -eq 4 ]
        grep -q $TWO <<<"$stderr"
        one_error_line
        no_leftovers
        run ingot show m
        [ "$status" -ne 0 ]
    done
}

@test "D01 a pack cut while it is verified" {
    src=$(model phi3-pocket)
    for nth in 1 3 6 9; do
        ingot convert -q "$src"
        p=$(pack phi3-pocket)
        chmod u+w "$p"
        size=$(stat -c %s "$p")
        run --separate-stderr shimmed "pread:packs/:$nth:CUT" "$INGOT" verify phi3-pocket
        echo "$nth: $status $output $stderr"
        if [ "$(stat -c %s "$p")" != "$size" ]; then
            [ "$status" -eq 1 ] || [ "$status" -eq 4 ]
            grep -q "$(basename "$p")" <<<"$output$stderr"
        fi
        rm -f "$p"
    done
}

@test "D03 a source edited in the middle of the run" {
    fx p3s m
    for what in TOUCH FLIP; do
        for nth in 2 3; do
            reject 3 $TWO changed -- shimmed "pread:$TWO:$nth:$what" "$INGOT" convert m
        done
    done
    accept -- ingot convert m
}

@test "D01 what cannot be looked at is not taken for absent" {
    ingot tag -q seed dir/name
    for rule in stat:names/dir:1:EIO stat:dir/name:1:EIO stat:packs/:1:EIO pread:dir/name:1:EIO \
        open:dir/name:1:EACCES readdir:names:1:EIO; do
        for command in "gc --all-ages" "tag seed dir2/other"; do
            # tag knows the name, which is enough, and looks at one pack only
            [[ $rule$command != [po]*tag* && $rule$command != *packs*tag* ]] || continue
            # shellcheck disable=SC2086
            reject 4 "store/(names|packs)" -- shimmed "$rule" "$INGOT" $command
        done
    done
    accept -- ingot gc --all-ages
    digest dir/name
}

@test "D01 a pack that cannot be read stops gc where it may be a parent, a damaged one does not" {
    fx p3s m
    ingot convert -q m
    ingot convert -q --dtype f32 m
    parent=$(pack m)
    ingot rm -q m
    ingot gc --all-ages
    [ -e "$parent" ]
    rm "$INGOT_STORE/index.mdb"
    before=$(store_state)
    for rule in "pread:$(basename "$parent"):*:EIO" "open:$(basename "$parent"):*:EACCES"; do
        reject 4 "$(basename "$parent")" 'nothing is freed' -- shimmed "$rule" "$INGOT" gc --all-ages
    done
    [ "$(store_state)" = "$before" ]
    patch "$parent" 0
    ingot gc --all-ages
    [ ! -e "$parent" ]
    verified
}

@test "D01 a source that cannot be read is not taken for another kind of file" {
    fx p3s m
    echo '{"mediaType":"application/vnd.dev.sigstore.bundle.v0.3+json"}' >m/model.sig
    ln -s ../m linked && mkdir l && cp -r m/* l && mv l/config.json c && ln -s ../c l/config.json
    for rule in pread:model.sig:1:EIO pread:model.sig:2:EIO pread:m/config.json:1:EIO \
        pread:index.json:1:EIO; do
        reject 4 'm/' EIO -- shimmed "$rule" "$INGOT" convert m
    done
    reject 4 config.json EIO -- shimmed "stat:l/config.json:2:EIO" "$INGOT" convert l
    accept -- ingot convert m
    [ -n "$(ls "$INGOT_STORE"/packs/*.sigs)" ]
}

@test "D01 what verify --source cannot read does not pass for equal" {
    fx p3s original
    ingot convert -q -n m original
    ingot verify --source original m
    for rule in stat:original:1:EIO stat:original/config.json:1:EIO open:original/config.json:1:EIO \
        pread:original/config.json:1:EIO "open:original/$ONE:1:EACCES" "pread:original/$ONE:1:EIO"; do
        reject 4 'original' -- shimmed "$rule" "$INGOT" verify --source original m
    done
}

@test "D04 no space left, at every write" {
    fx p3 m
    for nth in 1 2 3 4 5 6 7 8; do
        run --separate-stderr shimmed "pwrite:store/:$nth:ENOSPC" "$INGOT" convert m
        echo "$nth: $status $stderr"
        [ "$status" -ne 0 ] || break
        [ "$status" -eq 4 ]
        grep -qi space <<<"$stderr"
        one_error_line
        no_leftovers
        run ingot show m
        [ "$status" -ne 0 ]
        verified
    done
    accept -- ingot convert m
}

@test "D04 preallocation refused" {
    fx p3 m
    reject 4 space -- shimmed "fallocate:store/:1:ENOSPC;ftruncate:store/:1:ENOSPC" \
        "$INGOT" convert m
    accept -- shimmed "fallocate:store/:*:EOPNOTSUPP" "$INGOT" convert m
    for f in blocks g10 small; do # padding behind the last row, which nobody writes
        fx $f $f
        accept -- shimmed "fallocate:store/:*:EOPNOTSUPP" "$INGOT" convert -n n/$f $f
    done
}

@test "D04 errors that only fsync, close, link or rename report" {
    fx p3 m
    for rule in fsync:store/packs:1:EIO fsync:store/packs:1:ENOSPC close:store/packs:1:EIO \
        link:packs:1:EIO rename:names:1:EIO fsync:names:1:EIO; do
        run --separate-stderr shimmed "$rule" "$INGOT" convert m
        echo "$rule: $status $stderr"
        if [ "$status" -ne 0 ]; then
            [ "$status" -eq 4 ]
            one_error_line
            run ingot show m
            [ "$status" -ne 0 ]
        else
            # tolerated only where the call is not the one that reports the pack's bytes
            [[ $rule != fsync:store/packs:1:* ]]
        fi
        no_leftovers
        verified
        rm -rf "$INGOT_STORE" && ingot convert -q seed
    done
    accept -- ingot convert m
}

@test "D04 killed at each write, fsync, link and rename" {
    fx p3 m
    for op in pwrite fsync link rename ftruncate fallocate close; do
        for nth in 1 2 3 4 6 9; do
            run --separate-stderr shimmed "$op:store/:$nth:KILL" "$INGOT" convert -n m m
            [ "$status" -eq 137 ] || continue
            run --separate-stderr ingot verify --all
            [ "$status" -eq 0 ]
            run --separate-stderr ingot convert -n m m
            [ "$status" -eq 0 ]
            verified
            rm -rf "$INGOT_STORE" && ingot convert -q seed
        done
    done
}

@test "D04 publishing refused" {
    fx p3 m
    for rule in "link:packs:1:ENOENT" "link:packs:1:EXDEV"; do
        reject 4 'publish|link' -- shimmed "$rule" "$INGOT" convert m
    done
    accept -- ingot convert m
}

@test "D04 without O_TMPFILE: the same, and a killed run's temporary is taken back" {
    fx p3s m
    no="tmpfile:*:*:EOPNOTSUPP"
    accept -- shimmed "$no" "$INGOT" convert m
    d=$(digest m)
    for op in pwrite fsync link rename close; do
        for nth in 1 2 3 5 8; do
            rm -rf "$INGOT_STORE" && ingot convert -q seed
            run --separate-stderr shimmed "$no;$op:store/:$nth:KILL" "$INGOT" convert m
            [ "$status" -eq 137 ] || continue
            run --separate-stderr ingot verify --all
            [ "$status" -eq 0 ]
            # the next run takes the space back
            ingot convert -q m
            verified
            [ "$(digest m)" = "$d" ]
        done
    done
    rm -rf "$INGOT_STORE" && ingot convert -q seed
    reject 4 space -- shimmed "$no;pwrite:store/:3:ENOSPC" "$INGOT" convert m
}

@test "D05 O_DIRECT refused at open, or at the first read" {
    src=$(model phi3-pocket)
    accept -- shimmed "odirect:*:*:EINVAL" "$INGOT" convert "$src"
    shimmed "odirect:*:*:EINVAL" "$INGOT" verify phi3-pocket
}

@test "D01 short reads and short writes change nothing" {
    fx p3s m
    ingot convert -q -n plain m
    accept -- shimmed "pread:$TWO:*:SHORT;pread:store/:*:SHORT" "$INGOT" convert -n reads m
    accept -- shimmed "pwrite:store/:*:SHORT" "$INGOT" convert -n writes m
    accept -- shimmed "pwrite:store/:2:EINTR;pread:$ONE:2:EINTR" "$INGOT" convert -n intr m
    [ "$(digest reads)" = "$(digest plain)" ]
    [ "$(digest writes)" = "$(digest plain)" ]
    shimmed "pread:packs/:*:SHORT" "$INGOT" verify plain
    shimmed "pread:packs/:*:SHORT;pwrite:out:*:SHORT" "$INGOT" export plain out
    diff -r m out
}

@test "D04 export: errors of write, fsync and close are reported" {
    fx p3s m
    ingot convert -q m
    for rule in pwrite:out:1:ENOSPC pwrite:out:3:EIO; do
        reject 4 out -- shimmed "$rule" "$INGOT" export m out
        [ ! -e out ] || [ -z "$(ls -A out)" ]
    done
    nth=1 # every fsync, those of the folders and of the one around them too
    while ! shimmed "fsync:$PWD:$nth:EIO" "$INGOT" export m out 2>err; do
        grep -q "^ingot export: [^ ]*: cannot flush.*EIO" err || flunk "fsync $nth: $(cat err)"
        [ ! -e out ] || flunk "fsync $nth: out is there"
        nth=$((nth + 1))
    done
    [ "$nth" -gt 3 ]
    rm -r out
    for rule in fsync:out:1:EIO close:out:1:EIO; do
        run --separate-stderr shimmed "$rule" "$INGOT" export m out
        echo "$rule: $status $stderr"
        if [ "$status" -eq 0 ]; then rm -r out; else [ "$status" -eq 4 ]; fi
        [ ! -e out ] || [ -z "$(ls -A out)" ]
    done
    [ -z "$(find . -maxdepth 1 -name '.*' ! -name .)" ]
    round_trip m m
}
