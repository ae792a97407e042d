#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Small inputs for the tests, always the same bytes (standard library only).

fixtures.py NAME DIR [ARG...]   build the fixture in DIR (made if absent)
fixtures.py --list              the names

The core: ST(header, data) is a safetensors file, T(...) one header entry, P3 a tiny dense Phi-3
folder, P3S the same in two shards with an index.  Everything else is one of them, spoilt.
"""

import hashlib
import json
import os
import random
import struct
import sys

FIXTURES = {}
BITS = {"F4": 4, "F6_E2M3": 6, "F6_E3M2": 6, "BOOL": 8, "U8": 8, "I8": 8, "F8_E4M3": 8,
        "F8_E5M2": 8, "F8_E8M0": 8, "I16": 16, "F16": 16, "BF16": 16, "I32": 32, "F32": 32,
        "I64": 64, "F64": 64}
INDEX = "model.safetensors.index.json"
SHARDS = ("model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors")
SMALL = {"model_type": "test"}


def fixture(function):
    FIXTURES[function.__name__.replace("_", "-")] = function
    return function


def dump(value):
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def T(name, dtype, shape, begin, end):
    """One header entry, as text, so that an entry can be repeated or spelled otherwise."""
    return dump(name) + ":" + dump({"dtype": dtype, "shape": shape, "data_offsets": [begin, end]})


def header(entries):
    return ("{" + ",".join(entries) + "}").encode()


def ST(head, data=b"", n=None, pad=0):
    """N, the header padded by blanks, the data; N is the true length unless given."""
    head = head + b" " * pad
    return struct.pack("<Q", len(head) if n is None else n) + head + data


def size_of(dtype, shape):
    bits = BITS[dtype]
    for d in shape:
        bits *= d
    return bits // 8


def noise(name, size):
    return random.Random("ingot " + name).randbytes(size)


def weights(name, size):
    """Noise that is finite as BF16, F16 and F32: exponents stay near zero."""
    raw = bytearray(noise(name, size))
    raw[1::2] = bytes(0x3C | b & 0x83 for b in raw[1::2])
    return bytes(raw)


def tensors_file(tensors, metadata=None, align=8):
    """A file of [(name, dtype, shape, data)] in that order; align=None: no padding at all."""
    entries, at = [], 0
    if metadata is not None:
        entries.append('"__metadata__":' + dump(metadata))
    for name, dtype, shape, data in tensors:
        entries.append(T(name, dtype, shape, at, at + len(data)))
        at += len(data)
    head = header(entries)
    return ST(head, b"".join(t[3] for t in tensors), pad=-len(head) % align if align else 0)


def write(folder, name, data):
    path = os.path.join(folder, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as f:
        f.write(data.encode() if isinstance(data, str) else data)
    return path


def read(folder, name):
    with open(os.path.join(folder, name), "rb") as f:
        return f.read()


def p3_config(**changes):
    config = {"architectures": ["Phi3ForCausalLM"], "model_type": "phi3", "hidden_size": 64,
              "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4,
              "num_key_value_heads": 2, "vocab_size": 320, "tie_word_embeddings": False,
              "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "max_position_embeddings": 256,
              "original_max_position_embeddings": 64, "sliding_window": None, "hidden_act": "silu",
              "torch_dtype": "bfloat16"}
    config.update(changes)
    return config


def p3_shapes():
    shapes = [("model.embed_tokens.weight", [320, 64])]
    for i in range(2):
        layer = f"model.layers.{i}."
        shapes += [(layer + "input_layernorm.weight", [64]),
                   (layer + "self_attn.qkv_proj.weight", [128, 64]),
                   (layer + "self_attn.o_proj.weight", [64, 64]),
                   (layer + "post_attention_layernorm.weight", [64]),
                   (layer + "mlp.gate_up_proj.weight", [192, 64]),
                   (layer + "mlp.down_proj.weight", [64, 96])]
    return shapes + [("model.norm.weight", [64]), ("lm_head.weight", [320, 64])]


def p3_tensors():
    return [(name, "BF16", shape, weights(name, size_of("BF16", shape)))
            for name, shape in p3_shapes()]


def llama_tensors(experts=0, dtype="BF16", bias=False):
    """A small Llama (or Mixtral-like MoE): separate projections, so that groups form."""
    shapes = [("lm_head.weight", [320, 64]), ("model.norm.weight", [64])]
    for i in (1, 0):
        layer = f"model.layers.{i}."
        mlp = [f"mlp.experts.{e}." for e in range(experts)] or ["mlp."]
        for part in mlp:
            shapes += [(layer + part + "up_proj.weight", [96, 64]),
                       (layer + part + "gate_proj.weight", [96, 64]),
                       (layer + part + "down_proj.weight", [64, 96])]
        if experts:
            shapes.append((layer + "mlp.gate.weight", [experts, 64]))
        for part, rows in (("v", 32), ("k", 32), ("q", 64)):
            shapes.append((layer + f"self_attn.{part}_proj.weight", [rows, 64]))
            if bias:
                shapes.append((layer + f"self_attn.{part}_proj.bias", [rows]))
        shapes += [(layer + "self_attn.o_proj.weight", [64, 64]),
                   (layer + "input_layernorm.weight", [64]),
                   (layer + "post_attention_layernorm.weight", [64])]
    shapes.append(("model.embed_tokens.weight", [320, 64]))
    return [(name, dtype, shape, weights(name, size_of(dtype, shape))) for name, shape in shapes]


def write_p3(folder, tensors=None, config=None, **changes):
    """config: the text of config.json; changes: keys of it, ... to leave a key out."""
    settings = {k: v for k, v in p3_config(**changes).items() if v is not ...}
    write(folder, "config.json", json.dumps(settings, indent=1) if config is None else config)
    write(folder, "tokenizer.json", '{"model":{"type":"BPE","vocab":{},"merges":[]}}')
    write(folder, "model.safetensors",
          tensors_file(p3_tensors() if tensors is None else tensors, {"format": "pt"}))


def in_shard_two(name):
    return ".layers.1." in name or name in ("model.norm.weight", "lm_head.weight")


def write_p3s(folder):
    write_p3(folder)
    os.unlink(os.path.join(folder, "model.safetensors"))
    parts = ([], [])
    for t in p3_tensors():
        parts[in_shard_two(t[0])].append(t)
    for file, part in zip(SHARDS, parts):
        write(folder, file, tensors_file(part, {"format": "pt"}))
    total = sum(len(t[3]) for t in p3_tensors())
    write_index(folder, {t[0]: SHARDS[in_shard_two(t[0])] for t in p3_tensors()}, total)


def write_index(folder, weight_map, total=None):
    total = total or sum(len(t[3]) for t in p3_tensors())
    index = {"metadata": {"total_size": total}, "weight_map": weight_map}
    write(folder, INDEX, json.dumps(index, indent=1))


def weight_map(folder):
    return json.loads(read(folder, INDEX))["weight_map"]


def single(folder, data, name="model.safetensors"):
    """One odd file, in a folder with a config that ties nothing and asks for nothing."""
    write(folder, "config.json", dump(SMALL))
    write(folder, name, data)


def pointer(data):
    oid = hashlib.sha256(data).hexdigest()
    return (f"version https://git-lfs.github.com/spec/v1\noid sha256:{oid}\n"
            f"size {len(data)}\n").encode()


def hub_cache(folder, files, repo="acme/tiny", revision="5" * 40, ref=True):
    """A Hugging Face cache: blobs by SHA-256, a snapshot of links, refs/main."""
    root = os.path.join(folder, "models--" + repo.replace("/", "--"))
    for name, data in files.items():
        blob = hashlib.sha256(data).hexdigest()
        write(root, "blobs/" + blob, data)
        link = os.path.join(root, "snapshots", revision, name)
        os.makedirs(os.path.dirname(link), exist_ok=True)
        os.symlink(os.path.relpath(os.path.join(root, "blobs", blob), os.path.dirname(link)), link)
    if ref:
        write(root, "refs/main", revision)
    return root


def p3_files():
    return {"config.json": json.dumps(p3_config()).encode(),
            "tokenizer.json": b'{"model":{"type":"BPE","vocab":{},"merges":[]}}',
            "model.safetensors": tensors_file(p3_tensors(), {"format": "pt"})}


FP8_SCALES = {  # suffix, shape for a number of rows, and how config.json declares it
    "block": ("weight_scale_inv", lambda rows: [-(-rows // 128), 4],
              {"quant_method": "fp8", "fmt": "e4m3", "weight_block_size": [128, 128]}),
    "row": ("weight_scale", lambda rows: [rows, 1], {"quant_method": "fbgemm_fp8"}),
    "tensor": ("weight_scale", lambda rows: [], {"quant_method": "fp8"}),
}


@fixture
def fp8_llama(folder, variant):
    """q, k, v and gate, up of one layer in FP8, each with its scale."""
    suffix, shape_of, quant = FP8_SCALES[variant]
    rows = {"self_attn.q_proj": 256, "self_attn.k_proj": 128, "self_attn.v_proj": 128,
            "mlp.gate_proj": 384, "mlp.up_proj": 384}
    tensors = []
    for part, n in rows.items():
        module = f"model.layers.0.{part}."
        shape = shape_of(n)
        data = bytes(b & 0x3F for b in noise(part, n * 512))
        tensors.append((module + "weight", "F8_E4M3", [n, 512], data))
        tensors.append((module + suffix, "F32", shape, struct.pack("<f", 0.5) * (size_of("F32", shape) // 4)))
    single(folder, tensors_file(tensors))
    write(folder, "config.json", dump({"quantization_config": quant}))


def main(argv):
    import fixture_cases
    assert fixture_cases
    if argv[1:] == ["--list"]:
        print("\n".join(sorted(FIXTURES)))
        return 0
    if len(argv) < 3 or argv[1] not in FIXTURES:
        print(__doc__.strip(), file=sys.stderr)
        return 2
    os.makedirs(argv[2], exist_ok=True)
    FIXTURES[argv[1]](argv[2], *argv[3:])
    return 0


if __name__ == "__main__":
    sys.modules["fixtures"] = sys.modules["__main__"]  # the cases register in this very module
    sys.exit(main(sys.argv))
