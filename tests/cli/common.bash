# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Helpers of the command-line tests.  Environment: INGOT (the program; default
# $top_builddir/ingot), top_srcdir or srcdir (top of the sources), PYTHON (Python 3; with numpy,
# packs are also checked by the second reader), SHIM_SO (tests/shim/shim.c, built), INGOT_SLOW=1 (also what takes
# minutes or gigabytes).

bats_require_minimum_version 1.5.0

srcdir=$(cd "${top_srcdir:-${srcdir:-$BATS_TEST_DIRNAME/../..}}" && pwd)
INGOT=$(realpath "${INGOT:-${top_builddir:-.}/ingot}")
PYTHON=${PYTHON:-python3}
export srcdir INGOT PYTHON
export LC_ALL=C.UTF-8
unset INGOT_SIGN_KEY XDG_DATA_HOME

setup() {
    setup_store
}

# A fresh, empty store and a folder to work in.
setup_store() {
    export INGOT_STORE=$BATS_TEST_TMPDIR/store
    cd "$BATS_TEST_TMPDIR" || return 1
}

model() {
    echo "$srcdir/tests/models/$1"
}

# fx NAME DIR [ARG...]: build a fixture (tests/fixtures.py).
fx() {
    "$PYTHON" "$srcdir/tests/fixtures.py" "$@"
}

ingot() {
    "$INGOT" "$@"
}

# Fail with words.
flunk() {
    printf '%s\n' "$*" >&2
    return 1
}

skip_unless_slow() {
    [ "${INGOT_SLOW:-}" = 1 ] || skip "slow: set INGOT_SLOW=1"
}

skip_unless_root() {
    [ "$(id -u)" = 0 ] || skip "needs root"
}

has_sanitizer() {
    grep -aq __asan_init "$(program)"
}

# The program itself, also behind libtool's wrapper script.
program() {
    local real
    real=$(dirname "$INGOT")/.libs/$(basename "$INGOT")
    if [ -x "$real" ]; then echo "$real"; else echo "$INGOT"; fi
}

has_numpy() {
    if [ -z "${HAS_NUMPY:-}" ]; then
        HAS_NUMPY=yes
        "$PYTHON" -c 'import numpy' 2>/dev/null || HAS_NUMPY=no
    fi
    [ "$HAS_NUMPY" = yes ]
}

# What the store holds: kind, mode, size, name and contents of all that is not a folder.  `lock`
# carries no data, and index.mdb is derived from the rest.
store_state() {
    [ -d "$INGOT_STORE" ] || return 0
    (cd "$INGOT_STORE" && find . ! -type d ! -name lock ! -name index.mdb -printf '%y %m %s %p\n' |
        sort && find . -type f ! -name lock ! -name index.mdb -print0 | sort -z |
        xargs -0r sha256sum)
}

# No temporary is left over.
no_leftovers() {
    local left
    [ -d "$INGOT_STORE" ] || return 0
    left=$(find "$INGOT_STORE" ! -type d \( -name '.*' -o -name '*tmp*' -o -name '*.part' \))
    [ -z "$left" ] || flunk "left over: $left"
}

# stderr of the last `run` holds one error line, of printable text, and no sign of a crash.
one_error_line() {
    local lines
    lines=$(grep -Ev '^ingot [a-z]+: (warning|notice|note): ' <<<"$stderr" || true)
    [ "$(grep -c . <<<"$lines")" = 1 ] || flunk "not one line of error: $stderr"
    grep -q '^ingot [a-z]*: ' <<<"$lines" || flunk "no 'ingot COMMAND:' in: $lines"
    ! grep -q '[[:cntrl:]]' <<<"$lines" || flunk "control bytes in: $lines"
    ! grep -Eq 'Sanitizer|runtime error' <<<"$stderr" || flunk "sanitizer: $stderr"
}

# reject CODE PATTERN... -- COMMAND...: it exits with CODE and one line of error that matches each
# pattern (extended, any case; !PATTERN: does not); the store is as before, nothing is left over.
reject() {
    local code=$1 patterns=() before
    shift
    while [ "$1" != -- ]; do
        patterns+=("$1")
        shift
    done
    shift
    before=$(store_state)
    run --separate-stderr "$@"
    echo "status $status, stderr: $stderr"
    [ "$status" -eq "$code" ] || flunk "exit $status, not $code: $*"
    one_error_line
    for p in "${patterns[@]}"; do
        if [ "${p:0:1}" = '!' ]; then
            ! grep -Eiq -e "${p:1}" <<<"$stderr" || flunk "says '${p:1}': $stderr"
        else
            grep -Eiq -e "$p" <<<"$stderr" || flunk "does not say '$p': $stderr"
        fi
    done
    [ "$(store_state)" = "$before" ] || flunk "the store has changed: $(store_state)"
    no_leftovers
}

