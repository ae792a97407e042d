#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A second reader of packs, written from ingot-pack(5) alone (standard library and numpy).

packread.py check PACK [--tree FILE]   every rule of the page; prints the digest
packread.py check PACK...              the same for several
packread.py digest PACK                the fs-verity digest of the file, nothing else
packread.py export PACK DIR            the source files and blobs, as they were
packread.py tensors PACK               one line a row: digest, dtype, shape, flags, name

Exit status: 0 done, 1 a rule is broken (the message says which), 2 usage.
"""

import hashlib
import json
import os
import re
import struct
import sys

import packorder
from xxh3 import xxh3_64, xxh3_128, xxh3_128_spans

PAGE = 4096
WEIGHTS = 65536
SPAN = 65536
FAN = 128
NONE = 0xFFFFFFFF
VIEW, TIED, SHADOW = 1, 2, 4
REGIONS = {1: ("XXH3 table", 16), 2: ("tensor table", 96), 3: ("extent table", 32),
           4: ("link table", 96), 5: ("dtype table", 32), 6: ("string pool", 0),
           7: ("shape pool", 8), 8: ("blob table", 64), 9: ("blob data", 0),
           10: ("manifest", 0), 11: ("frontier", 32)}
BITS = {"BOOL": 8, "F4": 4, "F6_E2M3": 6, "F6_E3M2": 6, "U8": 8, "I8": 8, "F8_E5M2": 8,
        "F8_E4M3": 8, "F8_E8M0": 8, "F8_E4M3FNUZ": 8, "F8_E5M2FNUZ": 8, "I16": 16, "U16": 16,
        "F16": 16, "BF16": 16, "I32": 32, "U32": 32, "F32": 32, "C64": 64, "F64": 64, "I64": 64,
        "U64": 64}


class Bad(Exception):
    """A rule of the page that does not hold."""


def need(condition, message):
    if not condition:
        raise Bad(message)


def sha(data):
    return hashlib.sha256(data).digest()


# Digests: fs-verity with SHA-256, 4096-byte blocks, no salt.

def padded(data, size=PAGE):
    return data + bytes(-len(data) % size)


def leaves(data):
    data = memoryview(data)
    whole = len(data) // PAGE * PAGE
    out = [sha(data[i:i + PAGE]) for i in range(0, whole, PAGE)]
    if whole < len(data):
        out.append(sha(padded(bytes(data[whole:]))))
    return out


def parents(hashes):
    joined = [b"".join(hashes[i:i + FAN]) for i in range(0, len(hashes), FAN)]
    return [sha(padded(block)) for block in joined]


def tree(hashes):
    """The levels from the pages' hashes to the root, which is a level of its own."""
    levels = [hashes or [bytes(32)]]
    while len(levels[-1]) > 1:
        levels.append(parents(levels[-1]))
    return levels


def descriptor_digest(size, root):
    head = bytes([1, 1, 12, 0]) + bytes(4) + struct.pack("<Q", size) + root
    return sha(head + bytes(256 - len(head)))


def digest_of(data):
    return descriptor_digest(len(data), tree(leaves(data))[-1][0])


def tree_file(levels):
    return b"".join(padded(b"".join(level)) for level in reversed(levels[:-1]))


class Row:
    def __init__(self, pack, raw):
        (at, length, dtype, shape, rank, self.flags, self.extent, self.source, self.offset,
         self.bytes, self.link, self.links) = struct.unpack("<QIIQIIIIQQII", raw[:64])
        self.digest = raw[64:]
        self.name_at, self.shape_at = at, shape
        need(length >= 1, "a row has an empty name")
        self.name = pack.string(at, length, "a row's name")
        need(dtype < len(pack.dtypes), f"{self.name!r}: dtype index {dtype} of {len(pack.dtypes)}")
        self.dtype_index, (self.dtype, self.bits) = dtype, pack.dtypes[dtype]
        need(shape + rank <= len(pack.dims), f"{self.name!r}: shape outside the pool")
        self.shape = pack.dims[shape:shape + rank]
        self.view, self.tied, self.shadow = (bool(self.flags & f) for f in (VIEW, TIED, SHADOW))

    def key(self):
        return self.name.encode(), self.shadow, self.source


