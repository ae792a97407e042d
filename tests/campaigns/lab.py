# SPDX-License-Identifier: Apache-2.0
"""What the campaigns share: a folder to work in, the program under test, and what must hold of a
store whatever happened to it.  INGOT is the program, SHIM_SO tests/shim/shim.c when it is built."""

import argparse
import json
import os
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.join(HERE, "..", "..")
INGOT = os.path.realpath(os.environ.get("INGOT", "ingot"))
POCKET = os.path.realpath(os.path.join(TOP, "tests", "models", "phi3-pocket"))
GOLDEN = "b377b3eca0e2cae65965a8c7107edf7e8e2a5411ea1b6e6f64b6ef41eafea6b1"
PUBLISHED = re.compile(r"[0-9a-f]{64}\.(ingot|tree|origin\.json|sigs)$")
NO_TMPFILE = "tmpfile:*:*:EOPNOTSUPP"


def arguments():
    p = argparse.ArgumentParser()
    p.add_argument("--full", action="store_true", help="as long as the campaign is meant to be")
    p.add_argument("--seed", type=int, default=1)
    return p.parse_args()


def safetensors(path, tensors):
    """tensors: name -> (dtype, width, bytes)."""
    header, data = {}, b""
    for name, (dtype, width, body) in tensors.items():
        header[name] = {"dtype": dtype, "shape": [len(body) // width],
                        "data_offsets": [len(data), len(data) + len(body)]}
        data += body
    text = json.dumps(header).encode()
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + data)


def tiny_model(folder, number):
    """One file, one to three tensors: every number gives another pack."""
    os.makedirs(folder)
    tensors = {}
    for i in range(1 + number % 3):
        body = bytes((number * 7 + i + k) % 256 for k in range(4 * (number + 1)))
        tensors[f"t{i}"] = (*[("F32", 4), ("F16", 2), ("U8", 1)][(number + i) % 3], body)
    safetensors(os.path.join(folder, "model.safetensors"), tensors)


def wide_model(folder):
    """Rows of more than a MiB, which are written past the page cache, some of them not whole pages,
    beside small ones; and a signature."""
    os.makedirs(folder)
    bundle = '{"mediaType":"application/vnd.dev.sigstore.bundle.v0.3+json"}'
    for name, text in (("config.json", "{}"), ("model.sig", bundle)):
        with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
            f.write(text)
    block = b"".join(struct.pack("<f", i) for i in range(1 << 16))
    for shard in (1, 2):
        rows = {f"s{shard}.big": block * 10, f"s{shard}.odd": block[shard:] + block * 4 +
                block[:shard + 40], f"s{shard}.small": block[:400]}
        rows = {name: ("U8" if "odd" in name else "F32", 1 if "odd" in name else 4, body)
                for name, body in rows.items()}
        safetensors(os.path.join(folder, f"model-0000{shard}-of-00002.safetensors"), rows)


