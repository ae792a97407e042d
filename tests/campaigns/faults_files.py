# SPDX-License-Identifier: Apache-2.0
"""Short and interrupted transfers, limits on file sizes, files that change while they are read, a
store inside its source: the part of faults.py that is about files."""

import filecmp
import os
import re
import shutil

import lab


def same_folder(a, b):
    """The same names, the same bytes."""
    if not os.path.isdir(b) or sorted(os.listdir(a)) != sorted(os.listdir(b)):
        return False
    return not any(filecmp.cmpfiles(a, b, os.listdir(a), shallow=False)[1:])


def expect_golden(box, what, name="m"):
    names = box.check_store(what)
    if names.get(name) != lab.GOLDEN:
        box.found(f"{what}: another digest: {names.get(name)}")
    box.check_clean(what)


def short_transfers(box, rng, rounds):
    """Any prefix of every transfer, and every second or third call interrupted."""
    for _ in range(rounds):
        seed, out = rng.getrandbits(31), box.path("out")
        shutil.rmtree(out, ignore_errors=True)
        k = 2 + seed % 3
        shim = f"pread:{box.top}:*:PART;pwrite:{box.top}:*:PART" if seed % 2 else \
            f"pread:{box.top}:%{k}:EINTR;pwrite:{box.top}:%{k}:EINTR;fsync:{box.top}:%2:EINTR;" \
            f"pread:{box.top}:*:PART;pwrite:{box.top}:*:PART"
        what = f"short transfers, {shim}, SHIM_SEED {seed}"
        box.forget_store()
        box.must("convert", "-n", "m", box.path("source"), shim=shim, seed=seed)
        expect_golden(box, what)
        box.must("convert", "-n", "w", box.path("wide"), shim=shim, seed=seed)
        wide = box.names().get("w")
        box.must("convert", "-n", "w2", box.path("wide"))
        if wide is None or box.names().get("w2") != wide:
            box.found(f"{what}: another digest of the wide model")
        box.must("verify", "m", shim=shim, seed=seed)
        box.must("export", "m", out, shim=shim, seed=seed)
        if not same_folder(lab.POCKET, out):
            box.found(f"{what}: export differs")
        shutil.rmtree(out, ignore_errors=True)
    return rounds


def limits(box, rng, count):
    """ulimit -f, in KiB: below what the command writes it is an error like others."""
    box.forget_store()
    box.must("convert", "-n", "m", lab.POCKET)
    golden = box.save("limits")
    size = max(size for _, size in box.files("packs").values()) // 1024 + 1
    largest = max(os.path.getsize(os.path.join(lab.POCKET, f)) for f in os.listdir(lab.POCKET))
    points = [0, 1, 4, size - 1, size, size + 64] + [rng.randrange(size) for _ in range(count)]
    for limit in points:
        for what, need, command in (("convert", size, ("convert", "-n", "m", box.path("source"))),
                                    ("export", largest // 1024 + 1,
                                     ("export", "m", box.path("out")))):
            what = f"{what} under ulimit -f {limit}"
            shutil.rmtree(box.path("out"), ignore_errors=True)
            box.forget_store()
            if command[0] == "export":
                box.restore(golden)
            done = box.run(*command, ulimit=limit)
            if limit >= need + 64:  # convert reserves a little more than it will need
                if done.returncode != 0:
                    box.found(what, done)
            elif limit >= need and done.returncode == 0:
                pass
            elif done.returncode != 4 or done.stderr.count("\n") != 1 or \
                    box.top not in done.stderr or "EFBIG" not in done.stderr:
                box.found(f"{what}: not exit 4 with the file and EFBIG", done)
            if done.returncode != 0 and os.path.exists(box.path("out")):
                box.found(f"{what}: a part is left")
            box.check_store(what)
            box.check_clean(what)
    return 2 * len(points)


