#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Damage index.mdb of a store, ask the store, compare with what it said before.

index.py [--full] [--seed N]: 3,000 damages, or 150.  Every kind of damage is also made with the
seal repaired, as somebody could who may write to the store: then what the index holds may be a
lie of theirs, so only that nothing crashes or hangs is asked for.  INGOT is the program.
"""

import json
import os
import random
import shutil
import struct
import subprocess
import sys
import tempfile

import lab

sys.path.insert(0, os.path.join(lab.HERE, "..", "interop"))
from xxh3 import xxh3_128  # noqa: E402

PAGE = 4096
MODELS = 30


def run(store, *args):
    """Status and output.  A signal is negative; a command that hangs is a finding too."""
    try:
        done = subprocess.run([lab.INGOT, *args], capture_output=True, timeout=60, check=False,
                              env={**os.environ, "INGOT_STORE": store})
    except subprocess.TimeoutExpired:
        return -99, b""
    return done.returncode, done.stdout


def repair(raw):
    """The seal as ingot-store(5) has it: length, then the hash over everything."""
    if len(raw) <= PAGE:
        return raw
    seal = bytearray(raw[-PAGE:])
    seal[:16] = b"INGOTIDX" + struct.pack("<II", 1, 0)
    seal[16:24] = struct.pack("<Q", len(raw) - PAGE)
    seal[32:48] = bytes(16)
    seal[48:] = bytes(PAGE - 48)
    seal[32:48] = xxh3_128(raw[:-PAGE] + bytes(seal))
    return raw[:-PAGE] + bytes(seal)


def damage(raw, others, rng):
    """One damage: what it is, and the file with it."""
    raw = bytearray(raw)
    pages = len(raw) // PAGE
    kind = rng.choice(["bit", "head", "cut", "page size", "meta", "swap", "zero", "old", "foreign",
                       "word", "grow"])
    if kind == "bit":
        at = rng.randrange(8 * len(raw))
        raw[at // 8] ^= 1 << at % 8
    elif kind == "head":  # LMDB's page header, and the first of its pointers
        at = rng.randrange(pages) * PAGE + rng.randrange(32)
        raw[at] = rng.randrange(256)
    elif kind == "cut":
        del raw[rng.randrange(len(raw)):]
    elif kind == "page size":  # md_pad of the free list's record: 16 + 24 in a meta page
        at = rng.randrange(2) * PAGE + 40
        raw[at:at + 4] = struct.pack("<I", rng.choice([0, 1, 512, 4095, 65536, 2**31, 2**32 - 1]))
    elif kind == "meta":
        at = rng.randrange(2) * PAGE + 16 + rng.randrange(136)
        raw[at] = rng.randrange(256)
    elif kind == "swap":
        a, b = (rng.randrange(pages) * PAGE for _ in range(2))
        raw[a:a + PAGE], raw[b:b + PAGE] = raw[b:b + PAGE], raw[a:a + PAGE]
    elif kind == "zero":
        at = rng.randrange(pages) * PAGE
        raw[at:at + PAGE] = bytes(PAGE)
    elif kind == "old":
        raw = bytearray(others[0])
    elif kind == "foreign":
        raw = bytearray(others[1])
    elif kind == "word":
        at = rng.randrange(len(raw) // 8) * 8
        raw[at:at + 8] = struct.pack("<Q", rng.choice([0, 1, 2**63, 2**64 - 1, rng.getrandbits(64),
                                                       rng.randrange(64), len(raw)]))
    else:
        raw += bytes(rng.randrange(1, 3 * PAGE))
    return kind, bytes(raw)


def questions(store):
    """What is asked, in turn: names, digests, source files."""
    models = json.loads(run(store, "ls", "--json")[1])["models"]
    asked = [("ls", "--json"), ("ls",)]
    for m in models[::5]:
        short = m["digest"].split(":")[1][:12]
        asked += [("show", "--json", short), ("show", m["name"])]
        sources = json.loads(run(store, "show", "--json", short)[1])["sources"]
        asked.append(("find", "--json", "--sha256", sources[0]["sha256"]))
    return asked


def main():
    a = lab.arguments()
    rng = random.Random(a.seed)
    total = 3000 if a.full else 150
    top = tempfile.mkdtemp(prefix="ingot-index.")
    bad = rebuilt = repaired = 0
    try:
        store, other = os.path.join(top, "store"), os.path.join(top, "other")
        index = os.path.join(store, "index.mdb")
        for i in range(MODELS):
            folder = os.path.join(top, "src", f"m{i}")
            lab.tiny_model(folder, i)
            for s in (store, other)[:1 + (i < 3)]:
                status, _ = run(s, "convert", "--no-config", "-n", f"team/m{i}", folder)
                assert status == 0, f"convert says {status}"
            if i == MODELS - 2:
                run(store, "reindex")
                old = open(index, "rb").read()
        run(store, "reindex")
        run(other, "reindex")
        good = open(index, "rb").read()
        others = old, open(os.path.join(other, "index.mdb"), "rb").read()
        asked = questions(store)
        truth = {q: run(store, *q) for q in asked}
        assert all(status == 0 for status, _ in truth.values()), "a question fails on a sound store"
        for n in range(total):
            kind, raw = damage(good, others, rng)
            forged = n % 2 == 1 and kind not in ("old", "foreign")
            if forged:
                raw, repaired = repair(raw), repaired + 1
            with open(index + ".new", "wb") as f:
                f.write(raw)
            os.replace(index + ".new", index)
            q = asked[n % len(asked)]
            got = run(store, *q)
            wrong = got[0] < 0 or not forged and got != truth[q]
            after = open(index, "rb").read()
            if not forged and raw != good and q[0] != "show":
                rebuilt += after != raw
                wrong = wrong or run(store, *q) != truth[q]
            if wrong:
                bad += 1
                print(f"index: FOUND: damage {n} (seed {a.seed}): {kind}"
                      f"{', sealed again' if forged else ''}: ingot {' '.join(q)}: status {got[0]}")
    finally:
        shutil.rmtree(top)
    print(f"index: {total} damages ({repaired} with a right seal): {bad} crashes, hangs or wrong "
          f"answers, {rebuilt} rebuilt and asked again (seed {a.seed}, "
          f"{'full' if a.full else 'short'})")
    return bad > 0


sys.exit(main())
