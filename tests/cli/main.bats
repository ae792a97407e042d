#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The program around the commands: help, version, options, errors, streams, signals.

load common

setup() {
    setup_store
    model=$(model phi3-pocket)
}

@test "main: without a command the list goes to stderr, exit 2" {
    run --separate-stderr "$INGOT"
    [ "$status" -eq 2 ]
    [ -z "$output" ]
    [[ $stderr == *"  convert "* ]]
}

@test "main: --help lists every command" {
    run --separate-stderr "$INGOT" --help
    [ "$status" -eq 0 ]
    [ -z "$stderr" ]
    for cmd in convert export pin verify sign lineage manifest show ls find load tag rm gc reindex devices; do
        [[ $output == *"  $cmd "* ]]
    done
}

@test "main: --version names the libraries and says whether there is CUDA" {
    run --separate-stderr "$INGOT" --version
    [ "$status" -eq 0 ]
    [[ ${lines[0]} =~ ^ingot\ [0-9]+\.[0-9]+\.[0-9]+$ ]]
    for lib in jansson xxHash LMDB OpenSSL; do
        [[ $output =~ $lib\ [0-9]+\.[0-9]+ ]]
    done
    [[ $output =~ CUDA:\ (yes|no) ]]
}

@test "main: an unknown command suggests the nearest, exit 2" {
    run --separate-stderr "$INGOT" verfy
    [ "$status" -eq 2 ]
    [ "$stderr" = "ingot: 'verfy' is not an ingot command. The most similar command is verify" ]
    run --separate-stderr "$INGOT" help shwo
    [ "$status" -eq 2 ]
    [[ $stderr == *"is show" ]]
}

@test "main: an unknown command is printed escaped" {
    run --separate-stderr "$INGOT" $'evil\e[31m'
    [ "$status" -eq 2 ]
    [[ $stderr != *$'\e'* ]]
    [[ $stderr == *'\x1b'* ]]
}

@test "main: help opens the page of the tree that the program was built in" {
    command -v man >/dev/null || skip "man is not installed"
    [[ $(realpath "$top_builddir") == $(realpath "$srcdir")* ]] || skip "not built inside the source tree"
    for topic in convert store ingot; do
        run --separate-stderr env MANPAGER=cat MANWIDTH=80 "$INGOT" help "$topic"
        [ "$status" -eq 0 ]
        [[ $output == *SYNOPSIS* || $output == *DESCRIPTION* ]]
    done
    MANPAGER=cat MANWIDTH=80 "$INGOT" help verify >a
    MANPAGER=cat MANWIDTH=80 "$INGOT" verify --help >b
    cmp a b
}

@test "main: help without a man program prints the usage" {
    run --separate-stderr env PATH=/nonexistent "$INGOT" help convert
    [ "$status" -eq 0 ]
    [[ $output == "usage: ingot convert "* ]]
}

@test "main: every command has a usage line and refuses an unknown option, exit 2" {
    for cmd in convert export pin verify sign lineage manifest show ls find load tag rm gc reindex devices; do
        run --separate-stderr "$INGOT" "$cmd" --no-such-option
        [ "$status" -eq 2 ]
        [ "${stderr_lines[0]}" = "ingot $cmd: unknown option '--no-such-option'" ]
        [[ ${stderr_lines[1]} == "usage: ingot $cmd"* ]]
    done
}

@test "main: options may be shortened, joined, and stand after the arguments" {
    "$INGOT" convert "$model" --nam=pocket --thr 2 -fq
    run "$INGOT" ls -0
    [ "$status" -eq 0 ]
    [[ $output == pocket* ]]
}

@test "main: an ambiguous shortening and a value too many are usage errors" {
    run --separate-stderr "$INGOT" show --s x
    [ "$status" -eq 2 ]
    [[ $stderr == *"ambiguous option '--s'"* ]]
    run --separate-stderr "$INGOT" show --json=1 x
    [ "$status" -eq 2 ]
    [[ $stderr == *"option '--json' takes no value"* ]]
}

@test "main: counts that are no numbers, or overflow, are usage errors" {
    for value in x -1 1x 18446744073709551616 20000000000G ''; do
        run --separate-stderr "$INGOT" convert --max-header "$value" "$model"
        [ "$status" -eq 2 ]
        [[ ${stderr_lines[0]} == "ingot convert: --max-header "* ]]
    done
    [ ! -e store/names ] || [ -z "$(ls store/names)" ]
}

