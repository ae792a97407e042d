#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""forge.py PACK OLD NEW: a pack whose manifest says something else, with every hash over it put
right.  Written here under its own digest; prints the path.  OLD and NEW are of one length."""
import struct
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from packread import digest_of  # noqa: E402
from xxh3 import xxh3_64, xxh3_128  # noqa: E402

MANIFEST = 10


def forge(pack, old, new):
    data = bytearray(Path(pack).read_bytes())
    table = struct.unpack_from("<Q", data, 56)[0] + 4096
    count, width = struct.unpack_from("<II", data, table + 8)
    for record in range(table + 64, table + 64 + count * width, width):
        kind, at, size = struct.unpack_from("<I4xQQ", data, record)
        if kind != MANIFEST:
            continue
        manifest = bytes(data[at:at + size])
        assert manifest.count(old.encode()) == 1 and len(old) == len(new)
        data[at:at + size] = manifest.replace(old.encode(), new.encode())
        data[record + 32:record + 48] = xxh3_128(bytes(data[at:at + size]))
    end = table + 64 + count * width
    data[table + 16:table + 24] = bytes(8)
    data[table + 16:table + 24] = struct.pack("<Q", xxh3_64(bytes(data[table:end])))
    name = digest_of(bytes(data)).hex() + ".ingot"
    Path(name).write_bytes(data)
    return "./" + name


if __name__ == "__main__":
    print(forge(*sys.argv[1:]))
