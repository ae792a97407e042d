#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""kill -9 at every call that touches the store, and at random moments.

After each: names verify, nothing half-made is listed, and the next run takes the space back.  Both
ways of publishing: unnamed files, and temporaries where the file system has none.
"""

import os
import random
import shutil
import struct
import sys
import time

import lab


def big_model(folder, megabytes):
    """Two shards of two large tensors; the bytes differ from page to page."""
    os.makedirs(folder)
    with open(f"{folder}/config.json", "w", encoding="utf-8") as f:
        f.write("{}")
    noise = random.Random(1).randbytes((1 << 20) - 8)
    for shard in (1, 2):
        half = megabytes * 250000 // 4 * 4
        header = ('{"w%d.a":{"dtype":"F16","shape":[%d],"data_offsets":[0,%d]},"w%d.b":{"dtype":'
                  '"F16","shape":[%d],"data_offsets":[%d,%d]}}'
                  % (shard, half // 2, half, shard, half // 2, half, 2 * half)).encode()
        with open(f"{folder}/model-0000{shard}-of-00002.safetensors", "wb") as f:
            f.write(struct.pack("<Q", len(header)) + header)
            for at in range(0, 2 * half, 1 << 20):
                f.write((struct.pack("<Q", at) + noise)[:2 * half - at])


def check_after(box, what, before, command):
    """Right after the kill.  Names: those of before but for what the command names."""
    after = box.check_store(what)
    lost = {n for n in before if n not in after and not (command[0] == "rm" and n in command)}
    new = {n for n in after if after[n] != before.get(n) and n not in command}
    if lost or new:
        box.found(f"{what}: names lost: {sorted(lost)}, strange: {sorted(new)}")


def by_call(box, rng, command, prepare, stride, shim, after, label=""):
    """Kill at every call, or at every stride-th from a random one; ends where the command
    survives."""
    n, runs = rng.randrange(stride) + 1, 0
    while True:
        before = prepare()
        rule = f"any:{box.store}:{n}:KILL"
        done = box.run(*command, shim=f"{shim};{rule}" if shim else rule)
        if not box.hits():
            if done.returncode != 0:
                box.found(f"{command[0]}{label}: not killed, yet", done)
            return runs
        runs += 1
        what = (f"{' '.join(command)}{label}{' without O_TMPFILE' if shim else ''}: killed at call "
                f"{n}, {box.hits()[0]}")
        if done.returncode != -9:
            box.found(f"{what}: was not", done)
        check_after(box, what, before, command)
        after(what)
        n += stride


def seeded(box):
    """A store with one small pack in it."""
    lab.tiny_model(box.path("seed"), 50)
    box.must("convert", "--no-config", "-n", "seed/a", box.path("seed"))
    return box.save("seed")


def convert_by_call(box, rng, seed, stride):
    """Into a store without the pack, and into one that has it."""
    runs = 0
    for source, number in ((lab.POCKET, 1), (box.path("wide"), 5)):
        before = box.restore(seed)
        box.must("convert", "-n", "other", source)
        again = box.save(f"again{number}")
        want = {**before, "m": again[1]["other"]}

        def after(what):
            box.must("convert", "-n", "m", source)
            names = box.names()
            if {**names, **want} != names:
                box.found(f"{what}: after the next convert: {names}")
            box.check_clean(what)

        for saved in (seed, again):
            for shim in (None, lab.NO_TMPFILE):
                runs += by_call(box, rng, ("convert", "-n", "m", source), lambda: box.restore(saved),
                                stride * number, shim, after,
                                " (there already)" if saved == again else "")
    return runs


def convert_at_random(box, rng, seed, count, megabytes):
    source = box.path("big")
    big_model(source, megabytes)
    command = ("convert", "-n", "big", source)
    box.restore(seed)
    box.must(*command)
    box.restore(seed)
    start = time.monotonic()
    box.must(*command)
    took = time.monotonic() - start
    want, killed, i = box.names(), 0, -1
    while killed < count:  # what ends before it is killed does not count
        i += 1
        if i % 4 != 3:  # else the pack is there already
            box.restore(seed)
        before = seed[1] if i % 4 != 3 else want
        run = box.start(*command, shim=lab.NO_TMPFILE if i % 2 else None)
        moment = rng.uniform(0, took)
        time.sleep(moment)
        run.kill()
        run.communicate()
        killed += run.returncode == -9
        what = f"convert: random moment {i}, after {moment:.4f} s of {took:.4f}"
        check_after(box, what, before, command)
        if i % 5 == 4:
            box.must("gc", "--all-ages")
            box.check_clean(f"{what}: after gc")
        box.must(*command)
        if box.names() != want:
            box.found(f"{what}: after the next convert: {box.names()}")
        box.check_clean(what)
    shutil.rmtree(source)
    return killed


def prepared_store(box):
    """Six named packs; a derived one whose parent has no name; two without any."""
    box.forget_store()
    for i in range(9):
        lab.tiny_model(box.path("tiny", str(i)), i)
        box.must("convert", "--no-config", "-n", f"t/m{i}", box.path("tiny", str(i)))
    box.must("convert", "-n", "t/child", "--dtype", "bf16", "t/m6")
    box.must("rm", "t/m6", "t/m7", "t/m8")
    return box.save("prepared")


def others(box, rng, saved, count, stride):
    """rm, gc, tag and reindex.  After the next gc, garbage is gone and nothing else."""
    commands = [("rm", "t/m1"), ("rm", "t/m2", "t/m3"), ("gc", "--all-ages"), ("tag", "t/m0", "t/new"),
                ("tag", "t/m0", "new/deep/er"), ("tag", "-f", "t/m0", "t/m4"), ("reindex",)]

    def after(what):
        box.must("gc", "--all-ages")
        box.check_clean(what)
        names = box.check_store(what)
        there = sorted(f[:64] for f in box.packs() if f.endswith(".ingot"))
        beside = {f[:64] for f in box.packs()} - set(there)
        if len(there) != len(set(names.values())) + 1 or not set(names.values()) <= set(there):
            box.found(f"{what}: {len(there)} packs after gc, {len(names)} names")
        if beside:
            box.found(f"{what}: beside no pack: {beside}")

    runs = 0
    for shim in (None, lab.NO_TMPFILE):
        for command in commands:
            runs += by_call(box, rng, command, lambda: box.restore(saved), stride, shim, after)
    killed, i = 0, -1
    while killed < count:
        i += 1
        before = box.restore(saved)
        command = commands[i % len(commands)]
        moment = rng.uniform(0, 0.006)
        run = box.start(*command)
        time.sleep(moment)
        run.kill()
        run.communicate()
        killed += run.returncode == -9
        what = f"{' '.join(command)}: random moment {i}, after {moment:.4f} s"
        check_after(box, what, before, command)
        after(what)
    return runs, killed


def main():
    a = lab.arguments()
    rng = random.Random(a.seed)
    with lab.Lab("kill") as box:
        lab.wide_model(box.path("wide"))
        seed = seeded(box)
        calls = convert_by_call(box, rng, seed, 1 if a.full else 61)
        moments = convert_at_random(box, rng, seed, 200 if a.full else 6, 300 if a.full else 40)
        more, killed = others(box, rng, prepared_store(box), 50 if a.full else 6,
                              1 if a.full else 31)
        print(f"kill: convert killed at {calls} calls and {moments} random moments, rm, gc, tag, "
              f"reindex at {more} calls and {killed} random moments: {box.findings} findings "
              f"(seed {a.seed}, {'full' if a.full else 'short'})")
        return box.findings > 0


sys.exit(main())
