# SPDX-License-Identifier: Apache-2.0
"""The fixtures by name: plain models, then one function for each trouble case.

A function gets the folder and the words that follow it on the command line; `variant` picks one of
the inputs that a case lists.
"""

import io
import json
import os
import random
import shutil
import struct
import zipfile

from fixtures import (INDEX, SHARDS, ST, SMALL, T, dump, fixture, header, hub_cache, llama_tensors,
                      noise, p3_config, p3_files, p3_tensors, pointer, read, single, size_of,
                      tensors_file, weight_map, weights, write, write_index, write_p3, write_p3s)

HUGE = 1 << 63



# Plain models.

@fixture
def p3(folder):
    write_p3(folder)


@fixture
def p3s(folder):
    write_p3s(folder)


@fixture
def llama(folder, *options):
    """Words: bias, moe, tied (equal head), untied-claim (config ties, bytes differ), f16, f32."""
    dtype = {"f16": "F16", "f32": "F32"}.get(next((o for o in options if o in ("f16", "f32")), ""),
                                             "BF16")
    tensors = llama_tensors(4 if "moe" in options else 0, dtype, "bias" in options)
    tie = "tied" in options or "untied-claim" in options
    if "tied" in options:
        embed = dict((t[0], t[3]) for t in tensors)["model.embed_tokens.weight"]
        tensors = [t[:3] + (embed,) if t[0] == "lm_head.weight" else t for t in tensors]
    write_p3(folder, tensors, architectures=["LlamaForCausalLM"], model_type="llama",
             tie_word_embeddings=tie)


@fixture
def small(folder, size="10"):
    """One U8 tensor `w` of that many bytes and a config that says little."""
    single(folder, tensors_file([("w", "U8", [int(size)], noise("w", int(size)))]))


@fixture
def sparse(folder, megabytes):
    """One U8 tensor of zeros, almost free to make: the size is what matters."""
    size = int(megabytes) << 20
    head = header([T("w", "U8", [size], 0, size)])
    single(folder, ST(head, pad=-len(head) % 8))
    with open(os.path.join(folder, "model.safetensors"), "r+b") as f:
        f.truncate(os.path.getsize(f.name) + size)