def changes(box, rng, full):
    """A source cut, grown, rewritten in place, touched, or replaced by rename, before every read,
    open and stat of it: refused, or converted as it was."""
    runs, source = 0, box.path("source")
    for name in sorted(os.listdir(lab.POCKET)):
        path = os.path.join(source, name)
        for op in ("pread", "open", "stat", "close"):
            box.forget_store()
            box.run("convert", "-n", "m", source, shim=f"{op}:{path}:%1:NONE")
            n = len(box.hits())
            for action in ("CUT", "GROW", "FLIP", "TOUCH", "SWAP"):
                nths = range(1, n + 1) if full else rng.sample(range(1, n + 1), min(n, 1))
                for nth in nths if full or rng.random() < 0.1 else []:
                    runs += 1
                    one_change(box, source, path, f"{op}:{path}:{nth}:{action}")
    return runs


def one_change(box, source, path, rule):
    what = f"source changed: {rule}"
    box.forget_store()
    done = box.run("convert", "-n", "m", source, shim=rule)
    changed = not filecmp.cmp(path, os.path.join(lab.POCKET, os.path.basename(path)), shallow=False)
    clean = {"m": lab.GOLDEN}
    if done.returncode == 0:
        # As it was, or as it is: a file that was changed before its first read is just another.
        names = box.check_store(what)
        if names != clean and changed:
            again = box.run("convert", "-n", "again", source)
            if again.returncode != 0 or box.names().get("again") != names.get("m"):
                box.found(f"{what}: a mixture of both was converted", again)
        elif names != clean:
            box.found(f"{what}: another digest: {names}")
    elif done.returncode not in (3, 4) or source not in done.stderr or \
            not re.fullmatch(r"ingot convert: [^\n]*\n", done.stderr):
        box.found(f"{what}: not exit 3 or 4 with one line that names it", done)
    elif box.names():
        box.found(f"{what}: failed, yet a name appears: {box.names()}")
    box.check_store(what)
    box.check_clean(what)
    shutil.copy(os.path.join(lab.POCKET, os.path.basename(path)), path)


def store_in_source(box):
    """A store inside the folder that is converted is no part of it, whether it is there or not."""
    runs, source = 0, box.path("holder", "source")
    outside = box.store
    for where in ("store", ".store", "sub/store", "packs"):
        shutil.rmtree(box.path("holder"), ignore_errors=True)
        shutil.copytree(lab.POCKET, source)
        box.store = os.path.join(source, where)
        for i in range(3):
            runs += 1
            box.must("convert", "-n", f"m{i}", source)
            expect_golden(box, f"store at {where} inside the source, run {i + 1}", f"m{i}")
    box.store = outside
    return runs


def flushes(box):
    """What a command makes, links or renames, it then flushes: file before, folder after."""
    runs = 0
    shutil.rmtree(box.path("new"), ignore_errors=True)
    outside, box.store = box.store, box.path("new", "deep", "store")
    os.mkdir(box.path("new"))
    for shim in (lab.NO_TMPFILE + ";", ""):
        shutil.rmtree(box.path("new", "deep"), ignore_errors=True)
        for command in (("convert", "-n", "a/b/w", box.path("wide")), ("tag", "a/b/w", "c/d"),
                        ("convert", "-n", "e", box.path("wide")), ("rm", "a/b/w"),
                        ("export", "e", box.path("new", "out"))):
            runs += 1
            for out in ("out", "out.sigs"):
                shutil.rmtree(box.path("new", out), ignore_errors=True)
            there = {where for where, _, _ in os.walk(box.top)}
            box.must(*command, shim=f"{shim}any:{box.top}:%1:NONE")
            events = [h.split(" ", 1) for h in box.hits()]
            for i, (op, path) in enumerate(events):
                folder = os.path.dirname(path)
                later = [p for o, p in events[i:] if o == "fsync"]
                if op in ("mkdir", "link", "rename", "unlink") and path not in there and \
                        "/.tmp-" not in path and os.path.isdir(folder) and folder not in later:
                    box.found(f"{' '.join(command)}: {op} {path[len(box.top):]} is not flushed")
                there |= {path} if op == "mkdir" else set()  # a second one makes nothing
    box.store = outside
    return runs


def run(box, rng, full):
    transfers = short_transfers(box, rng, 40 if full else 2)
    limited = limits(box, rng, 200 if full else 2)
    changed = changes(box, rng, full)
    inside = store_in_source(box) + flushes(box)
    return (f"{transfers} rounds of short transfers, {limited} limits, {changed} changes of a "
            f"source, {inside} runs with the store in it or traced")
