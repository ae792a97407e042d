# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034
# What the benchmarks share.  Environment: INGOT (the program), PROBE (bench/probe, built by
# `make bench`), BENCH_DIR (a folder on the disk to be measured, with room for three times the
# data; default: a temporary one), BENCH_BYTES (size of the checkpoint, default 4 GB).
set -eu -o pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
INGOT=$(realpath "${INGOT:-$here/../ingot}")
PROBE=$(realpath "${PROBE:-$(dirname "$INGOT")/bench/probe}")
bytes=${BENCH_BYTES:-4000000000}
work=$(mktemp -d "${BENCH_DIR:-${TMPDIR:-/tmp}}/ingot-bench.XXXXXX")
trap 'rm -rf "$work"' EXIT
export INGOT_STORE=$work/store
missed=0

# seconds COMMAND...: how long it took; what it printed goes to $work/out.
seconds() {
    local start end
    start=$(date +%s.%N)
    "$@" >"$work/out" 2>&1 || {
        cat "$work/out" >&2
        exit 1
    }
    end=$(date +%s.%N)
    bc -l <<<"$end - $start"
}

# best N COMMAND...: the least of N times.
best() {
    local n=$1 least='' t
    shift
    for ((; n > 0; n--)); do
        t=$(seconds "$@")
        if [ -z "$least" ] || [ "$(bc -l <<<"$t < $least")" = 1 ]; then least=$t; fi
    done
    echo "$least"
}

rate() { # BYTES SECONDS
    bc -l <<<"$1 / $2"
}

lower() {
    if [ "$(bc -l <<<"$1 < $2")" = 1 ]; then echo "$1"; else echo "$2"; fi
}

GB() {
    printf '%.2f GB/s' "$(bc -l <<<"$1 / 1000000000")"
}

heading() {
    echo "# $*"
    echo "# $(sed -n 's/^model name[^:]*: *//p' /proc/cpuinfo | head -n 1), $("$PROBE" processors) processors, $(uname -sr)"
    printf '%-46s %13s %13s %7s %7s\n' what measured limit ratio 'target %'
}

# row WHAT RATE LIMIT TARGET: at least TARGET percent of the limit.  TARGET '-': for comparison.
row() {
    local ratio verdict=''
    ratio=$(bc -l <<<"100 * $2 / $3")
    if [ "$4" != - ] && [ "$(bc -l <<<"$ratio < $4")" = 1 ]; then
        verdict=' MISSED'
        missed=1
    fi
    printf '%-46s %13s %13s %6.0f%% %7s%s\n' "$1" "$(GB "$2")" "$(GB "$3")" "$ratio" "$4" "$verdict"
}

# most WHAT VALUE LIMIT UNIT: no more than LIMIT.
most() {
    local verdict=''
    if [ "$(bc -l <<<"$2 > $3")" = 1 ]; then
        verdict=' MISSED'
        missed=1
    fi
    printf '%-46s %8.3f %-4s at most %s %s%s\n' "$1" "$2" "$4" "$3" "$4" "$verdict"
}
