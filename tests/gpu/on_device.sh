#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The loader's tests once more, on the first GPU instead of the host's device.  INGOT is the
# program; the tests are those beside it.
set -u
tests=(test_hash_jobs test_load test_load_faults test_load_flips)
build=${top_builddir:-$(dirname "$INGOT")}
export CMOCKA_MESSAGE_OUTPUT=TAP INGOT_TEST_DEVICE=${INGOT_TEST_DEVICE:-cuda:0}

if [ "$INGOT_TEST_DEVICE" != host ] && ! "$INGOT" devices | grep -q '^cuda:0'; then
    echo "there is no GPU here"
    exit 77
fi
n=0 bad=0
while IFS= read -r line; do # one list of what the programs print each
    if [[ $line =~ ^((not )?ok)\ [0-9]+(.*)$ ]]; then
        n=$((n + 1))
        [ -z "${BASH_REMATCH[2]}" ] || bad=$((bad + 1))
        echo "${BASH_REMATCH[1]} $n${BASH_REMATCH[3]}"
    elif [[ $line =~ ^#\ [0-9]+\ |fail|error ]]; then
        echo "$line"
    fi
done < <(for test in "${tests[@]}"; do
    "$build/tests/unit/$test" 2>&1 || echo "not ok 0 - $test ended with status $?"
done)
echo "1..$n"
[ $bad -eq 0 ] && [ $n -gt 0 ]