class Link:
    def __init__(self, pack, raw):
        (self.subject, self.object, at, length, self.role, self.stage, self.operation,
         self.granularity, self.logical, self.rows, self.columns, self.packing, self.encoding,
         self.blob, plen, pat) = struct.unpack("<IIQIIIIIIQQIIIIQ", raw[:80])
        need(not any(raw[80:]), "a link's reserved bytes are not zero")
        self.module_at, self.pointer_at = at, pat
        self.module = pack.string(at, length, "a link's module") if length else ""
        self.pointer = pack.string(pat, plen, "a link's JSON pointer") if plen else ""
        need(length or at == 0, "a link without module has a module offset")
        need(plen or pat == 0, "a link without pointer has a pointer offset")

    def key(self):
        return (self.subject, self.module.encode(), self.role, self.stage, self.object)


class Blob:
    def __init__(self, pack, raw):
        at, length, self.kind, self.offset, self.bytes = struct.unpack("<QIIQQ", raw[:32])
        self.sha256 = raw[32:]
        self.name_at = at
        self.name = pack.string(at, length, "a blob's name")


class Pack:
    """An open pack, its superblock, regions and tables checked on the way."""

    def __init__(self, path):
        with open(path, "rb") as f:
            self.data = f.read()
        self.path = path
        self.superblock()
        self.region_table()
        self.pools()
        self.rows = [Row(self, r) for r in self.records(2)]
        self.links = [Link(self, r) for r in self.records(4)]
        self.blobs = [Blob(self, r) for r in self.records(8)]
        self.manifest_text = self.region(10)
        self.manifest = json.loads(self.manifest_text)

    def superblock(self):
        page = self.data[:PAGE]
        need(len(page) == PAGE, "shorter than a page")
        need(page[:8] == b"\x89INGOT\r\n", "superblock: another magic")
        version, zero, bits, _may = struct.unpack("<IIQQ", page[8:32])
        need(version == 1, f"superblock: format {version}")
        need(bits == 0, f"superblock: need {bits:#x}")
        size, at, length, tail, tail_len, check = struct.unpack("<6Q", page[32:80])
        need(zero == 0 and not any(page[80:]), "superblock: reserved bytes are not zero")
        need(check == xxh3_64(page[:72] + bytes(8) + page[80:]), "superblock: wrong hash")
        need(size == len(self.data) and size % PAGE == 0, f"superblock: size {size}, file has "
             f"{len(self.data)}")
        need(at == WEIGHTS and length % PAGE == 0 and tail == at + length
             and tail + tail_len == size and tail_len >= 2 * PAGE, "superblock: sums do not hold")
        need(self.data[tail:tail + PAGE] == page, "the tail's first page differs from page 0")
        self.size, self.weights_len, self.tail = size, length, tail

    def region_table(self):
        at = self.tail + PAGE
        head = self.data[at:at + 64]
        count, record, check = struct.unpack("<IIQ", head[8:24])
        need(head[:8] == b"INGOTRGN", "region table: another magic")
        need(1 <= count <= 1023 and record == 64, "region table: count or record size")
        need(not any(head[24:]), "region table: reserved bytes are not zero")
        raw = self.data[at:at + 64 + 64 * count]
        need(len(raw) == 64 + 64 * count, "region table: longer than the file")
        need(count >= len(REGIONS), "region table: regions are missing")
        need(check == xxh3_64(raw[:16] + bytes(8) + raw[24:]), "region table: wrong hash")
        self.table_end = at + len(raw)
        self.regions = {}
        end = self.table_end
        for i in range(1, count + 1):
            end = self.one_region(raw[64 * i:64 * i + 64], end)
        need(list(self.regions) == list(REGIONS), f"regions: {list(self.regions)}")
        need(-(-end // PAGE) * PAGE == self.size, "the tail goes on after its last region")

    def one_region(self, raw, end):
        kind, flags, at, length, record = struct.unpack("<IIQQQ", raw[:32])
        need(flags in (0, 1) and not any(raw[48:]), f"region {kind}: flags or reserved bytes")
        need(at % PAGE == 0 and at >= end and at + length <= self.size, f"region {kind}: bounds")
        need(at == -(-end // PAGE) * PAGE, f"region {kind}: does not follow the one before")
        need(kind in REGIONS or flags == 0, f"region {kind}: required and unknown")
        if kind in REGIONS:
            need(kind not in self.regions, f"region {kind}: stands twice")
            need(flags == 1 and record == REGIONS[kind][1], f"region {kind}: flags or record size")
            need(record == 0 or length % record == 0, f"region {kind}: length {length}")
            need(xxh3_128(self.data[at:at + length]) == raw[32:48],
                 f"region {kind} ({REGIONS[kind][0]}): wrong XXH3-128")
            self.regions[kind] = (at, length)
        return at + length

    def region(self, kind):
        at, length = self.regions[kind]
        return self.data[at:at + length]

    def records(self, kind):
        raw, size = self.region(kind), REGIONS[kind][1]
        return [raw[i:i + size] for i in range(0, len(raw), size)]

    def string(self, at, length, what):
        pool = self.regions[6]
        need(at + length <= pool[1], f"{what}: outside the string pool")
        raw = self.data[pool[0] + at:pool[0] + at + length]
        need(b"\0" not in raw, f"{what}: holds a NUL")
        try:
            return raw.decode("utf-8")
        except UnicodeDecodeError:
            raise Bad(f"{what}: is not UTF-8") from None

    def pools(self):
        raw = self.region(7)
        self.dims = list(struct.unpack(f"<{len(raw) // 8}Q", raw))
        self.extents, self.dtypes, self.dtype_at = [], [], []
        for raw in self.records(3):
            need(not any(raw[24:]), "an extent's reserved bytes are not zero")
            self.extents.append(struct.unpack("<QQII", raw[:24]))
        for raw in self.records(5):
            at, length, bits = struct.unpack("<QII", raw[:16])
            name = self.string(at, length, "a dtype")
            need(BITS.get(name) == bits and not any(raw[16:]), f"dtype {name!r} of {bits} bits")
            self.dtypes.append((name, bits))
            self.dtype_at.append(at)

    def start(self, row):
        """Offset of a row's first byte in the file."""
        return self.extents[row.extent][0] + row.offset if row.bytes else 0

    def bytes_of(self, row):
        at = self.start(row)
        return memoryview(self.data)[at:at + row.bytes]

    def blob(self, name, kind):
        for b in self.blobs:
            if (b.name, b.kind) == (name, kind):
                return self.data[b.offset:b.offset + b.bytes]
        raise Bad(f"no blob {name!r} of kind {kind}")

    def identity(self):
        return self.manifest["derivation"]["kind"] == "identity"


# The rules, one function for each table.

def ascending(keys, what):
    for a, b in zip(keys, keys[1:]):
        need(a < b, f"{what}: {b} after {a}")


def check_rows(p):
    ascending([r.key() for r in p.rows], "tensor table")
    names = [r.name for r in p.rows if not r.shadow]
    need(len(names) == len(set(names)), "a name stands twice without the shadow flag")
    for r in p.rows:
        where = f"tensor {r.name!r}"
        need(r.flags < 8, f"{where}: unknown flags {r.flags:#x}")
        bits = r.bits
        for d in r.shape:
            bits *= d
        need(bits % 8 == 0 and bits // 8 == r.bytes, f"{where}: {r.bytes} bytes, not {bits / 8}")
        need((r.source == NONE) == r.view, f"{where}: source {r.source:#x}")
        need(r.view or r.source < len(p.manifest["sources"]), f"{where}: source {r.source}")
        if r.bytes == 0:
            need(r.extent == NONE and r.offset == 0, f"{where}: has no bytes, but a place")
        else:
            need(r.extent < len(p.extents), f"{where}: extent {r.extent}")
            need(r.offset + r.bytes <= p.extents[r.extent][1], f"{where}: leaves its extent")
            need(p.start(r) % (16 if not r.view else 256) == 0, f"{where}: alignment")
        need(not (r.shadow and r.links) and not (r.shadow and r.view), f"{where}: shadow")
    check_sharing(p)


def check_sharing(p):
    own = sorted((p.start(r), r.bytes, r.name) for r in p.rows
                 if r.bytes and not r.view and not r.tied)
    tied = [r for r in p.rows if r.tied]
    need(len(tied) in (0, 2), f"{len(tied)} rows are tied")
    if tied:
        a, b = tied
        need((a.extent, a.offset, a.bytes, a.dtype, a.shape)
             == (b.extent, b.offset, b.bytes, b.dtype, b.shape), "the tied rows differ")
        own = sorted(own + [(p.start(a), a.bytes, a.name)])
    for (at, length, name), (after, _, other) in zip(own, own[1:]):
        need(at + length <= after, f"{name!r} and {other!r} share bytes")
    for r in p.rows:
        if r.view and r.bytes:
            inside = [s for s in own if p.start(r) <= s[0] < p.start(r) + r.bytes]
            need(inside and inside[0][0] == p.start(r)
                 and sum(s[1] for s in inside) == r.bytes, f"view {r.name!r}: not of whole rows")


def check_extents(p):
    end = WEIGHTS
    for at, length, where, flags in p.extents:
        need(at % PAGE == 0 and at >= end and length >= 1, f"extent at {at}: order or length")
        need(where == 0 and flags in (0, 1), f"extent at {at}: where {where}, flags {flags}")
        end = at + -(-length // PAGE) * PAGE
        need(end <= p.tail, f"extent at {at}: leaves the weights")


def check_pools(p):
    """Both pools hold just what the tables name, in order."""
    at = 0
    for where, text in ([(r.name_at, r.name) for r in p.rows]
                        + list(zip(p.dtype_at, [d[0] for d in p.dtypes]))
                        + [x for link in p.links for x in ((link.module_at, link.module),
                                                           (link.pointer_at, link.pointer)) if x[1]]
                        + [(b.name_at, b.name) for b in p.blobs]):
        need(where == at, f"string {text!r} at {where} of the pool, not {at}")
        at += len(text.encode())
    need(at == p.regions[6][1], "the string pool has bytes that nothing names")
    at = 0
    for r in p.rows:
        need(r.shape_at == at, f"{r.name!r}: shape at {r.shape_at}, not {at}")
        at += len(r.shape)
    need(at == len(p.dims), "the shape pool has dimensions that nothing names")
    ascending([d[0].encode() for d in p.dtypes], "dtype table")
    used = {r.dtype_index for r in p.rows} | {link.logical for link in p.links}
    need(used == set(range(len(p.dtypes))), "a dtype that nothing uses")


def check_links(p):
    ascending([link.key() for link in p.links], "link table")
    for i, link in enumerate(p.links):
        where = f"link {i}"
        need(link.object < len(p.rows), f"{where}: object {link.object}")
        need((link.subject == NONE) == bool(link.module), f"{where}: subject or module")
        need(link.subject == NONE or link.subject < len(p.rows), f"{where}: subject")
        need(1 <= link.role <= 10 and link.operation <= 2, f"{where}: role or operation")
        need(1 <= link.granularity <= 6 and link.packing <= 1, f"{where}: granularity, packing")
        need(link.encoding <= 1 and link.logical < len(p.dtypes), f"{where}: encoding, dtype")
        need(link.blob == NONE or link.blob < len(p.blobs), f"{where}: declared in {link.blob}")
    for i, r in enumerate(p.rows):
        own = [j for j, link in enumerate(p.links) if link.subject == i]
        need(r.links == len(own) and (not own or own[0] == r.link), f"{r.name!r}: its links")
        need(r.link <= len(p.links), f"{r.name!r}: first link {r.link}")


def safe(name):
    return bool(name) and all(c not in ("", ".", "..") for c in name.split("/"))


def check_blobs(p):
    ascending([(b.name.encode(), b.kind) for b in p.blobs], "blob table")
    at = start = p.regions[9][0]
    for b in p.blobs:
        at = start + -(-(at - start) // 64) * 64
        need(safe(b.name) and b.kind in (0, 1), f"blob {b.name!r}: name or kind")
        need(b.offset == at, f"blob {b.name!r} at {b.offset}, not {at}")
        at += b.bytes
        need(sha(p.data[b.offset:at]) == b.sha256, f"blob {b.name!r}: wrong SHA-256")
    need(at == start + p.regions[9][1], "the blob data has another length")


def check_manifest(p):
    m = p.manifest
    text = json.dumps(m, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
    need(text == p.manifest_text, "the manifest is not in canonical form")
    need(sorted(m) == ["content", "derivation", "rules", "sources"], f"manifest: {sorted(m)}")
    need(m["rules"] == 1, f"manifest: rules {m['rules']}")
    need(re.fullmatch("ingot-content-v1:[0-9a-f]{64}", m["content"]), "manifest: content")
    for s in m["sources"]:
        need(sorted(s) == ["name", "sha256", "size"] and safe(s["name"])
             and re.fullmatch("[0-9a-f]{64}", s["sha256"])
             and isinstance(s["size"], int) and 0 <= s["size"] < 1 << 53, f"manifest: {s}")
    ascending([s["name"].encode() for s in m["sources"]], "manifest's sources")
    check_derivation(m["derivation"])


def check_derivation(d):
    if d.get("kind") == "identity":
        need(d == {"kind": "identity"}, f"derivation: {d}")
        return
    if d.get("kind") == "inputs":
        need(set(d) <= {"attribution", "kind", "license"}
             and all(isinstance(v, str) for v in d.values()), f"derivation: {d}")
        return
    need(sorted(d) == ["counts", "dtype", "from", "kind", "parent", "saturate"]
         and d["kind"] == "dtype" and d["saturate"] in (0, 1), f"derivation: {d}")
    need(sorted(d["counts"]) == ["converted", "overflow", "rounded", "subnormal", "vanished"],
         f"derivation: counts {d['counts']}")
    need(re.fullmatch("ingot-content-v1:[0-9a-f]{64}", d["from"]), "derivation: from")
    check_derivation(d["parent"])


def check_zero(p):
    """What no field, region, row or blob covers."""
    covered = [(0, PAGE), (p.tail, p.table_end)]
    covered += [(p.start(r), p.start(r) + r.bytes) for r in p.rows if r.bytes]
    covered += [(at, at + n) for kind, (at, n) in p.regions.items() if kind != 9]
    covered += [(b.offset, b.offset + b.bytes) for b in p.blobs]
    at = 0
    for start, end in sorted(covered) + [(p.size, p.size)]:
        if at < start and p.data[at:start].strip(b"\0"):
            raise Bad(f"bytes {at} to {start} are padding, but not zero")
        at = max(at, end)


def check_xxh(p):
    want = xxh3_128_spans(memoryview(p.data)[WEIGHTS:p.tail], SPAN)
    have = p.region(1)
    need(len(want) == len(have), "the XXH3 table has another length")
    for i in range(0, len(want), 16):
        need(want[i:i + 16] == have[i:i + 16], f"XXH3 of weights {i // 16 * SPAN} on")


def content_digest(p):
    rows = [r for r in p.rows if not r.view and not r.shadow]
    h = hashlib.sha256(b"ingot-content-v1\0" + struct.pack("<Q", len(rows)))
    for r in rows:
        name, dtype = r.name.encode(), r.dtype.encode()
        h.update(struct.pack("<Q", len(name)) + name + struct.pack("<Q", len(dtype)) + dtype)
        h.update(struct.pack(f"<{1 + len(r.shape)}Q", len(r.shape), *r.shape) + r.digest)
    return h.hexdigest()


def check_digests(p):
    for r in p.rows:
        found = digest_of(p.bytes_of(r))
        need(found == r.digest, f"tensor {r.name!r}: digest {found.hex()}, not {r.digest.hex()}")
    content = "ingot-content-v1:" + content_digest(p)
    need(content == p.manifest["content"], f"content digest is {content}")


def check_frontier(p, levels):
    """Prove the tail: the digest from the frontier and the tail's pages alone."""
    stored = p.records(11)
    first = p.tail // PAGE
    known = leaves(p.data[p.tail:])
    count = p.size // PAGE
    level = 0
    while count > 1:
        low = first & ~127
        part, stored = stored[:first - low], stored[first - low:]
        need(part == levels[level][low:first], f"frontier: level {level}")
        known = parents(part + known)
        first, count, level = first >> 7, -(-count // FAN), level + 1
    need(not stored, "the frontier is longer than its levels")
    need(descriptor_digest(p.size, known[0]) == descriptor_digest(p.size, levels[-1][0]),
         "the frontier proves another digest")


def header_tensors(raw, where):
    """Name, dtype, shape, range of a header blob (first 8 + N bytes of a file)."""
    n = struct.unpack("<Q", raw[:8])[0]
    need(len(raw) == 8 + n, f"{where}: header blob of {len(raw)} bytes, N is {n}")
    entries = json.loads(raw[8:])
    entries.pop("__metadata__", None)
    return [(name, e["dtype"], e["shape"], *e["data_offsets"]) for name, e in entries.items()]


def rebuild(p, index):
    """The bytes of one source file, from its header blob and the rows that came from it."""
    source = p.manifest["sources"][index]
    raw = p.blob(source["name"], 1)
    rows = {r.name: r for r in p.rows if r.source == index}
    tensors = header_tensors(raw, source["name"])
    need(sorted(rows) == sorted(t[0] for t in tensors), f"{source['name']}: rows and header differ")
    parts, at = [raw], 0
    for name, dtype, shape, begin, end in sorted(tensors, key=lambda t: t[3:]):
        r = rows[name]
        need((r.dtype, r.shape) == (dtype, shape), f"{source['name']}: {name!r} differs")
        need(begin == at and end - begin == r.bytes, f"{source['name']}: {name!r}: its range")
        parts.append(p.bytes_of(r))
        at = end
    data = b"".join(parts)
    need(len(data) == source["size"] and sha(data).hex() == source["sha256"],
         f"{source['name']}: the rebuilt file differs from the source")
    return data


def check_sources(p):
    headers = [b.name for b in p.blobs if b.kind == 1]
    names = [s["name"] for s in p.manifest["sources"]]
    if not p.identity():
        need(not headers, "a derived pack with header blobs")
        need(not any(r.shadow for r in p.rows), "a derived pack with shadow rows")
        return
    need(headers == names, "header blobs and sources differ")
    for i in range(len(names)):
        rebuild(p, i)


def check(path, tree_path=None):
    p = Pack(path)
    check_manifest(p)
    for rule in (check_rows, check_extents, check_pools, check_links, check_blobs, check_zero,
                 check_xxh, check_digests, check_sources):
        rule(p)
    try:
        packorder.check(p)
    except ValueError as e:
        raise Bad(f"order: {e}") from None
    levels = tree(leaves(p.data))
    check_frontier(p, levels)
    digest = descriptor_digest(p.size, levels[-1][0]).hex()
    base = os.path.basename(path)
    if re.fullmatch("[0-9a-f]{64}\\.ingot", base):
        need(base[:64] == digest, f"the file's name claims another digest than {digest}")
    if tree_path:
        with open(tree_path, "rb") as f:
            need(f.read() == tree_file(levels), f"{tree_path}: another tree")
    return digest


def export(path, folder):
    p = Pack(path)
    need(p.identity(), "a derived pack cannot rebuild its sources")
    files = [(b.name, p.data[b.offset:b.offset + b.bytes]) for b in p.blobs if b.kind == 0]
    files += [(s["name"], rebuild(p, i)) for i, s in enumerate(p.manifest["sources"])]
    for name, data in files:
        need(safe(name), f"blob {name!r}: its name")
        out = os.path.join(folder, name)
        os.makedirs(os.path.dirname(out), exist_ok=True)
        with open(out, "xb") as f:
            f.write(data)


def tensors(path):
    p = Pack(path)
    for r in p.rows:
        flags = "".join(c for c, on in zip("vts", (r.view, r.tied, r.shadow)) if on) or "-"
        print(r.digest.hex(), r.dtype, json.dumps(r.shape, separators=(",", ":")), flags,
              json.dumps(r.name))


def run(command, words):
    if command == "check" and len(words) == 3 and words[1] == "--tree":
        print("fsverity-sha256:" + check(words[0], words[2]))
    elif command == "check" and words and "--tree" not in words:
        for path in words:
            try:
                print("fsverity-sha256:" + check(path), flush=True)
            except Bad as e:
                raise Bad(f"{path}: {e}") from None
    elif command == "digest" and len(words) == 1:
        with open(words[0], "rb") as f:
            print("fsverity-sha256:" + digest_of(f.read()).hex())
    elif command == "export" and len(words) == 2:
        export(*words)
    elif command == "tensors" and len(words) == 1:
        tensors(*words)
    else:
        print(__doc__.strip(), file=sys.stderr)
        return 2
    return 0


def main(argv):
    try:
        return run(argv[1] if len(argv) > 1 else "", argv[2:])
    except (Bad, OSError, ValueError, KeyError) as e:
        print(f"packread.py: {type(e).__name__}: {e}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv))
