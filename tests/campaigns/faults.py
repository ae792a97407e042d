#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fail the N-th call of each kind, for every N of a clean run of each command.

A failure is exit 4, one line that names the file, a store as it was, and nothing left behind; what
can be done otherwise, or again, is done, and then the result is right.  After each, a clean run
has the right result.  Short transfers, limits on file sizes, and files that change while they are
read: faults_files.py, which this runs as well.
"""

import os
import random
import re
import shutil
import sys
from collections import Counter

import faults_files
import lab

# What each operation may say.  "again": the call is to be repeated, or done in another way.
ERRORS = {
    "pread": ["EIO", "EINTR again"],
    "pwrite": ["ENOSPC", "EIO", "EFBIG", "EINTR again"],
    "direct": ["EINVAL again", "EOPNOTSUPP again", "EIO", "ENOSPC"],
    "odirect": ["EINVAL again"],
    "tmpfile": ["EOPNOTSUPP again"],
    "fallocate": ["EOPNOTSUPP again", "ENOSPC", "EINTR again"],
    "fsync": ["EIO", "ENOSPC", "EINTR again"],
    "close": ["EIO", "EINTR again"],
    "open": ["EIO", "EMFILE"],
    "stat": ["EIO", "EACCES"],
    "readdir": ["EIO"],
    "link": ["EIO", "ENOSPC"],
    "rename": ["EIO", "ENOSPC"],
    "unlink": ["EIO", "EACCES"],
    "ftruncate": ["EIO"],
    "chmod": ["EPERM"],
    "flock": ["ENOLCK", "EINTR again"],
    "mkdir": ["ENOSPC"],
    "statvfs": ["EIO"],
}
# These cannot go well when they fail, but where they are about the index, which may be missing, or
# about a name that only stands beside the one that is meant.
FATAL = {"pread", "pwrite", "direct", "fsync", "link", "rename"}
INDEX = re.compile(r"index\.mdb|ingot-index|/store(/#\d+ \(deleted\)|/\.tmp-[^/]*)?$")


class Scenario:
    """One command on one store, and what must hold of it."""

    def __init__(self, box, name, saved, command, shim=None):
        self.box, self.name, self.saved, self.command, self.shim = box, name, saved, command, shim
        self.out = box.path("out") if command[0] == "export" else None
        self.signed = "signed" in name
        self.reset()
        self.before = self.state()
        done = box.must(*command, shim=f"{shim or ''};any:{box.top}:%1:NONE".lstrip(";"))
        self.calls = Counter(h.split()[0] for h in box.hits())
        self.after = self.state()
        if self.after[0].get("m2" if "m2" in command else "m", lab.GOLDEN) != lab.GOLDEN or \
                done.returncode != 0:
            box.found(f"{name}: the clean run", done)

    def reset(self):
        self.box.restore(self.saved)
        self.clear_out()

    def clear_out(self):
        if self.out:
            shutil.rmtree(self.out, ignore_errors=True)
            shutil.rmtree(f"{self.out}.sigs", ignore_errors=True)

    def state(self):
        return self.box.names(), self.box.files("packs")

    def is_right(self):
        if self.out and not faults_files.same_folder(lab.POCKET, self.out):
            return False
        if self.signed and len(os.listdir(f"{self.out}.sigs")) != 1:
            return False
        names, packs = self.state()
        packs = {p for p in packs if not p.startswith(".tmp-")}
        return names == self.after[0] and packs == self.after[1].keys()

    def is_unchanged(self, what):
        """After a failure.  rm may have removed some of its names, gc some of its garbage; convert
        may have published a pack whose name it then could not write."""
        box, command = self.box, self.command[0]
        names, packs = self.state()
        (names0, packs0), (names1, packs1) = self.before, self.after
        if command == "rm":
            fine = names1.items() <= names.items() <= names0.items()
        else:
            fine = names in (names0, names1)
        new = packs.keys() - packs0.keys()
        lost = packs0.keys() - packs.keys()
        if not fine or not new <= packs1.keys() or lost & packs1.keys():
            box.found(f"{what}: the store has changed: names {names}, lost {sorted(lost)}, "
                      f"new {sorted(new)}")
        if self.out and [f for f in os.listdir(box.top) if f.startswith((".out", "out"))]:
            box.found(f"{what}: something is left of the export")

    def may_miss(self, op, where):
        """Is the file one that the command can do without?"""
        command, name = self.command[0], where.split("/store/names/")[-1]
        if INDEX.search(where) or command == "ls":  # which says what it could not read
            return True
        # Other names are only looked at, in a list that has them all; rm says what it cannot tell.
        listed = name != where and (command in ("tag", "convert") or name not in self.command)
        return op == "pread" and (command == "rm" or listed)

    def run(self, op, error, nth):
        """One fault; nothing when there was no such call."""
        box = self.box
        error, again = error.split()[0], " " in error
        rule = f"{op}:{box.top}:{nth}:{error}"
        self.reset()
        done = box.run(*self.command, shim=f"{self.shim};{rule}" if self.shim else rule)
        if not box.hits():
            return 0
        where = box.hits()[0].split(" ", 1)[1]
        what = f"{self.name}: {rule} at {where[len(box.top):]}"
        if done.returncode == 0:
            if op in FATAL and not again and not self.may_miss(op, where):
                box.found(f"{what}: not noticed", done)
            elif not self.is_right():
                box.found(f"{what}: exit 0 with another result", done)
        else:
            if again:
                box.found(f"{what}: should go on", done)
            self.judge_failure(what, done)
            self.is_unchanged(what)
        box.check_store(what)
        if op not in ("unlink", "stat"):  # else the next run does it
            box.check_clean(what)
        self.clear_out()
        command = list(self.command)
        if command[0] == "rm":  # those that are left
            command[1:] = [name for name in command[1:] if name in box.names()]
        done = box.run(*command) if len(command) > 1 else box.run("ls")
        if done.returncode != 0 or not self.is_right():
            box.found(f"{what}: the next run", done)
        if self.command[0] in ("convert", "gc"):
            box.check_clean(f"{what}: the next run")
        return 1

    def judge_failure(self, what, done):
        lines = [l for l in done.stderr.splitlines() if not re.match(r"ingot \w+: notice: ", l)]
        bad = self.command[0] == "verify" and done.returncode == 1
        if done.returncode != 4 and not bad:
            self.box.found(f"{what}: not exit 4", done)
        elif bad:
            if lab.GOLDEN[:12] not in done.stdout:
                self.box.found(f"{what}: does not name the pack: {done.stdout[:200]}", done)
        elif len(lines) != 1 or not re.match(r"ingot \w+: ", lines[0]) or not lines[0].isprintable():
            self.box.found(f"{what}: not one line of error", done)
        elif self.box.top not in lines[0]:
            self.box.found(f"{what}: does not name the file", done)


def scenarios(box):
    box.forget_store()
    for i in range(5):
        lab.tiny_model(box.path("tiny", str(i)), i)
        box.must("convert", "--no-config", "-n", f"t/m{i}", box.path("tiny", str(i)))
    box.must("convert", "-n", "child", "--dtype", "bf16", "t/m3")
    seed = box.save("seed")
    box.must("rm", "t/m2", "t/m3")  # m3 stays, as the parent of the child
    box.must("rm", "t/m4")
    box.must("tag", "t/m0", "deep/a/b")
    garbage = box.save("garbage")
    box.restore(seed)
    box.must("convert", "-n", "m", lab.POCKET)
    golden = box.save("golden")
    source, wide = box.path("source"), box.path("wide")
    shutil.copytree(lab.POCKET, source)
    lab.wide_model(wide)
    signed_source = box.path("signed")
    shutil.copytree(lab.POCKET, signed_source)
    shutil.copy(os.path.join(wide, "model.sig"), signed_source)
    box.must("convert", "-n", "m", signed_source)
    signed = box.save("signed-golden")
    if golden[1]["m"] != lab.GOLDEN:
        box.found(f"the golden digest is {golden[1]['m']}")
    return [Scenario(box, *s) for s in [
        ("verify", golden, ("verify", "m")),
        ("verify --fast", golden, ("verify", "--fast", "m")),
        ("verify --source", golden, ("verify", "--source", source, "m")),
        ("export", golden, ("export", "m", box.path("out"))),
        ("export, signed", signed, ("export", "m", box.path("out"))),
        ("rm", garbage, ("rm", "t/m1", "deep/a/b")),
        ("gc", garbage, ("gc", "--all-ages")),
        ("tag", garbage, ("tag", "t/m0", "x/y/z")),
        ("tag -f", garbage, ("tag", "-f", "t/m0", "t/m1")),
        ("ls", garbage, ("ls",)),
        ("convert", seed, ("convert", "-n", "m", source)),
        ("convert, named temporaries", seed, ("convert", "-n", "m", source), lab.NO_TMPFILE),
        ("convert, there already", golden, ("convert", "-n", "m2", source)),
        ("convert, past the cache", seed, ("convert", "-n", "w", wide)),
        ("convert of a model", golden, ("convert", "-n", "d", "--dtype", "f32", "m")),
    ]]


def enumerate_faults(box, rng, full):
    runs = 0
    for s in scenarios(box):
        for op, errors in ERRORS.items():
            n = s.calls[op]
            if full:  # threads may make a few calls more than they did when they were counted
                for error in errors:
                    runs += sum(s.run(op, error, i) for i in range(1, n + 3))
            elif n and rng.random() < 0.5:
                runs += s.run(op, rng.choice(errors), rng.randint(1, n))
    return runs


def main():
    a = lab.arguments()
    rng = random.Random(a.seed)
    with lab.Lab("faults") as box:
        faults = enumerate_faults(box, rng, a.full)
        files = faults_files.run(box, rng, a.full)
        print(f"faults: {faults} calls failed, {files}: {box.findings} findings (seed {a.seed}, "
              f"{'full' if a.full else 'short'})")
        return box.findings > 0


sys.exit(main())
