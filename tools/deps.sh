#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# deps.sh SET...: see that the Debian packages of a set (build, test) are there.  Root installs
# what is missing; others are told the command.  Elsewhere than on Debian nothing is checked.
set -eu

build="autoconf automake libtool pkg-config autoconf-archive gcc libc6-dev make xz-utils
    liblmdb-dev libxxhash-dev libjansson-dev libssl-dev liburing-dev fsverity"
# Hashes several leaves at once; for Intel's and AMD's processors only.
[ "$(uname -m)" != x86_64 ] || build="$build libipsec-mb-dev"
test="git libcmocka-dev bats mandoc man-db shellcheck cppcheck clang clang-tidy clang-format
    libclang-rt-dev valgrind python3 python3-venv strace attr bc bsdutils procps"

command -v dpkg-query >/dev/null || {
    echo "deps.sh: no dpkg here; the packages are those that README.md names" >&2
    exit 0
}
missing=
for set in "$@"; do
    case $set in
    build) packages=$build ;;
    test) packages=$test ;;
    *)
        echo "deps.sh: unknown set '$set'" >&2
        exit 2
        ;;
    esac
    for package in $packages; do
        case $(dpkg-query -W -f '${Status}' "$package" 2>/dev/null || true) in
        "install ok installed") ;;
        *) missing="$missing $package" ;;
        esac
    done
done
[ -n "$missing" ] || exit 0

install="apt-get install -y --no-install-recommends$missing"
if [ "$(id -u)" != 0 ]; then
    echo "Packages are missing.  Run this, then try again:" >&2
    echo "  sudo $install" >&2
    exit 1
fi
echo "installing:$missing"
export DEBIAN_FRONTEND=noninteractive
log=$(mktemp)
# shellcheck disable=SC2086  # words on purpose
if ! { apt-get update && $install; } >"$log" 2>&1; then
    tail -n 20 "$log" >&2
    rm -f "$log"
    exit 1
fi
rm -f "$log"
