#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Seeds of fuzz_pack: tiny models, converted by the real program, cut into the target's pieces.

seeds.py INGOT DIR   (standard library only)
"""

import json
import os
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from fixtures import dump, size_of, tensors_file, weights, write  # noqa: E402

PAGE, WEIGHTS = 4096, 65536
REPAIR_ALL, FIT, SOURCES, SHOW, EXPORT = 2, 4, 8, 16, 32
LAYER = "model.layers.0."
LLAMA = {"architectures": ["LlamaForCausalLM"], "tie_word_embeddings": False}


def tensors(*shapes, dtype="BF16"):
    return [(name, dtype, shape, weights(name, size_of(dtype, shape))) for name, shape in shapes]


def group(folder):
    """q, k and v with a view."""
    write(folder, "config.json", dump(LLAMA))
    write(folder, "model.safetensors", tensors_file(tensors(
        (LAYER + "self_attn.q_proj.weight", [16, 8]), (LAYER + "self_attn.k_proj.weight", [8, 8]),
        (LAYER + "self_attn.v_proj.weight", [8, 8]), ("model.norm.weight", [8]))))


def tied(folder):
    table = weights("table", 256)
    write(folder, "config.json", dump({**LLAMA, "tie_word_embeddings": True}))
    write(folder, "model.safetensors", tensors_file(
        [(name, "BF16", [16, 8], table) for name in ("lm_head.weight", "model.embed_tokens.weight")]
        + tensors(("model.norm.weight", [8]))))


def scales(folder):
    """Links of rows and of a module, a tensor without bytes, a scalar."""
    quant = {"quant_method": "fp8", "kv_cache_scheme": "static", "activation_scheme": "static"}
    attention, half = LAYER + "self_attn.", struct.pack("<f", 0.5)
    write(folder, "config.json", dump({**LLAMA, "quantization_config": quant}))
    write(folder, "model.safetensors", tensors_file([
        (attention + "k_proj.weight", "F8_E4M3", [16, 8], bytes(128)),
        (attention + "k_proj.weight_scale", "F32", [], half),
        (attention + "k_scale", "F32", [], half),
        (attention + "q_proj.input_scale", "F32", [1], half),
        (attention + "q_proj.weight", "F8_E4M3", [16, 8], bytes(128)),
        (attention + "q_proj.weight_scale", "F32", [16, 1], half * 16),
        ("empty", "I64", [0, 3], b"")]))


def shadow(folder):
    """One tensor in two files; the index maps one of them."""
    extra = tensors(("model.norm.weight", [8]))
    write(folder, "config.json", dump(LLAMA))
    write(folder, "a.safetensors", tensors_file(tensors(("lm_head.weight", [8, 8])) + extra))
    write(folder, "b.safetensors", tensors_file(tensors(("model.embed_tokens.weight", [8, 8])) + extra))
    write(folder, "model.safetensors.index.json", dump({"metadata": {}, "weight_map": {
        "lm_head.weight": "a.safetensors", "model.norm.weight": "a.safetensors",
        "model.embed_tokens.weight": "b.safetensors"}}))


def large(folder):
    """A row of more than a page, beside extents of their own."""
    write(folder, "config.json", dump(LLAMA))
    write(folder, "model.safetensors", tensors_file(
        [("w", "F32", [33, 32], bytes(4224)), ("x", "F64", [512], bytes(4096))]
        + tensors(("y", [4]), dtype="F16")))


def pieces(pack):
    """The bytes between the zeros; see fuzz_pack.c."""
    tail = struct.unpack_from("<Q", pack, 56)[0]
    table = tail + PAGE
    count = struct.unpack_from("<I", pack, table + 8)[0]
    out = [pack[:80], pack[WEIGHTS:tail], pack[tail:tail + 80], pack[table:table + 64 + 64 * count]]
    for i in range(count):
        offset, size = struct.unpack_from("<QQ", pack, table + 64 + 64 * i + 8)
        if size:
            out.append(pack[offset:offset + size])
    out[1] = out[1].rstrip(b"\0") if len(out[1]) <= PAGE else out[1]
    return b"".join(struct.pack("<H", len(piece)) + piece for piece in out)


def main(argv):
    if len(argv) != 3:
        sys.exit(__doc__.strip())
    for make, flags, options in ((group, REPAIR_ALL | FIT, []), (tied, REPAIR_ALL | SHOW | EXPORT, []),
                                 (scales, REPAIR_ALL | FIT | SOURCES | SHOW, []), (scales, 0, []),
                                 (shadow, REPAIR_ALL | SOURCES | EXPORT, []), (large, REPAIR_ALL | FIT, []),
                                 (group, REPAIR_ALL | FIT | SHOW | EXPORT, ["--dtype", "f32"])):
        with tempfile.TemporaryDirectory() as top:
            folder, store = os.path.join(top, "model"), os.path.join(top, "store")
            make(folder)
            run = subprocess.run([argv[1], "convert", "-s", store, "--json", *options, folder],
                                 check=True, stdout=subprocess.PIPE)
            digest = json.loads(run.stdout)["digest"].split(":")[1]
            with open(f"{store}/packs/{digest}.ingot", "rb") as f:
                pack = f.read()
        name = make.__name__ + ("-cast" if options else "" if flags else "-as-is")
        with open(os.path.join(argv[2], name), "wb") as f:
            f.write(bytes([flags]) + pieces(pack))


if __name__ == "__main__":
    main(sys.argv)
