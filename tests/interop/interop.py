#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""ingot against the real safetensors library (PyPI: safetensors, numpy).

Files that the library writes, of every type it knows, are converted and come back byte for byte;
what ingot writes, the library opens, with equal tensors; what the library refuses, so do we.
Speaks TAP.  Environment: INGOT, srcdir, PYTHON (used when this one lacks the library); the number
of files may be given as an argument (200).
"""

import json
import os
import random
import struct
import subprocess
import sys
import tempfile

try:
    import numpy as np
    import safetensors
    from safetensors.numpy import load_file, save_file
except ImportError as missing:
    other = os.environ.pop("PYTHON", None)
    if other:
        os.execvp(other, [other] + sys.argv)
    print("1..0 # SKIP", missing)
    sys.exit(0)

SRCDIR = os.path.abspath(os.path.join(os.path.dirname(__file__), "../.."))
INGOT = os.path.abspath(os.environ.get("INGOT") or os.path.join(
    os.environ.get("top_builddir", "."), "ingot"))
# Names of the library's TensorSpec, bits an element.
RAW = {"bool": 8, "uint8": 8, "int8": 8, "int16": 16, "uint16": 16, "float16": 16, "bfloat16": 16,
       "int32": 32, "uint32": 32, "float32": 32, "int64": 64, "uint64": 64, "float64": 64,
       "complex64": 64, "float8_e4m3fn": 8, "float8_e5m2": 8, "float8_e8m0fnu": 8,
       "float8_e4m3fnuz": 8, "float8_e5m2fnuz": 8, "float4_e2m1fn_x2": 4, "float6_e2m3fn": 6,
       "float6_e3m2fn": 6}
NUMPY = ["bool", "uint8", "int8", "int16", "uint16", "float16", "int32", "uint32", "float32",
         "int64", "uint64", "float64", "complex64"]
PIECES = ["model", "layers", "self_attn", "q_proj", "weight", "bias", "w", "h.0", "é", "水", "🚀",
          "a b",
          "x/y", "..", "0", "10", "A" * 40]


def ingot(*words, status=0):
    done = subprocess.run([INGOT, *words], capture_output=True, text=True)
    if done.returncode != status:
        sys.exit(f"ingot {' '.join(words)}: exit {done.returncode}, not {status}: {done.stderr}")
    return done


def read(path):
    with open(path, "rb") as f:
        return f.read()


def random_name(r, taken):
    while True:
        name = ".".join(r.choice(PIECES) for _ in range(r.randrange(1, 6)))
        if name not in taken and name != "__metadata__":
            return name


def random_shape(r):
    kind = r.random()
    if kind < 0.1:
        return []
    shape = [r.randrange(1, 40) for _ in range(r.randrange(1, 5))]
    if kind < 0.2:
        shape[r.randrange(len(shape))] = 0
    while np.prod(shape) > 100000:
        shape.pop()
    return shape


def random_metadata(r):
    if r.random() < 0.4:
        return None
    return {f"key {i} é": "value" * r.randrange(4) for i in range(r.randrange(4))}


def with_numpy(r, path):
    """By the library's numpy front end."""
    tensors = {}
    for _ in range(r.randrange(1, 12)):
        shape, dtype = random_shape(r), r.choice(NUMPY)
        count = int(np.prod(shape, dtype=np.int64))
        raw = np.frombuffer(r.randbytes(count * np.dtype(dtype).itemsize), np.uint8)
        if dtype == "bool":
            raw = raw & 1
        tensors[random_name(r, tensors)] = raw.view(dtype).reshape(shape)
    save_file(tensors, path, metadata=random_metadata(r))


def spec(dtype, shape, data):
    """The library's description of raw bytes, for its newer and its older releases."""
    if hasattr(safetensors, "TensorSpec"):
        return safetensors.TensorSpec(dtype=dtype, shape=shape, data_ptr=data.ctypes.data,
                                      data_len=data.nbytes)
    return {"dtype": dtype, "shape": shape, "data": data.tobytes()}