@test "main: with --json an error is on stdout too" {
    run --separate-stderr "$INGOT" convert --json /nonexistent/folder
    [ "$status" -eq 3 ]
    [[ ${stderr_lines[0]} == "ingot convert: "* ]]
    "$PYTHON" - "$output" <<'EOF'
import json, sys
error = json.loads(sys.argv[1])["error"]
assert error["status"] == "not_found", error
assert "/nonexistent/folder" in error["message"], error
EOF
    run --separate-stderr "$INGOT" show --json --no-such-option
    [ "$status" -eq 2 ]
    "$PYTHON" -c 'import json, sys; assert json.loads(sys.argv[1])["error"]["status"] == "usage"' \
        "$output"
}

@test "main: a full stdout is exit 4 and a message" {
    [ -e /dev/full ] || skip "no /dev/full"
    for args in --version --help "devices --json"; do
        # shellcheck disable=SC2016,SC2086  # $0 and $@ are the inner shell's; words on purpose
        run --separate-stderr bash -c '"$0" "$@" >/dev/full' "$INGOT" $args
        [ "$status" -eq 4 ]
        [[ $stderr == *"cannot write to standard output: No space left on device"* ]]
    done
}

@test "main: a closed stdout is exit 4" {
    # shellcheck disable=SC2016
    run --separate-stderr bash -c '"$0" --version >&-' "$INGOT"
    [ "$status" -eq 4 ]
}

@test "main: a reader that went away is exit 4, without a message" {
    mkfifo pipe
    exec 5<>pipe
    exec 6>pipe
    exec 5<&-
    # shellcheck disable=SC2016
    run --separate-stderr bash -c '"$0" --help >&6' "$INGOT"
    [ "$status" -eq 4 ]
    [ -z "$stderr" ]
}

@test "main: with 0, 1 and 2 closed no file of the store takes their place" {
    # shellcheck disable=SC2016
    bash -c '"$0" convert "$1" <&- >&- 2>&-' "$INGOT" "$model" || [ $? -eq 4 ]
    "$INGOT" verify --all --strict
}

@test "main: no progress bar, and no escape sequence, outside a terminal" {
    "$INGOT" convert "$model" >out 2>err
    run ! grep -q $'[\e\r]' out err
}

@test "main: a progress bar on a terminal, none with -q" {
    command -v script >/dev/null || skip "script is not installed"
    script -qec "stty cols 100; '$INGOT' convert -n one '$model'" /dev/null >typescript
    grep -q $'\r''convert' typescript
    script -qec "stty cols 100; '$INGOT' convert -q -n two '$model'" /dev/null >typescript
    run ! grep -q $'\r''convert' typescript
}

@test "main: bash completion offers commands, options and names" {
    "$INGOT" convert -q -n pocket/one "$model"
    # shellcheck source=/dev/null
    source "$srcdir/completion/ingot.bash"
    complete_words() {
        COMP_WORDS=("$@")
        COMP_CWORD=$(($# - 1))
        _ingot
        printf '%s\n' "${COMPREPLY[@]}"
    }
    [ "$(complete_words "$INGOT" ve)" = verify ]
    complete_words "$INGOT" convert --keep | grep -qx -- --keep-unindexed
    complete_words "$INGOT" convert --dtype b | grep -qx bf16
    complete_words "$INGOT" show poc | grep -qx pocket/one
    [ -z "$(complete_words "$INGOT" show -s /nonexistent poc)" ]
}

@test "main: a signal ends a conversion with exit 4 and leaves nothing behind" {
    "$PYTHON" - <<'EOF'
import struct
size = 4 << 30
header = b'{"w":{"dtype":"U8","shape":[%d],"data_offsets":[0,%d]}}' % (size, size)
with open("big.safetensors", "wb") as f:
    f.write(struct.pack("<Q", len(header)) + header)
    f.truncate(8 + len(header) + size)
EOF
    # Not before it has begun, and not by a shell that has background jobs ignore SIGINT.
    for signal in SIGINT SIGTERM; do
        run --separate-stderr "$PYTHON" - "$signal" <<'EOF'
import os, signal, subprocess, sys, time
p = subprocess.Popen([os.environ["INGOT"], "convert", "-n", "big", "big.safetensors"],
                     preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
while p.poll() is None and not os.path.isdir("store/packs"):
    time.sleep(0.01)
time.sleep(0.1)
p.send_signal(signal.Signals[sys.argv[1]])
sys.exit(p.wait() % 256)
EOF
        [ "$status" -eq 4 ]
        [ "$stderr" = "ingot convert: cancelled; nothing was left behind" ]
        [ -z "$(find store -type f ! -name lock)" ]
        rm -rf store
    done
}
