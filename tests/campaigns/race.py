#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Commands at once: convert and convert, convert and gc, convert and rm, tag and tag.

Two ways.  By chance: many rounds, all at the same moment.  By design: one is stopped before its
N-th call that touches the store, the other runs meanwhile (or for as long as the first one's lock
lets it), and the first goes on: with every N, every way in which one can be overtaken once.
Exit codes, names, one pack for one source, and verify are held against what either order gives.
"""

import os
import random
import signal
import subprocess
import sys
import time

import lab

EXISTS = 3


def finish(runs):
    """Exit codes and what was said; a command that hangs is of status -99."""
    out = []
    for run in runs:
        try:
            _, err = run.communicate(timeout=100)
        except subprocess.TimeoutExpired:
            run.kill()
            _, err = run.communicate()
            run.returncode = -99
        out.append((run.returncode, err.strip()))
    return out


def at_once(box, commands, shim=None):
    return finish([box.start(*c, shim=shim) for c in commands])


def overtaken(box, first, second, nth, shim=None):
    """None when the first one makes fewer calls."""
    rule = f"any:{box.store}:{nth}:STOP"
    if os.path.exists(box.hit):
        os.unlink(box.hit)
    a = box.start(*first, shim=f"{shim};{rule}" if shim else rule)
    _, status = os.waitpid(a.pid, os.WUNTRACED)
    if not os.WIFSTOPPED(status):
        a.returncode = os.waitstatus_to_exitcode(status)
        finish([a])
        return None
    b = box.start(*second)
    try:
        b.wait(timeout=0.25)
    except subprocess.TimeoutExpired:
        pass  # it waits for a lock that the stopped one holds
    a.send_signal(signal.SIGCONT)
    return finish([a, b])


class Duel:
    """Two commands that meet in one store."""

    def __init__(self, box, name, saved, commands, judge):
        self.box, self.name, self.saved = box, name, saved
        self.commands, self.judge, self.rounds, self.overtakings = commands, judge, 0, 0

    def check(self, done, how):
        box, what = self.box, f"{self.name}, {how}"
        names = box.check_store(what)
        said = self.judge([code for code, _ in done], names)
        if said:
            box.found(f"{what}: {said}: {done}, names {names}")
        box.must("gc")
        box.check_clean(what)
        if said or any(code not in (0, EXISTS) for code, _ in done):
            box.found(f"{what}: exit codes {done}")

    def by_chance(self, rounds):
        for i in range(rounds):
            self.box.restore(self.saved)
            shim = lab.NO_TMPFILE if i % 2 else None
            self.check(at_once(self.box, self.commands, shim), f"round {i}")
            self.rounds += 1

    def by_design(self, rng, samples):
        """At so many calls of each, or at all that it makes."""
        for first, second in (self.commands[:2], self.commands[1::-1]):
            for shim in (None, lab.NO_TMPFILE):
                self.box.restore(self.saved)
                trace = f"any:{self.box.store}:%1:NONE"
                self.box.run(*first, shim=f"{shim};{trace}" if shim else trace)
                calls = range(1, len(self.box.hits()) + 1)
                for nth in sorted(rng.sample(calls, min(samples, len(calls)))):
                    self.box.restore(self.saved)
                    done = overtaken(self.box, first, second, nth, shim)
                    if done:
                        where = self.box.hits()[0]
                        if first != self.commands[0]:
                            done.reverse()
                        self.check(done, f"{first[0]}{' named' if shim else ''} overtaken at call "
                                         f"{nth}, {where}")
                        self.overtakings += 1


def duels(box):
    box.forget_store()
    for i in range(3):
        lab.tiny_model(box.path("tiny", str(i)), i)
        box.must("convert", "--no-config", "-n", f"t{i}", box.path("tiny", str(i)))
    base = box.save("base")
    box.must("convert", "-n", "m", lab.POCKET)
    there = box.save("there")
    box.must("rm", "t1")  # something for gc to do
    old = box.save("garbage")
    zero, one, m = base[1]["t0"], base[1]["t1"], lab.GOLDEN
    convert = ("convert", "-n", "m", lab.POCKET)

    def both(codes, names):
        if codes != [0, 0] or names.get("m") != m:
            return "both should succeed"
        return None

    def one_pack(codes, names):
        packs = [p for p in box.packs() if p.startswith(m) and p.endswith(".ingot")]
        return both(codes, names) or (len(packs) != 1 and f"{len(packs)} packs")

    def removed(codes, names):
        """Before or after, or before there was anything to remove."""
        if codes[0] != 0 or codes[1] not in (0, EXISTS):
            return "convert should succeed, rm should succeed or find nothing"
        return codes[1] == EXISTS and names.get("m") != m and "the name was not removed, yet is gone"

    def one_wins(a, b):
        def judge(codes, names):
            if sorted(codes) != [0, EXISTS]:
                return "one should win, the other should say that it exists"
            won = {a[0]: a[1]} if codes[0] == 0 else {b[0]: b[1]}
            got = {n: d for n, d in names.items() if n not in base[1]}
            return got != won and f"expected {won}"
        return judge

    def last_wins(codes, names):
        return (codes != [0, 0] or names.get("x") not in (zero, one)) and "both should succeed"

    return [Duel(box, *d) for d in [
        ("convert and convert", base, (convert, convert), one_pack),
        ("convert and convert, there already", there, (convert, convert), one_pack),
        ("convert and convert under two names", base,
         (convert, ("convert", "-n", "n", lab.POCKET)),
         lambda codes, names: both(codes, names) or (names.get("n") != m and "a name is missing")),
        ("convert and gc", old, (("convert", "-n", "m", lab.POCKET), ("gc", "--all-ages")), both),
        ("convert and gc, new pack", base, (convert, ("gc", "--all-ages")), both),
        ("convert and rm", there, (convert, ("rm", "m")), removed),
        ("tag and gc", old, (("tag", "m", "x"), ("gc", "--all-ages")),
         lambda codes, names: (codes != [0, 0] or names.get("x") != m) and "both should succeed"),
        ("tag and tag", base, (("tag", "t0", "x"), ("tag", "t1", "x")),
         one_wins(("x", zero), ("x", one))),
        ("tag -f and tag -f", base, (("tag", "-f", "t0", "x"), ("tag", "-f", "t1", "x")),
         last_wins),
        ("tag and tag, differing in case", base, (("tag", "t0", "x"), ("tag", "t1", "X")),
         one_wins(("x", zero), ("X", one))),
        ("tag and tag, one in the other", base, (("tag", "t0", "x/y"), ("tag", "t1", "x")),
         one_wins(("x/y", zero), ("x", one))),
        ("tag and rm beside it", (there[0], there[1]),
         (("tag", "t0", "d/e/x"), ("rm", "m")),
         lambda codes, names: (codes != [0, 0] or "d/e/x" not in names) and "both should succeed"),
    ]]


def crowd(box, rounds):
    """Eight converts of four sources, and gc, at the same moment."""
    sources = [box.path("crowd", str(i)) for i in range(4)]
    for i, source in enumerate(sources):
        lab.tiny_model(source, 20 + i)
    for i in range(rounds):
        box.forget_store()
        commands = [("convert", "--no-config", "-n", f"a/n{k}", sources[k % 4]) for k in range(8)]
        done = at_once(box, commands + [("gc", "--all-ages")] * 2,
                       lab.NO_TMPFILE if i % 2 else None)
        what = f"crowd, round {i}"
        names = box.check_store(what)
        # gc before there is a store has nothing to do
        if any(code != 0 for code, _ in done) or len(names) != 8 or len(set(names.values())) != 4:
            box.found(f"{what}: {done}, names {names}")
        box.check_clean(what)
    return rounds


def main():
    a = lab.arguments()
    rng = random.Random(a.seed)
    start = time.monotonic()
    with lab.Lab("race") as box:
        all_duels = duels(box)
        for duel in all_duels:
            duel.by_chance(50 if a.full else 5 if duel is all_duels[0] else 1)
            duel.by_design(rng, 50 if a.full else 1)
        rounds = sum(d.rounds for d in all_duels) + crowd(box, 50 if a.full else 2)
        print(f"race: {rounds} rounds at once, {sum(d.overtakings for d in all_duels)} overtakings: "
              f"{box.findings} findings (seed {a.seed}, {'full' if a.full else 'short'}, "
              f"{time.monotonic() - start:.0f} s)")
        return box.findings > 0


sys.exit(main())