# accept -- COMMAND...: it exits with 0, and the whole store verifies afterwards, by us and (with
# numpy) by the second reader.
accept() {
    [ "$1" != -- ] || shift
    run --separate-stderr "$@"
    echo "status $status, stderr: $stderr"
    [ "$status" -eq 0 ] || flunk "exit $status: $*"
    ! grep -Eq 'Sanitizer|runtime error' <<<"$stderr" || flunk "sanitizer: $stderr"
    local out=$output err=$stderr
    verified
    output=$out stderr=$err
}

verified() {
    run --separate-stderr "$INGOT" verify --all
    [ "$status" -eq 0 ] || flunk "verify --all: exit $status: $output $stderr"
    no_leftovers
    second_reader "$INGOT_STORE"/packs/*.ingot
}

# Packs that have not changed since they were last checked are left out.
second_reader() {
    has_numpy || return 0
    local pack fresh=() seen=$BATS_TEST_TMPDIR/seen-packs
    for pack in "$@"; do
        grep -qxF "$(stat -c '%i %Y %n' "$pack")" "$seen" 2>/dev/null || fresh+=("$pack")
    done
    [ ${#fresh[@]} -gt 0 ] || return 0
    "$PYTHON" "$srcdir/tests/interop/packread.py" check "${fresh[@]}" >/dev/null ||
        flunk "the second reader refuses a pack"
    stat -c '%i %Y %n' "${fresh[@]}" >>"$seen"
}

# json EXPRESSION: evaluate Python on d, the JSON of stdin.
json() {
    "$PYTHON" -c 'import json, sys
d = json.load(sys.stdin)
v = eval(sys.argv[1])
print(v if isinstance(v, str) else json.dumps(v, sort_keys=True))' "$1"
}

# digest MODEL: fsverity-sha256:<hex>, as `convert` said.
digest() {
    "$INGOT" show --json "$1" | json 'd["digest"]'
}

content() {
    "$INGOT" show --json "$1" | json 'd["content"]'
}

# pack NAME: the file behind a name.
pack() {
    local d
    d=$(digest "$1")
    echo "$INGOT_STORE/packs/${d#*:}.ingot"
}

# tensors MODEL [EXPRESSION]: rows of `show --tensors`, default name -> digest of what is stored.
tensors() {
    "$INGOT" show --tensors --json "$1" |
        json "${2:-{t['name']: t['digest'] for t in d['tensors'] if not t['view']\}}"
}

# round_trip SRC MODEL: export gives the files of SRC back, byte for byte.
round_trip() {
    rm -rf "$BATS_TEST_TMPDIR/out"
    "$INGOT" export "$2" "$BATS_TEST_TMPDIR/out"
    diff -r "$1" "$BATS_TEST_TMPDIR/out"
}

# patch FILE OFFSET [MASK]: xor one byte of a file, whatever its mode; twice restores it.
patch() {
    "$PYTHON" - "$@" <<'END'
import os, sys
path, at, mask = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else 1
mode = os.stat(path).st_mode
os.chmod(path, 0o644)
with open(path, "r+b") as f:
    f.seek(at)
    byte = f.read(1)[0]
    f.seek(at)
    f.write(bytes([byte ^ mask]))
os.chmod(path, mode)
END
}

# peak COMMAND...: run it, print its largest resident set in KiB; its status is returned.
peak() {
    "$PYTHON" - "$@" <<'END'
import resource, subprocess, sys
code = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL).returncode
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
sys.exit(code if code >= 0 else 128 - code)
END
}

# shimmed RULES COMMAND...: with faults from tests/shim/shim.c.
shimmed() {
    local rules=$1 asan
    shift
    asan=$(ldd "$(program)" | awk '/libasan|libclang_rt.asan/ { print $3 }')
    SHIM=$rules LD_PRELOAD="$asan $SHIM_SO" "$@"
}

build_shim() {
    [ -z "${SHIM_SO:-}" ] || return 0
    SHIM_SO=$BATS_FILE_TMPDIR/shim.so
    ${CC:-gcc} -std=gnu11 -D_GNU_SOURCE -O1 -fPIC -shared -o "$SHIM_SO" \
        "$srcdir/tests/shim/shim.c" -ldl
    export SHIM_SO
}