class Lab:
    """A temporary folder with a store in it; findings are printed as they come."""

    def __init__(self, name):
        self.name = name
        self.findings = 0
        self.top = tempfile.mkdtemp(prefix=f"ingot-{name}.")
        self.store = os.path.join(self.top, "store")
        self.hit = os.path.join(self.top, "hit")
        self.shim = os.environ.get("SHIM_SO") or self.build_shim()

    def __enter__(self):
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # by way of __exit__
        return self

    def __exit__(self, *why):
        shutil.rmtree(self.top, ignore_errors=True)

    def build_shim(self):
        so = os.path.join(self.top, "shim.so")
        subprocess.run([os.environ.get("CC", "gcc"), "-std=gnu11", "-D_GNU_SOURCE", "-O1", "-fPIC",
                        "-shared", "-o", so, os.path.join(TOP, "tests", "shim", "shim.c"), "-ldl"],
                       check=True)
        return so

    def path(self, *parts):
        return os.path.join(self.top, *parts)

    def environment(self, shim=None, seed=0):
        env = {**os.environ, "INGOT_STORE": self.store, "LC_ALL": "C.UTF-8"}
        if shim:
            env.update(SHIM=shim, SHIM_HIT=self.hit, SHIM_SEED=str(seed), LD_PRELOAD=self.shim)
        return env

    def run(self, *args, shim=None, seed=0, ulimit=None):
        """The finished command.  A command that hangs is a finding, of status -99."""
        if os.path.exists(self.hit):
            os.unlink(self.hit)
        command = [INGOT, *args]
        if ulimit is not None:
            command = ["bash", "-c", f'ulimit -f {ulimit}; exec "$@"', "bash", *command]
        try:
            return subprocess.run(command, env=self.environment(shim, seed), capture_output=True,
                                  text=True, errors="replace", timeout=120, check=False)
        except subprocess.TimeoutExpired:
            return subprocess.CompletedProcess(command, -99, "", "hangs")

    def start(self, *args, shim=None):
        return subprocess.Popen([INGOT, *args], env=self.environment(shim), text=True,
                                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)

    def hits(self):
        """What numbered rules of the last run hit: "op path"."""
        if not os.path.exists(self.hit):
            return []
        with open(self.hit, encoding="utf-8", errors="replace") as f:
            return f.read().splitlines()

    def found(self, what, done=None):
        self.findings += 1
        more = f": status {done.returncode}: {done.stderr.strip()[:300]}" if done else ""
        print(f"{self.name}: FOUND: {what}{more}", flush=True)

    def must(self, *args, **how):
        """A command that has no reason to fail."""
        done = self.run(*args, **how)
        if done.returncode != 0:
            self.found(f"ingot {' '.join(args)}", done)
        return done

    def save(self, name):
        """The store as it is, times and all: its folder and its names."""
        saved = self.path("saved", name)
        shutil.copytree(self.store, saved, symlinks=True)
        return saved, self.names()

    def forget_store(self):
        shutil.rmtree(self.store, ignore_errors=True)

    def restore(self, saved):
        """Returns the names.  Packs are never changed in place: they need no copies."""
        self.forget_store()
        shutil.copytree(saved[0], self.store, symlinks=True,
                        copy_function=lambda a, b: os.link(a, b) if "/packs/" in a else
                        shutil.copy2(a, b))
        return saved[1]

    def packs(self):
        folder = os.path.join(self.store, "packs")
        return sorted(os.listdir(folder)) if os.path.isdir(folder) else []

    def names(self):
        done = self.must("ls", "--json")
        return self.names_of(json.loads(done.stdout)) if done.returncode == 0 else {}

    @staticmethod
    def names_of(listed):
        return {m["name"]: m["digest"].split(":")[1] for m in listed["models"] if m["name"]}

    def files(self, folder):
        """path below the folder -> mode, size"""
        top, out = os.path.join(self.store, folder), {}
        for where, _, names in os.walk(top):
            for name in names:
                path = os.path.join(where, name)
                st = os.lstat(path)
                out[os.path.relpath(path, top)] = (oct(st.st_mode), st.st_size)
        return out

    def check_store(self, what):
        """Every name verifies, nothing half-made is listed; packs are whole.  Temporaries may be
        there until the next run.  Returns the names."""
        done = self.run("ls", "--json")
        if done.returncode != 0:
            self.found(f"{what}: ls", done)
            return {}
        listed = json.loads(done.stdout)
        for model in listed["models"]:
            if model["state"] != "ok":
                self.found(f"{what}: {model['name']} is {model['state']}")
        if listed["bad_names"]:
            self.found(f"{what}: bad names: {listed['bad_names']}")
        if any(p.endswith(".ingot") for p in self.packs()):
            done = self.run("verify", "--all")
            if done.returncode != 0:
                self.found(f"{what}: verify --all: {done.stdout[:300]}", done)
        return self.names_of(listed)

    def check_clean(self, what):
        """Nothing is left in the store but what was published."""
        left = [f for f in self.packs() if not PUBLISHED.match(f)]
        for where, _, names in os.walk(self.store):
            left += [os.path.join(where, n) for n in names if n.startswith(".")]
        if left:
            self.found(f"{what}: left behind: {left}")
