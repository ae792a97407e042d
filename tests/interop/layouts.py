#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Random checkpoints whose tensors start and end everywhere around pages and spans.

Each is converted with one and with several threads (equal digests), judged by packread.py,
verified, exported and compared; then cast to every dtype, from the folder and from the pack
(equal digests again), and the values compared with numpy's.

  layouts.py [COUNT]      prints TAP
"""

import json
import os
import random
import shutil
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
INGOT = os.environ["INGOT"]
SIZES = [1, 2, 7, 8, 16, 24, 128, 1024, 2040, 2048, 2056, 4096, 8192, 32760, 32768, 32776, 65536]
FLOATS = {"F16": 2, "BF16": 2, "F32": 4}
OTHERS = {"U8": 1, "I64": 8, "F8_E4M3": 1, "BOOL": 1}


def run(*args):
    return subprocess.run(args, check=True, capture_output=True, text=True).stdout


def values(rng, dtype, count):
    """Bytes of count elements; floats are finite and fit F16."""
    if dtype not in FLOATS:
        return rng.integers(0, 2 if dtype == "BOOL" else 120, count * OTHERS[dtype], np.uint8).tobytes()
    x = (rng.standard_normal(count) * 10.0 ** rng.integers(-7, 4, count)).astype(np.float32)
    if dtype == "F32":
        return x.tobytes()
    if dtype == "F16":
        return x.astype(np.float16).tobytes()
    return to_bf16(x).tobytes()


def to_bf16(x):
    bits = x.view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def as_f32(data, dtype):
    if dtype == "F32":
        return np.frombuffer(data, np.float32)
    if dtype == "F16":
        return np.frombuffer(data, np.float16).astype(np.float32)
    return (np.frombuffer(data, np.uint16).astype(np.uint32) << 16).view(np.float32)


def cast(data, dtype, to):
    x = as_f32(data, dtype)
    if to == "F32":
        return x.tobytes()
    return x.astype(np.float16).tobytes() if to == "F16" else to_bf16(x).tobytes()


def shape_of(r, columns):
    return [r.choice([1, 2, 3, 4, 6, 24]), columns]


def layer(r, tensors, rng, n):
    """One layer: q, k, v and gate, up that can or cannot be joined, biases, a stray name."""
    prefix = f"model.layers.{n}."
    dtype, columns = r.choice(list(FLOATS)), r.choice(SIZES)
    names = ["self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "mlp.gate_proj", "mlp.up_proj"]
    for name in names:
        odd = r.random() < 0.05
        shape = shape_of(r, columns + odd)
        tensors[prefix + name + ".weight"] = (dtype, shape)
        if r.random() < 0.4:
            tensors[prefix + name + ".bias"] = (dtype, [shape[0] * 8])
    tensors[prefix + "input_layernorm.weight"] = (r.choice(list(FLOATS)), [r.choice(SIZES)])
    tensors[prefix + f"extra.{n}"] = (r.choice(list(OTHERS)), [r.choice(SIZES), r.choice([0, 1, 3])])


def build(folder, seed):
    r, rng = random.Random(seed), np.random.default_rng(seed)
    specs = {"model.embed_tokens.weight": ("BF16", [r.choice(SIZES), r.choice([1, 5, 64])])}
    for n in range(r.randint(1, 4)):
        layer(r, specs, rng, n)
    specs["scalar"] = ("F32", [])
    names = list(specs)
    r.shuffle(names)
    files = r.randint(1, 3)
    data = {}
    for i in range(files):
        header, body, at = {}, [], 0
        for name in names[i::files]:
            dtype, shape = specs[name]
            count = int(np.prod(shape)) if shape else 1
            raw = values(rng, dtype, count)
            data[name] = (dtype, shape, raw)
            header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + len(raw)]}
            body.append(raw)
            at += len(raw)
        text = json.dumps(header).encode() + b" " * r.randint(0, 9)
        (folder / f"part{i}.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + b"".join(body))
    (folder / "config.json").write_text("{}")
    return data


def check_pack(info, folder, out):
    run(sys.executable, str(HERE / "packread.py"), "check", info["pack"],
        "--tree", info["pack"].removesuffix(".ingot") + ".tree")
    run(INGOT, "verify", "--source", str(folder), info["name"])
    run(INGOT, "verify", "--fast", info["name"])
    run(INGOT, "export", info["name"], str(out))
    run("diff", "-r", str(folder), str(out))


def read_pack(name):
    """Row name to (dtype, bytes), from the offsets that show prints."""
    info = json.loads(run(INGOT, "show", "--tensors", "--json", name))
    raw = Path(info["pack"]).read_bytes()
    rows = {}
    for t in info["tensors"]:
        at = t.get("offset", 0)
        rows[t["name"]] = (t["dtype"], raw[at:at + t["bytes"]])
    return rows


def check_casts(folder, data, base):
    for to in FLOATS:
        made = json.loads(run(INGOT, "convert", "--json", "--dtype", to.lower(), "-n", "cast", "-f", str(folder)))
        again = json.loads(run(INGOT, "convert", "--json", "--dtype", to.lower(), "--threads", "1",
                               "-n", "cast2", "-f", base))
        assert made["digest"] == again["digest"], f"{to}: folder and pack differ"
        run(sys.executable, str(HERE / "packread.py"), "check", made["pack"])
        run(INGOT, "verify", "cast")
        rows = read_pack("cast")
        for name, (dtype, _, raw) in data.items():
            if dtype in FLOATS:
                assert rows[name] == (to, raw if dtype == to else cast(raw, dtype, to)), f"{to}: {name}"
            else:
                assert rows[name] == (dtype, raw), f"{to}: {name}"


def one(seed):
    with tempfile.TemporaryDirectory() as top:
        os.environ["INGOT_STORE"] = f"{top}/store"
        folder = Path(top, "model")
        folder.mkdir()
        data = build(folder, seed)
        a = json.loads(run(INGOT, "convert", "--json", "--threads", "1", str(folder)))
        b = json.loads(run(INGOT, "convert", "--json", "--threads", "5", str(folder)))
        assert a["digest"] == b["digest"], "threads change the pack"
        check_pack(a, folder, Path(top, "out"))
        rows = read_pack("model")
        for name, (dtype, _, raw) in data.items():
            assert rows[name] == (dtype, raw), name
        check_casts(folder, data, "model")
        shutil.rmtree(top + "/store")


def main():
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 12
    print(f"1..{count}")
    failed = False
    for seed in range(count):
        try:
            one(seed)
            print(f"ok {seed + 1} - layout {seed}", flush=True)
        except (AssertionError, subprocess.CalledProcessError) as why:
            failed = True
            print(f"not ok {seed + 1} - layout {seed}: {why} {getattr(why, 'stderr', '')}", flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(main())