@fixture
def noisy(folder, megabytes):
    """BF16 tensors of 8 MiB of noise each."""
    data = weights("noisy", 8 << 20)
    tensors = [(f"w{i}", "BF16", [2048, 2048], data) for i in range(int(megabytes) // 8)]
    single(folder, tensors_file(tensors))


@fixture
def cache(folder, variant="clean"):
    """models--acme--tiny as the hub's client leaves it."""
    root = hub_cache(folder, p3_files(), ref=variant != "noref")
    if variant in ("two", "noref"):
        hub_cache(folder, dict(p3_files(), extra=b"x"), revision="6" * 40, ref=False)


@fixture
def extras(folder):
    """P3 with what may lie around a model: nested files, dot folders, other formats."""
    write_p3(folder)
    write(folder, "README.md", "# tiny\n")
    write(folder, "sub/deep/notes.txt", "deep\n")
    write(folder, "empty.txt", "")
    write(folder, ".git/HEAD", "ref: refs/heads/main\n")
    write(folder, ".cache/huggingface/x.lock", "")
    write(folder, "model.onnx", noise("onnx", 300))
    write(folder, "model.gguf", b"GGUF" + noise("gguf", 300))


# A: the container.

@fixture
def a01(folder, *which):
    write_p3s(folder)
    names = {"1": SHARDS[0], "2": SHARDS[1], "tokenizer": "tokenizer.json"}
    for key in which:
        write(folder, names[key], pointer(read(folder, names[key])))


@fixture
def a03(folder, kind):
    start = b"PK\3\4\0\0\0\0" if kind == "zip" else b"\x80\2"
    write_p3(folder)
    write(folder, "model.safetensors", start + noise("a03", 200 - len(start)))


@fixture
def a05(folder, cut):
    """Words: a number of bytes, `last` (lm_head), `all` (no data at all)."""
    write_p3s(folder)
    data = read(folder, SHARDS[1])
    n = struct.unpack("<Q", data[:8])[0]
    keep = {"last": len(data) - 320 * 64 * 2, "all": 8 + n}.get(cut) or len(data) - int(cut)
    write(folder, SHARDS[1], data[:keep])


@fixture
def a06(folder, length):
    """One tensor, the header padded to N = length; `half`: 8 bytes and half of the header."""
    head = header([T("w", "F32", [2], 0, 8)])
    if length == "half":
        single(folder, ST(head)[:8 + len(head) // 2])
    else:
        single(folder, ST(head, noise("w", 8), pad=int(length) - len(head)))


@fixture
def a07(folder, kind):
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as z:
        z.writestr(zipfile.ZipInfo("x.txt"), "hello")
    extra = {"byte": b"\0", "text": b"Extra data, thirty-four bytes of..", "zip": archive.getvalue()}
    single(folder, tensors_file([("w", "F32", [2], noise("w", 8))]) + extra[kind])


@fixture
def a08(folder, kind):
    if kind in ("a", "b"):
        pad = "" if kind == "a" else "x" * 34
        entries = [T(f"{pad}{i}", "U8", [1], i, i + 1) for i in range(1300000)]
        single(folder, ST(header(entries), bytes(1300000)))
    else:
        a06(folder, {"c": 100000000, "d": 100000001}[kind])


@fixture
def a09(folder, n):
    head = header([T("w", "F32", [1], 0, 4)])
    head = head + b" " * (80 - 8 - len(head))
    size = 80
    wanted = {"max": 2 * HUGE - 1, "wrap": 2 * HUGE - 8, "2^63": HUGE, "2^63-1": HUGE - 1,
              "2^32": 1 << 32, "size": size, "size-7": size - 7, "0": 0, "1": 1}[n]
    single(folder, ST(head, n=wanted))


@fixture
def a10(folder, variant):
    """Words: 8 (aligned) or 1 to 4, what the header is longer by; b; c."""
    if variant in ("b", "c"):
        entries = [T("a", "U8", [3], 0, 3), T("b", "F32", [2], 3, 11), T("c", "BF16", [2], 11, 15)]
        if variant == "c":
            entries = [entries[2], entries[0], entries[1]]
        single(folder, ST(header(entries), noise("a10", 15)))
        return
    write_p3(folder)
    data = read(folder, "model.safetensors")
    n = struct.unpack("<Q", data[:8])[0]
    write(folder, "model.safetensors", ST(data[8:8 + n], data[8 + n:], pad=int(variant)))


@fixture
def a10_aligned(folder):
    """The tensors of a10 b and c, each at a multiple of its size, as far as a file allows."""
    data = noise("a10", 15)
    single(folder, tensors_file([("b", "F32", [2], data[3:11]), ("c", "BF16", [2], data[11:15]),
                                 ("a", "U8", [3], data[:3])]))


@fixture
def a11(folder, variant):
    w = T("w", "U8", [4], 0, 4)
    z = T("w", "U8", [0], 0, 0)
    body = '{"dtype":"U8","shape":[4],"data_offsets":[0,4]}'
    heads = {"a": [w, T("w", "U8", [4], 4, 8)], "b": [w, w], "c": [z, z],
             "d": [w, '"\\u0077":{"dtype":"U8","shape":[4],"data_offsets":[4,8]}'],
             "e": ['"w":{"dtype":"U8",' + body[1:]],
             "f": ['"__metadata__":{}', '"__metadata__":{"a":"b"}', w],
             "emoji": ['"\U0001f680":' + body, '"\\ud83d\\ude80":' + body]}
    data = {"a": 8, "c": 0, "d": 8}.get(variant, 4)
    single(folder, ST(header(heads[variant]), noise("a11", data)))


@fixture
def a12(folder, variant):
    def f(name, begin, end):
        return T(name, "F32", [2], begin, end)
    heads = {"a": ([f("u", 0, 8), f("v", 0, 8)], 8), "b": ([f("u", 0, 8), f("v", 4, 12)], 12),
             "c": ([f("u", 0, 8), f("v", 16, 24)], 24), "d": ([f("u", 8, 16)], 16),
             "e": ([f("u", 8, 0)], 8), "f": ([f("u", 0, 8), f("v", 8, 16)], 12),
             "g": ([f("w", 16, 24), f("v", 8, 16), f("u", 0, 8)], 24)}
    entries, size = heads[variant]
    single(folder, ST(header(entries), noise("a12", size)))


@fixture
def a13(folder, variant):
    """Header names as raw JSON text, one U8 byte each."""
    names = {"nul": [b'"a\\u0000b"', b'"a"'], "empty": [b'""'], "surrogate": [b'"\\ud800x"'],
             "utf8": [b'"a\xffb"'], "overlong": [b'"a\xc0\xafb"'], "emoji": ['"\U0001f680"'.encode()],
             "pair": [b'"\\ud83d\\ude80"'], "path": [b'"../x"', b'"a/b"', b'"/etc/x"'],
             "escape": [b'"a\\n\\u001b[31mb"'], "metadata": [b'"__metadata___"'],
             "composed": ['"\u00e9"'.encode(), '"e\u0301"'.encode()]}[variant]
    entries = [n + b':{"dtype":"U8","shape":[1],"data_offsets":[%d,%d]}' % (i, i + 1)
               for i, n in enumerate(names)]
    single(folder, ST(b"{" + b",".join(entries) + b"}", noise("a13", len(names))))


@fixture
def a15(folder, variant):
    s, w = T("s", "F32", [], 0, 4), T("w", "F32", [1], 0, 4)
    after = T("w", "F32", [1], 4, 8)
    heads = {"first": [T("z", "F16", [0], 0, 0), w], "middle": [w, T("z", "F16", [0], 4, 4),
                                                              T("x", "F32", [1], 4, 8)],
             "last": [w, T("z", "F16", [0], 4, 4)], "matrix": [T("z2", "I32", [2, 0], 0, 0)],
             "two": [T("z", "F16", [0], 0, 0), T("z2", "I32", [2, 0], 0, 0), w],
             "scalar": [s, after], "bad": [T("bad", "F32", [1], 0, 0)],
             "bad2": [T("bad2", "F32", [], 0, 0)], "missing": ['"z":{"dtype":"F16","shape":[0,10]}'],
             "zero-huge": [T("z", "F16", [0, HUGE], 0, 0)],
             "huge-zero": [T("z", "F16", [HUGE, 2, 0], 0, 0)]}
    size = {"middle": 8, "scalar": 8, "first": 4, "last": 4, "two": 4}.get(variant, 0)
    single(folder, ST(header(heads[variant]), noise("a15", size)))


@fixture
def table_i(folder, variant):
    """Public conformance inputs of the safetensors library, by the name of its test."""
    t, zeros = T("test", "I32", [2, 2], 0, 16), bytes(16)
    blank = header([t]).replace(b"[0,16]", b"[0, 4]").replace(b"0,4", b"0, 4")
    attack = [T(f"weight_{i}", "F32", [2, 2], 0, 16) for i in range(10)]
    files = {"deserialization": ST(header([t]), zeros),
             "empty-shapes": ST(header([T("test", "I32", [], 0, 4)]), bytes(4)),
             "zero-sized": ST(header([T("test", "I32", [2, 0], 0, 0)]).replace(b"0,0]", b"0, 0]")),
             "incomplete-1": ST(header([t]), zeros + b"x" * 34),
             "incomplete-2": ST(header([t]), bytes(14)),
             "too-large": b"\x3c\0\0\0\0\xff\xff\xff" + header([t]) + zeros,
             "too-small": b"", "invalid-length": struct.pack("<Q", 60), "non-utf8": ST(b"\xff"),
             "not-json": ST(b"{"), "padded": ST(b"{}\r \t\n"), "leading": ST(b"\t\n{}\r "),
             "invalid-info": ST(blank),
             "overflow-1": ST(header([T("test", "I32", [2, 2 * HUGE - 2], 0, 16)]), zeros),
             "overflow-2": ST(header([T("test", "I32", [2, HUGE - 1], 0, 16)]), zeros),
             "json-attack": ST(header(attack), zeros),
             "fp4": ST(header([T("attn.0", "F4", [1, 2], 0, 1)]), b"\0", pad=4),
             "fp4-misaligned": ST(header([T("attn.0", "F4", [1, 3], 0, 1)]), b"\0"),
             "fp4-invalid": ST(header([T("attn.0", "F4", [1, 2], 0, 2)]), b"\0\0"),
             "truncated-n": ST(header([T("a", "F32", [2, 2], 0, 16)]), zeros, n=1000),
             "liar": ST(header([T("liar", "F32", [1024, 1024], 0, 4194304)]), b"\0"),
             "nan-in-header": ST(b'{"__metadata__":{"a":NaN}}'),
             "trailing-comma": ST(header([t])[:-1] + b",}", zeros),
             "third-offset": ST(header([t]).replace(b"[0,16]", b"[0,16,16]"), zeros),
             "float-offset": ST(header([t]).replace(b"[0,16]", b"[0,16.0]"), zeros),
             "negative": ST(header([t]).replace(b"[2,2]", b"[-2,-2]"), zeros),
             "unknown-dtype": ST(header([t]).replace(b"I32", b"I33"), zeros),
             "extra-key": ST(header([t]).replace(b'"shape"', b'"more":[1],"shape"'), zeros)}
    single(folder, files[variant])


# B: index, shards, folder.

@fixture
def b01(folder, variant):
    if variant == "gap":
        for i in (0, 1, 3):
            write(folder, f"model-0000{i}-of-00004.safetensors",
                  tensors_file([(f"w{i}", "U8", [4], noise("b01", 4))]))
        write(folder, "config.json", dump(SMALL))
        return
    write_p3s(folder)
    if variant == "four":
        more = {"model.extra.a.weight": "model-00003-of-00004.safetensors",
                "model.extra.b.weight": "model-00004-of-00004.safetensors"}
        write_index(folder, {**weight_map(folder), **more})
    else:
        os.unlink(os.path.join(folder, SHARDS[int(variant) - 1]))


@fixture
def b03(folder, variant):
    write_p3s(folder)
    where, total = weight_map(folder), None
    if variant == "wrong":
        where["model.norm.weight"] = SHARDS[0]
    elif variant == "nowhere":
        where["model.mtp.weight"] = SHARDS[1]
    elif variant == "absent":
        del where["model.norm.weight"]
    else:
        total = 12345
    write_index(folder, where, total)


@fixture
def b04(folder, variant, mapped):
    """variant: equal, bytes, shape; mapped: 1, 2, none (no index)."""
    write_p3s(folder)
    name = "model.layers.0.self_attn.o_proj.weight"
    mine = dict((t[0], t) for t in p3_tensors())
    data = mine[name][3] if variant == "equal" else weights("other", 64 * 64 * 2)
    shape = [32, 128] if variant == "shape" else [64, 64]
    second = [t for n, t in mine.items() if weight_map(folder)[n] == SHARDS[1]]
    write(folder, SHARDS[1], tensors_file(second + [(name, "BF16", shape, data)], {"format": "pt"}))
    if mapped == "none":
        os.unlink(os.path.join(folder, INDEX))
    else:
        write_index(folder, {**weight_map(folder), name: SHARDS[int(mapped) - 1]})


@fixture
def b06(folder, variant):
    inner = os.path.join(folder, "model")
    write_p3s(inner)
    shutil.move(os.path.join(inner, SHARDS[1]), os.path.join(folder, "outside.safetensors"))
    outside = os.path.abspath(os.path.join(folder, "outside.safetensors"))
    os.makedirs(os.path.join(inner, "sub"))
    target = {"dotdot": "../outside.safetensors", "absolute": outside, "nul": "a\0b.safetensors",
              "sub": "sub/../../outside.safetensors", "empty": "", "number": 7,
              "link": "linked.safetensors"}[variant]
    if variant == "link":
        os.symlink("../outside.safetensors", os.path.join(inner, target))
    where = weight_map(inner)
    write_index(inner, {n: target if f == SHARDS[1] else f for n, f in where.items()})


@fixture
def b07(folder, variant):
    if variant == "empty":
        return
    write_p3(folder)
    if variant == "noconfig":
        os.unlink(os.path.join(folder, "config.json"))
        return
    if variant != "both":
        os.unlink(os.path.join(folder, "model.safetensors"))
    if variant == "pth":
        write(folder, "consolidated.00.pth", b"PK\3\4" + noise("pth", 100))
        write(folder, "params.json", "{}")
        return
    write(folder, "pytorch_model.bin", b"PK\3\4" + noise("bin", 100))
    if variant == "binindex":
        write(folder, "pytorch_model.bin.index.json", '{"weight_map":{}}')


@fixture
def b09(folder, variant):
    tensors, drop = p3_tensors(), "model.layers.0.self_attn.qkv_proj.weight"
    stem = drop[:-len("weight")]
    rest = [t for t in tensors if t[0] != drop]
    gptq = {"quant_method": "gptq", "bits": 4, "group_size": 32, "desc_act": False, "sym": True}
    if variant == "gptq":
        rest += [(stem + "qweight", "I32", [8, 128], noise("qweight", 4096)),
                 (stem + "qzeros", "I32", [2, 16], noise("qzeros", 128)),
                 (stem + "scales", "F16", [2, 128], weights("scales", 512))]
        write_p3(folder, rest, quantization_config=gptq)
    elif variant == "bnb":
        rest += [(drop, "U8", [4096, 1], noise("bnb", 4096)),
                 (drop + ".absmax", "F32", [128], bytes(512))]
        write_p3(folder, rest, quantization_config={"quant_method": "bitsandbytes",
                                                    "load_in_4bit": True})
    else:
        write_p3(folder, quantization_config=gptq)


@fixture
def b10(folder, variant):
    text = json.dumps(p3_config(), indent=1)
    texts = {"infinity": text.replace("{", '{"unknown_key":[0.0,Infinity],', 1),
             "nan": text.replace("1e-05", "NaN"), "bom": "\ufeff" + text,
             "comma": text[:-1].rstrip() + ",\n}",
             "deep": '{"a":' + "[" * 100000 + "]" * 100000 + "}",
             "string": text.replace('"vocab_size": 320', '"vocab_size": "320"'),
             "float": text.replace('"vocab_size": 320', '"vocab_size": 320.0')}
    write_p3(folder, config=texts[variant])


# C: downloads, provenance.

@fixture
def c01(folder):
    """A hub cache with one bit flipped in the middle of the weights' blob."""
    root = hub_cache(folder, p3_files())
    link = os.path.join(root, "snapshots", "5" * 40, "model.safetensors")
    with open(link, "r+b") as f:
        f.seek(os.path.getsize(link) // 2)
        byte = f.read(1)[0]
        f.seek(-1, os.SEEK_CUR)
        f.write(bytes([byte ^ 16]))


@fixture
def c02(folder, variant):
    write_p3(folder)
    path = os.path.join(folder, "model.safetensors")
    real = os.path.join(folder, "elsewhere")
    os.makedirs(real)
    shutil.move(path, os.path.join(real, "blob"))
    if variant == "chain":
        os.symlink("elsewhere/blob", os.path.join(folder, "c3"))
        os.symlink("c3", os.path.join(folder, "c2"))
    os.symlink({"missing": "elsewhere/gone", "folder": "elsewhere", "self": "model.safetensors",
                "chain": "c2"}[variant], path)


@fixture
def c02_copy(folder):
    """A snapshot copied with its links, but without the blobs."""
    root = hub_cache(folder, p3_files())
    shutil.rmtree(os.path.join(root, "blobs"))


@fixture
def c04(folder, variant):
    if variant == "cache":
        root = hub_cache(folder, p3_files())
        os.unlink(os.path.join(root, "snapshots", "5" * 40, "model.safetensors"))
        write(root, "blobs/" + "ab" * 32 + ".incomplete", p3_files()["model.safetensors"][:5000])
        return
    write_p3(folder)
    path = os.path.join(folder, "model.safetensors")
    os.rename(path, path + ".incomplete")


@fixture
def c05(folder, variant):
    tensors = p3_tensors()
    metadata = {"format": "pt", "author": "nobody", "note": "x"}
    if variant == "metadata":
        metadata = dict(reversed(metadata.items()))
    if variant == "layout":
        tensors = tensors[::-1]
    data = tensors_file(tensors, metadata)
    n = struct.unpack("<Q", data[:8])[0]
    head, body = data[8:8 + n], data[8 + n:]
    if variant == "entries":
        entries = list(json.loads(head).items())
        head = dump(dict(entries[::-1])).encode()
        head += b" " * (n - len(head))
    if variant == "padding":
        head += b" " * 8
    write_p3(folder)
    write(folder, "model.safetensors", ST(head, body))


@fixture
def c05_change(folder, variant):
    """A file with one tensor; what differs is the name, the dtype, the shape or a byte."""
    data = bytearray(weights("c05", 12))
    name, dtype, shape = "w", "F16", [2, 3]
    if variant == "byte":
        data[3] ^= 1
    name = "v" if variant == "name" else name
    dtype = "BF16" if variant == "dtype" else dtype
    shape = [3, 2] if variant == "shape" else shape
    single(folder, tensors_file([(name, dtype, shape, bytes(data))]))


# E, G, T.

@fixture
def e01(folder):
    names = ["n" * k for k in (510, 511, 512, 600, 20000)]
    names += ["m" * 599 + "a", "m" * 599 + "b", "x" * 510 + "\u00e9" + "y" * 20]
    single(folder, tensors_file([(n, "U8", [5], noise(n, 5)) for n in names]))


@fixture
def g01(folder, variant):
    drop = "model.embed_tokens.weight" if variant == "noembed" else "lm_head.weight"
    tie = {"true": True, "false": False, "noembed": True, "absent": ...}[variant]
    write_p3(folder, [t for t in p3_tensors() if t[0] != drop], tie_word_embeddings=tie)


G10_VALUES = (0x477F, 0x4780, 0x7F61, 0xC788, 0x7F80, 0xFF80, 0x7FC0, 0x7F81, 0x0001, 0x8000)


@fixture
def g10(folder, variant="bits"):
    if variant == "bits":
        data = struct.pack("<10H", *G10_VALUES)
        single(folder, tensors_file([("fine", "BF16", [4], struct.pack("<4H", *[0x3F80] * 4)),
                                     ("wide", "BF16", [10], data)]))
        return
    name = "model.layers.0.mlp.down_proj.weight"
    shape = {"scalar": [], "one": [1], "row": [256, 1], "block": [2, 1], "none": None,
             "odd": [3, 5]}[variant]
    fp8 = bytes(b & 0x3F for b in noise("fp8", 256 * 128))
    tensors = [(name, "F8_E4M3", [256, 128], fp8)]
    scale = name + ("_scale_inv" if variant == "block" else "_scale")
    quant = {"quant_method": "fp8", "activation_scheme": "dynamic"}
    if variant == "block":
        quant |= {"fmt": "e4m3", "weight_block_size": [128, 128]}
    if shape is not None:
        count = 1
        for d in shape:
            count *= d
        tensors.append((scale, "F32", shape, struct.pack(f"<{count}f", *[0.5] * count)))
    write_p3(folder, p3_like(tensors), quantization_config=quant)


def p3_like(extra):
    names = {t[0] for t in extra}
    return [t for t in p3_tensors() if t[0] not in names] + extra


@fixture
def t07(folder):
    write_p3(folder)
    os.unlink(os.path.join(folder, "tokenizer.json"))


@fixture
def blocks(folder, rows="128"):
    """q, k, v in FP8 with 128x128 block scales: grouped when `rows` of q and k is a multiple."""
    rows, tensors = int(rows), []
    for part, n in (("q", rows), ("k", rows), ("v", 200)):
        stem = f"model.layers.0.self_attn.{part}_proj.weight"
        tensors.append((stem, "F8_E4M3", [n, 512], bytes(b & 0x3F for b in noise(stem, n * 512))))
        grid = [-(-n // 128), 4]
        tensors.append((stem + "_scale_inv", "F32", grid,
                        struct.pack(f"<{grid[0] * 4}f", *[0.25] * (grid[0] * 4))))
    config = dict(SMALL, quantization_config={"quant_method": "fp8", "fmt": "e4m3",
                                              "activation_scheme": "dynamic",
                                              "weight_block_size": [128, 128]})
    write(folder, "config.json", json.dumps(config))
    write(folder, "model.safetensors", tensors_file(tensors))


ZOO_MODULES = """input_layernorm attention_norm self_attn.q_proj self_attn.k_proj self_attn.v_proj
attention.wq attention.wk attention.wv self_attn.qkv_proj self_attn.q_a_proj self_attn.kv_b_proj
self_attn.q_norm self_attn.k_norm self_attn.o_proj attention.wo post_attention_layernorm ffn_norm
mlp.gate mlp.router mlp.gate_proj mlp.up_proj mlp.gate_up_proj mlp.experts.0.gate_proj
mlp.experts.0.up_proj mlp.experts.1.gate_proj mlp.experts.1.up_proj mlp.experts.0.down_proj
mlp.experts.1.down_proj mlp.experts.2.down_proj mlp.experts.gate_up_proj mlp.experts.down_proj
feed_forward.w1 feed_forward.w3 feed_forward.w2 block_sparse_moe.experts.0.w1
block_sparse_moe.experts.0.w3 block_sparse_moe.experts.0.w2 mlp.shared_expert.gate_proj
mlp.shared_expert.up_proj mlp.shared_expert.down_proj mlp.shared_experts.up_proj
mlp.shared_expert_gate self_attn self_attn.rotary_emb mamba.in_proj mlp.experts.01.up_proj""".split()
ZOO_SUFFIXES = [".weight", ".weight", ".weight", ".bias", ".weight_packed", "", ".k_scale", ".g_idx",
                "_blocks", "_bias", ".a.b", "."]
ZOO_PREFIXES = ["model.", "model.", "model.", "", "language_model.model.", "model.language_model.",
                "visual."]
ZOO_TOPS = ["embed_tokens.weight", "tok_embeddings.weight", "norm.weight", "norm.bias", "output.weight",
            "lm_head.weight", "lm_head", "lm_head.bias", "embed_tokens", "rotary.inv_freq", "x10", "x9",
            "x09", "x.1", "x1", "X", "layers", "layers.0", "layers.2.", "layers.00.norm.weight",
            "layers.99999999999999999999.norm.weight"]
ZOO_SHAPES = [[64, 64], [32, 64], [8], [16, 8], [], [0, 64], [4, 64, 32], [5], [128, 64]]


@fixture
def zoo(folder, seed):
    """Names from every corner of the order of packs, shapes from a few that may group."""
    r = random.Random("zoo " + seed)
    tensors, names = [], set()
    for _ in range(r.randrange(20, 160)):
        name = r.choice(ZOO_PREFIXES)
        if r.random() < 0.8:
            name += f"layers.{r.choice([0, 1, 2, 10])}.{r.choice(ZOO_MODULES)}{r.choice(ZOO_SUFFIXES)}"
        else:
            name += r.choice(ZOO_TOPS)
        if r.random() < 0.3:  # its whole group with it
            stem, found, leaf = name.partition("_proj")
            members = [stem[:-1] + q + found + leaf for q in "qkv"] if found and stem[-1] in "qkv" \
                else [name]
        else:
            members = [name]
        shape, dtype = r.choice(ZOO_SHAPES), r.choice(["F16", "F16", "F32", "I8"])
        for name in members:
            if name not in names:
                names.add(name)
                size = size_of(dtype, shape)
                tensors.append((name, dtype, shape, noise(name, size)))
    r.shuffle(tensors)
    single(folder, tensors_file(tensors))
