#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""peers: the same checkpoint into a GPU's memory by ingot and by the loaders of PyPI.

  peers.py [--dir FOLDER] [--rounds N] [--cold] [--scale F] [NAME...]

Every load of every loader is a process of its own that has made the CUDA context before the clock
starts: "first" is its first load, "best" the least of three more.  Rounds go through the loaders in
another order each; the table has medians.  A loader that is not installed is left out, with a word.
Needs torch, numpy and safetensors; ingot by its C library (INGOT_LIB, or beside the program that
INGOT names).  With --cold each load begins with the files out of the page cache, looked at.
"""
import argparse
import ctypes
import glob
import importlib.util
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time

HIDDEN, INNER, LAYERS, VOCABULARY = 3072, 8192, 32, 32064
SHARE = "layers.7."  # the tensors whose sums are compared


# ---- the checkpoint: Phi-3-mini's tensors, random f16, two shards ----

def make(folder, scale):
    import torch
    from safetensors.torch import save_file

    h = int(HIDDEN * scale) // 64 * 64 or 64
    inner = int(INNER * scale) // 64 * 64 or 64
    g = torch.Generator(device="cuda").manual_seed(1)

    def random(*shape):
        return (torch.randn(*shape, generator=g, device="cuda", dtype=torch.float16) * 0.02).cpu()

    def ones():
        return torch.ones(h, dtype=torch.float16)

    shards = [{"model.embed_tokens.weight": random(VOCABULARY, h)}, {}]
    for i in range(LAYERS):
        shard, p = shards[i >= 20], f"model.layers.{i}."
        shard[p + "self_attn.qkv_proj.weight"] = random(3 * h, h)
        shard[p + "self_attn.o_proj.weight"] = random(h, h)
        shard[p + "mlp.gate_up_proj.weight"] = random(2 * inner, h)
        shard[p + "mlp.down_proj.weight"] = random(h, inner)
        shard[p + "input_layernorm.weight"] = ones()
        shard[p + "post_attention_layernorm.weight"] = ones()
    shards[1]["model.norm.weight"] = ones()
    shards[1]["lm_head.weight"] = random(VOCABULARY, h)
    names = {}
    os.makedirs(folder, exist_ok=True)
    for i, shard in enumerate(shards):
        file = f"model-{i + 1:05d}-of-00002.safetensors"
        save_file(shard, f"{folder}/{file}", metadata={"format": "pt"})
        names.update(dict.fromkeys(shard, file))
    with open(f"{folder}/model.safetensors.index.json", "w") as f:
        json.dump({"metadata": {}, "weight_map": names}, f)


# ---- loaders: files -> {name: tensor on cuda:0} ----

def safetensors_load_file(files):
    from safetensors.torch import load_file
    return {k: v for f in files for k, v in load_file(f, device="cuda:0").items()}


def instanttensor(files, **options):
    from instanttensor import safe_open
    with safe_open(list(files), framework="pt", device=0, **options) as f:
        return dict(f.tensors())


def instanttensor_buffered(files):
    from instanttensor import BackendPolicy
    return instanttensor(files, backend=BackendPolicy.BUFFERED)


def instanttensor_mmap(files):
    from instanttensor import Backend
    return instanttensor(files, backend=Backend.MMAP)


def instanttensor_mmap_views(files):
    from instanttensor import Backend
    size = sum(map(os.path.getsize, files)) + (1 << 30)
    return instanttensor(files, backend=Backend.MMAP, copy=False, buffer_size=size)


def fastsafetensors(files):
    from fastsafetensors import fastsafe_open
    with fastsafe_open(filenames=list(files), nogds=True, device="cuda:0",
                       max_copy_block_size=256 << 20) as f:
        return {k: f.get_tensor(k).clone() for k in f.keys()}


def runai(files):
    from runai_model_streamer import SafetensorsStreamer
    with SafetensorsStreamer() as s:
        s.stream_files(list(files), device="cuda:0")
        return dict(s.get_tensors())


def runai_host(files):
    from runai_model_streamer import SafetensorsStreamer
    with SafetensorsStreamer() as s:
        s.stream_files(list(files))
        return {k: v.to("cuda:0") for k, v in s.get_tensors()}


def tensorizer_path(files):
    return os.path.dirname(files[0]) + "/model.tensors"


def tensorizer(files, verify=False):
    from tensorizer import TensorDeserializer
    with TensorDeserializer(tensorizer_path(files), device="cuda:0", verify_hash=verify,
                            num_readers=8) as d:
        return dict(d)


def tensorizer_verify(files):
    return tensorizer(files, True)


def make_tensorizer(files):
    from safetensors.torch import load_file
    from tensorizer import TensorSerializer
    s = TensorSerializer(tensorizer_path(files))
    s.write_state_dict({k: v for f in files for k, v in load_file(f).items()})
    s.close()


# ---- ingot, by its C library ----

class Error(ctypes.Structure):
    _fields_ = [("status", ctypes.c_int), ("errno", ctypes.c_int), ("has_offset", ctypes.c_int),
                ("offset", ctypes.c_uint64), ("message", ctypes.c_char * 4096),
                ("file", ctypes.c_char * 512), ("tensor", ctypes.c_char * 256)]


class LoaderOptions(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("device", ctypes.c_char_p),
                ("threads", ctypes.c_uint), ("memory", ctypes.c_uint64), ("engine", ctypes.c_int),
                ("notice", ctypes.c_void_p), ("ctx", ctypes.c_void_p)]


class LoadOptions(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("check", ctypes.c_int),
                ("tensors", ctypes.c_void_p), ("ntensors", ctypes.c_size_t),
                ("rank", ctypes.c_uint), ("ranks", ctypes.c_uint),
                ("pieces", ctypes.c_void_p), ("npieces", ctypes.c_size_t),
                ("has_stream", ctypes.c_int), ("stream", ctypes.c_void_p),
                ("progress", ctypes.c_void_p), ("cancelled", ctypes.c_void_p),
                ("ctx", ctypes.c_void_p)]


class Placed(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("dtype", ctypes.c_char_p), ("rank", ctypes.c_uint32),
                ("shape", ctypes.POINTER(ctypes.c_uint64)), ("row", ctypes.c_uint64),
                ("rows", ctypes.c_uint64), ("column", ctypes.c_uint64),
                ("columns", ctypes.c_uint64), ("pitch", ctypes.c_uint64),
                ("bytes", ctypes.c_uint64), ("replicated", ctypes.c_int)]


class Memory:
    """Device memory as torch takes it, without a copy."""

    def __init__(self, placed):
        shape = tuple(placed.shape[i] for i in range(placed.rank))
        self.__cuda_array_interface__ = {"shape": shape, "typestr": "<f2", "version": 3,
                                         "data": (placed.data, False)}


class Ingot:
    """One loader handle and pack; called, it loads and gives what it loaded."""

    def __init__(self, pack, check):
        where = os.environ.get("INGOT_LIB") or os.path.join(
            os.path.dirname(os.path.abspath(os.environ["INGOT"])), ".libs", "libingot.so")
        self.lib, self.pack_path, self.check = ctypes.CDLL(where), pack.encode(), check
        self.error, self.loader, self.pack = Error(), ctypes.c_void_p(), ctypes.c_void_p()

    def call(self, name, *args):
        if getattr(self.lib, name)(*args, ctypes.byref(self.error)) != 0:
            raise RuntimeError(self.error.message.decode())

    def open(self):
        options = LoaderOptions(size=ctypes.sizeof(LoaderOptions), device=b"cuda:0")
        self.call("ingot_loader_open", ctypes.byref(options), ctypes.byref(self.loader))
        self.call("ingot_pack_open", None, self.pack_path, ctypes.byref(self.pack))

    def __call__(self, files):
        import torch
        if not self.loader:
            self.open()
        options = LoadOptions(size=ctypes.sizeof(LoadOptions), check=self.check)
        load = ctypes.c_void_p()
        self.call("ingot_load_start", self.loader, self.pack, ctypes.byref(options),
                  ctypes.byref(load))
        self.call("ingot_load_wait", load)
        return Loaded(self, load, torch)


class Loaded:
    """A model in device memory; its tensors are made when asked for."""

    def __init__(self, owner, load, torch):
        self.owner, self.load, self.torch = owner, load, torch

    def items(self):
        for i in range(LAYERS):
            for part in ("self_attn.qkv_proj", "self_attn.o_proj", "mlp.gate_up_proj",
                         "mlp.down_proj", "input_layernorm", "post_attention_layernorm"):
                name, placed = f"model.layers.{i}.{part}.weight", Placed()
                self.owner.call("ingot_load_tensor", self.load, name.encode(), 0,
                                ctypes.byref(placed))
                yield name, self.torch.as_tensor(Memory(placed), device="cuda:0")

    def release(self):
        self.owner.lib.ingot_load_release(self.load)


# ---- one loader in a process of its own ----

LOADERS = {
    "ingot --verify full": ("", lambda pack: Ingot(pack, 0)),
    "ingot --verify off": ("", lambda pack: Ingot(pack, 2)),
    "safetensors load_file": ("safetensors.torch", safetensors_load_file),
    "InstantTensor": ("instanttensor", instanttensor),
    "InstantTensor BUFFERED": ("instanttensor", instanttensor_buffered),
    "InstantTensor MMAP": ("instanttensor", instanttensor_mmap),
    "InstantTensor MMAP views": ("instanttensor", instanttensor_mmap_views),
    "fastsafetensors": ("fastsafetensors", fastsafetensors),
    "Run:ai to cuda": ("runai_model_streamer", runai),
    "Run:ai by host": ("runai_model_streamer", runai_host),
    "tensorizer": ("tensorizer", tensorizer),
    "tensorizer verify_hash": ("tensorizer", tensorizer_verify),
}


def read_by(name, files, pack):
    if name.startswith("ingot"):
        return [pack]
    return [tensorizer_path(files)] if name.startswith("tensorizer") else files


def prepare(paths, cold):
    """Into the page cache, or out of it: bytes of the files that are on the wrong side."""
    probe = os.environ.get("PROBE")
    for path in paths:
        if cold and probe:
            subprocess.run([probe, "drop", path], check=True)
        elif cold:
            with open(path, "rb") as f:
                os.fsync(f.fileno())
                os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        else:
            with open(path, "rb", buffering=0) as f:
                buffer = bytearray(16 << 20)
                while f.readinto(buffer):
                    pass


def drop_result(loaded):
    if hasattr(loaded, "release"):
        loaded.release()


def one(name, folder, pack, cold):
    import torch
    files = sorted(glob.glob(folder + "/*.safetensors"))
    module, fn = LOADERS[name]
    if module:
        importlib.import_module(module)  # not what is measured
    if name.startswith("ingot"):
        fn = fn(pack)
    paths = read_by(name, files, pack)
    torch.zeros(1).cuda()
    torch.cuda.synchronize()
    prepare(paths, False)
    seconds, cpu, total = [], [], 0.0
    for _ in range(2 if cold else 4):
        if cold:
            prepare(paths, True)
        torch.cuda.empty_cache()
        torch.cuda.synchronize()
        before, started = time.process_time(), time.perf_counter()
        loaded = fn(files)
        torch.cuda.synchronize()
        seconds.append(time.perf_counter() - started)
        cpu.append(time.process_time() - before)
        total = sum(float(v.double().sum()) for k, v in sorted(loaded.items()) if SHARE in k)
        drop_result(loaded)
        del loaded
    best = min(seconds[1:])
    print(json.dumps({"first": seconds[0], "best": best, "cpu": cpu[seconds.index(best)],
                      "rss": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
                      "sum": round(total, 3)}))


# ---- all of them ----

def run_one(name, folder, pack, cold):
    command = [sys.executable, os.path.abspath(__file__), "--one", name, "--dir", folder,
               "--pack", pack] + (["--cold"] if cold else [])
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    except subprocess.TimeoutExpired:
        return None, "took more than 300 s"
    lines = done.stdout.strip().splitlines()
    if done.returncode != 0 or not lines:
        words = done.stderr.strip().splitlines()
        return None, words[-1] if words else f"ended with status {done.returncode}"
    return json.loads(lines[-1]), None


def convert(folder, work):
    ingot = os.environ.get("INGOT", "./ingot")
    store = work + "/store"
    subprocess.run([ingot, "convert", "-q", "-s", store, "-n", "peers", folder], check=True,
                   stdout=subprocess.DEVNULL)
    return glob.glob(store + "/packs/*.ingot")[0]


def installed(name):
    module = LOADERS[name][0]
    return not module or importlib.util.find_spec(module.split(".")[0]) is not None


def measure(names, folder, pack, rounds, cold):
    found, errors = {n: [] for n in names}, {}
    for r in range(rounds):
        turn = r * len(names) // rounds
        for name in names[turn:] + names[:turn]:
            result, error = run_one(name, folder, pack, cold)
            if error:
                errors[name] = error
            else:
                found[name].append(result)
    return found, errors


def table(found, errors, size, cold):
    print(f"\n{'cold' if cold else 'warm'}: {size / 1e9:.2f} GB, medians")
    print(f"{'loader':26s} {'first s':>8s} {'best s':>8s} {'GB/s':>7s} {'CPU s':>6s} "
          f"{'RSS GB':>7s} {'n':>2s}  sum")
    sums = set()
    for name, results in sorted(found.items(),
                                key=lambda i: statistics.median(r["best"] for r in i[1])
                                if i[1] else 1e9):
        if not results:
            print(f"{name:26s} {errors.get(name, 'nothing')[:100]}")
            continue
        m = {k: statistics.median(r[k] for r in results) for k in ("first", "best", "cpu", "rss")}
        these = {r["sum"] for r in results}
        sums |= these
        print(f"{name:26s} {m['first']:8.3f} {m['best']:8.3f} {size / m['best'] / 1e9:7.2f} "
              f"{m['cpu']:6.2f} {m['rss'] / 1e9:7.2f} {len(results):2d}  {sorted(these)[0]:.3f}"
              f"{'' if len(these) == 1 else ' DIFFERS'}", flush=True)
    if len(sums) > 1:
        print("the loaders' sums differ: not the same bytes")
    return len(sums) == 1


def main():
    p = argparse.ArgumentParser(description="ingot beside the loaders of PyPI")
    p.add_argument("names", nargs="*", metavar="NAME", help=", ".join(LOADERS))
    p.add_argument("--dir", help="a folder for the files (default: a temporary one, removed)")
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--scale", type=float, default=1.0, help="of the widths; 1 is 7.64 GB")
    p.add_argument("--cold", action="store_true", help="cold too, not only warm")
    p.add_argument("--one", help=argparse.SUPPRESS)
    p.add_argument("--pack", help=argparse.SUPPRESS)
    a = p.parse_args()
    if a.one:
        one(a.one, a.dir, a.pack, a.cold)
        return 0
    unknown = [n for n in a.names if n not in LOADERS]
    if unknown:
        p.error(f"no such loader: {unknown[0]}")
    names = [n for n in a.names or LOADERS if installed(n)]
    for name in a.names or LOADERS:
        if name not in names:
            print(f"{name}: not installed")
    with tempfile.TemporaryDirectory(dir=a.dir) as work:
        folder = work + "/checkpoint"
        make(folder, a.scale)
        files = sorted(glob.glob(folder + "/*.safetensors"))
        if any(n.startswith("tensorizer") for n in names):
            make_tensorizer(files)
        pack = convert(folder, work)
        size, same = sum(map(os.path.getsize, files)), True
        for cold in (False, True) if a.cold else (False,):
            found, errors = measure(names, folder, pack, a.rounds, cold)
            same &= table(found, errors, size, cold)
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
