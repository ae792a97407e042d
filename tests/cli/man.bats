#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The EXAMPLES of every manual page, run as they stand: the lines ".Dl $ COMMAND", and in literal
# displays the lines "$ COMMAND", in order, in one shell, in an empty store, beside the model
# folders phi3-pocket and phi4-pocket.  Each must succeed.

load common

pages() {
    find "$srcdir/man" -name 'ingot*.[0-9]' | sort
}

# The commands of a page, one a line.
examples_of() {
    awk '
        /^\.Sh / { on = $2 == "EXAMPLES"; next }
        on && sub(/^\.Dl \$ /, "") { print; next }
        on && /^\.Bd -literal/ { literal = 1; next }
        /^\.Ed/ { literal = 0 }
        on && literal && sub(/^\$ /, "") { print }
    ' "$1" | sed 's/\\(dq/"/g; s/\\(aq/'\''/g; s/\\-/-/g; s/\\&//g; s/\\e/\\/g'
}

run_examples() {
    local page=$srcdir/man/$1
    ln -s "$srcdir"/tests/models/phi3-pocket "$srcdir"/tests/models/phi4-pocket .
    mkdir bin
    ln -s "$INGOT" bin/ingot
    examples_of "$page" >commands
    [ -s commands ]
    cat commands
    PATH=$PWD/bin:$PATH MANPAGER=cat bash -eu -o pipefail commands
}

@test "man: every page of a command has EXAMPLES that are run here" {
    for page in $(pages); do
        case $page in *.1) ;; *) continue ;; esac
        grep -q "run_examples $(basename "$page")\$" "$BATS_TEST_FILENAME" || {
            echo "$page: no test runs its examples"
            return 1
        }
    done
}

@test "man: every page passes mandoc -Tlint" {
    command -v mandoc >/dev/null || skip "mandoc is not installed"
    mandoc -Tlint -W warning "$srcdir"/man/*.[0-9]
}

@test "man: every command has a page, and ingot(1) lists it" {
    for cmd in $("$INGOT" --help | sed -n 's/^  \([a-z]*\) .*/\1/p'); do
        [ -f "$srcdir/man/ingot-$cmd.1" ]
        grep -q "^\.It Cm $cmd\$" "$srcdir/man/ingot.1"
    done
}

@test "man: the options of a page are those of the command and of the completions" {
    for page in "$srcdir"/man/ingot-*.1; do
        local cmd=${page##*/ingot-}
        cmd=${cmd%.1}
        [ "$cmd" != help ] || continue
        # shellcheck disable=SC2013  # options are words
        for opt in $(sed -n '/^\.It /s/Fl Fl \([a-z0-9-]*\)/\n--\1\n/gp' "$page" | grep '^--[a-z]'); do
            # A known option gets as far as the help, its value, or an empty store.
            run --separate-stderr env PATH=/nonexistent "$INGOT" "$cmd" "$opt" --help </dev/null
            case $stderr in *"unknown option"* | *ambiguous*)
                echo "ingot $cmd does not know $opt"
                return 1
                ;;
            esac
            for file in ingot.bash _ingot; do
                grep -q -- "$opt\b" "$srcdir/completion/$file" || {
                    echo "completion/$file does not know $opt"
                    return 1
                }
            done
            grep -q -- "-l ${opt#--}\b" "$srcdir/completion/ingot.fish"
        done
    done
}

@test "man: examples of ingot" {
    run_examples ingot.1
}

@test "man: examples of convert" {
    run_examples ingot-convert.1
}

@test "man: examples of verify" {
    run_examples ingot-verify.1
}

@test "man: examples of export" {
    run_examples ingot-export.1
}

@test "man: examples of show" {
    run_examples ingot-show.1
}

@test "man: examples of ls" {
    run_examples ingot-ls.1
}

@test "man: examples of find" {
    run_examples ingot-find.1
}

@test "man: examples of tag" {
    run_examples ingot-tag.1
}

@test "man: examples of rm" {
    run_examples ingot-rm.1
}

@test "man: examples of gc" {
    run_examples ingot-gc.1
}

@test "man: examples of load" {
    run_examples ingot-load.1
}

@test "man: the programs of libingot(3), built and run" {
    local lib=$top_builddir/.libs n
    [ -e "$lib/libingot.so" ] || skip "there is no shared library"
    ! has_sanitizer || skip "a program without sanitizers"
    command -v cc >/dev/null || skip "there is no C compiler"
    awk '/^\.Sh EXAMPLES/ { on = 1 } on && /^\.Ed/ { out = "" } out { print >out }
        on && /^\.Bd -literal/ { out = "program" ++n ".c" }' "$srcdir/man/libingot.3"
    sed -i 's/\\e/\\/g' program*.c
    ingot convert -q "$(model phi3-pocket)"
    for n in 1 2; do
        cc -std=c11 -Wall -Wextra -Werror -I"$srcdir/include" -o "program$n" "program$n.c" -L"$lib" -lingot
        LD_LIBRARY_PATH=$lib "./program$n" >"out$n"
    done
    [ ! -e program3.c ]
    grep -qx 'model.norm.weight' out1
    # Four F16 weights, as the source file has them.
    want=$("$PYTHON" - "$(model phi3-pocket)" <<'PY'
import glob, json, struct, sys
for path in glob.glob(sys.argv[1] + "/*.safetensors"):
    data = open(path, "rb").read()
    n = struct.unpack("<Q", data[:8])[0]
    t = json.loads(data[8:8 + n]).get("model.norm.weight")
    if t:
        at = 8 + n + t["data_offsets"][0]
        print("%s x %d:" % (t["dtype"], t["shape"][0]), *("%04x" % x for x in struct.unpack("<4H", data[at:at + 8])))
PY
    )
    [ "$(cat out2)" = "$want" ]
}

@test "man: examples of reindex" {
    run_examples ingot-reindex.1
}

@test "man: examples of lineage" {
    run_examples ingot-lineage.1
}

@test "man: examples of manifest" {
    run_examples ingot-manifest.1
}

@test "man: examples of pin" {
    run_examples ingot-pin.1
}

@test "man: examples of sign" {
    run_examples ingot-sign.1
}

@test "man: examples of devices" {
    run_examples ingot-devices.1
}

@test "man: examples of help" {
    command -v man >/dev/null || skip "man is not installed"
    run_examples ingot-help.1
}