def known_types():
    """Which of RAW this release of the library can write."""
    known = []
    for dtype, bits in RAW.items():
        data = np.zeros(bits, np.uint8)
        shape = [4] if dtype.endswith("_x2") else [8]
        for tried in (shape, [8], [4], [16]):
            try:
                safetensors.serialize({"t": spec(dtype, tried, data[:bits])}, None)
                known.append((dtype, bits * 8 // tried[0]))
                break
            except Exception:
                continue
    return known


def with_raw(r, path, types):
    """Any type, from bytes."""
    specs, keep = {}, []
    for _ in range(r.randrange(1, 12)):
        dtype, bits = r.choice(types)
        shape = random_shape(r) or [8]
        if bits % 8:
            shape[-1] *= 8
        size = int(np.prod(shape, dtype=np.int64)) * bits // 8
        keep.append(np.frombuffer(r.randbytes(size) or b"", np.uint8))
        specs[random_name(r, specs)] = spec(dtype, shape, keep[-1])
    with open(path, "wb") as f:
        f.write(bytes(safetensors.serialize(specs, random_metadata(r))))


def shuffled(r, path):
    """The same file with its header entries and its data in another order."""
    data = read(path)
    n = struct.unpack("<Q", data[:8])[0]
    entries, body = json.loads(data[8:8 + n]), data[8 + n:]
    names = [k for k in entries if k != "__metadata__"]
    r.shuffle(names)
    parts, at = [], 0
    for name in names:
        begin, end = entries[name]["data_offsets"]
        entries[name]["data_offsets"] = [at, at + end - begin]
        parts.append(body[begin:end])
        at += end - begin
    order = list(entries)
    r.shuffle(order)
    head = json.dumps({k: entries[k] for k in order}).encode() + b" " * r.randrange(9)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(head)) + head + b"".join(parts))
    safetensors.deserialize(read(path))


def tensors_of(path):
    """Name to type, shape and bytes, as the library reads them."""
    return {name: (t["dtype"], list(t["shape"]), bytes(t["data"]))
            for name, t in safetensors.deserialize(read(path))}


def same_values(one, two):
    if not (one.keys() == two.keys()):
        sys.exit(f"{one.keys() ^ two.keys()} are on one side only")
    for name in one:
        if one[name] != two[name]:
            sys.exit(f"{name!r} differs: {one[name][:2]} and {two[name][:2]}")


def one_file(index, types):
    r = random.Random(index)
    folder = f"m{index}"
    os.makedirs(folder)
    with open(os.path.join(folder, "config.json"), "w") as f:
        f.write("{}")
    path = os.path.join(folder, "model.safetensors")
    if index % 2:
        with_numpy(r, path)
    else:
        with_raw(r, path, types)
    if index % 3 == 0:
        shuffled(r, path)
    ingot("convert", "-q", folder)
    ingot("verify", "-q", folder)
    ingot("export", "-q", folder, f"out{index}")
    if read(path) != read(f"out{index}/model.safetensors"):
        sys.exit(f"{path} did not come back byte for byte")
    ingot("export", "-q", "--safetensors", f"one{index}.safetensors", folder)
    same_values(tensors_of(path), tensors_of(f"one{index}.safetensors"))
    if index % 2:
        theirs, ours = load_file(path), load_file(f"one{index}.safetensors")
        for name in theirs:
            if theirs[name].tobytes() != ours[name].tobytes():
                sys.exit(f"{name!r} loads differently")


def library_refuses(path):
    try:
        safetensors.deserialize(read(path))
        return False
    except Exception:
        return True


def invalid():
    """The library's own invalid inputs; ours is at least as strict."""
    sys.path.insert(0, os.path.join(SRCDIR, "tests"))
    import fixtures
    import fixture_cases
    both, ours = 0, []
    kinds = ["incomplete-1", "incomplete-2", "too-large", "too-small", "invalid-length", "non-utf8",
             "not-json", "invalid-info", "overflow-1", "overflow-2", "json-attack",
             "fp4-misaligned", "fp4-invalid", "truncated-n", "liar", "nan-in-header",
             "trailing-comma", "third-offset", "float-offset", "negative", "unknown-dtype"]
    for kind in kinds:
        fixture_cases.table_i("bad-" + kind, kind)
    for kind in "abcdef":
        fixture_cases.a11("bad-a11" + kind, kind)
        fixture_cases.a12("bad-a12" + kind, kind)
    for folder in sorted(f for f in os.listdir(".") if f.startswith("bad-")):
        ingot("convert", "-q", folder, status=3)
        if library_refuses(os.path.join(folder, "model.safetensors")):
            both += 1
        else:
            ours.append(folder)
    print(f"# {both} refused by both, by us alone: {ours}")
    print("ok 2 - invalid inputs are refused")
    for kind in ("deserialization", "empty-shapes", "zero-sized", "padded", "leading", "fp4",
                 "extra-key"):
        folder = "good-" + kind
        fixture_cases.table_i(folder, kind)
        ingot("convert", "-q", folder)
        if library_refuses(os.path.join(folder, "model.safetensors")):
            print(f"# the library refuses {kind}")
    assert fixtures
    print("ok 3 - odd but valid inputs are accepted")


def main():
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    with tempfile.TemporaryDirectory() as work:
        os.chdir(work)
        os.environ["INGOT_STORE"] = os.path.join(work, "store")
        types = known_types()
        print(f"1..3\n# safetensors {safetensors.__version__}: {len(types)} types:",
              " ".join(t for t, _ in types))
        for index in range(count):
            one_file(index, types)
        print(f"ok 1 - {count} files: converted, verified, exported, equal")
        invalid()
        os.chdir("/")


if __name__ == "__main__":
    main()
