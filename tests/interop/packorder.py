# SPDX-License-Identifier: Apache-2.0
"""Order, groups, views and extents of `rules` 1, derived anew from names, dtypes and shapes.

check(pack) lays out the rows of an open pack as ingot-pack(5), "ORDER", says and compares the
result with what the pack holds; it raises ValueError at the first difference.
"""

import re
from itertools import groupby

PAGE = 4096
PREFIXES = ("model.language_model.", "language_model.model.", "model.", "")
# slot, modules of a layer ({a,b}: members from 0 on; <e>: an expert's number; "...": the suffix may
# follow an underscore; <suffix>: one component), first member's number; the first that fits counts
LAYER = [
    (0, "input_layernorm", 0),
    (0, "attention_norm", 0),
    (1, "self_attn.{q_proj,k_proj,v_proj}", 0),
    (1, "attention.{wq,wk,wv}", 0),
    (1, "self_attn.qkv_proj", 0),
    (1, "self_attn.{q_a_proj,q_b_proj}", 3),
    (1, "self_attn.{kv_a_proj_with_mqa,kv_b_proj}", 5),
    (2, "self_attn.{q_norm,k_norm,q_a_layernorm,kv_a_layernorm}", 0),
    (2, "self_attn.<suffix>", 4),
    (3, "self_attn.o_proj", 0),
    (3, "attention.wo", 0),
    (4, "post_attention_layernorm", 0),
    (4, "ffn_norm", 0),
    (5, "mlp.gate", 0),
    (5, "mlp.router", 0),
    (5, "block_sparse_moe.gate", 0),
    (5, "feed_forward.gate", 0),
    (6, "mlp.{gate_proj,up_proj}", 0),
    (6, "mlp.gate_up_proj", 0),
    (6, "mlp.experts.<e>.{gate_proj,up_proj}", 0),
    (6, "mlp.experts.gate_up_proj...", 0),
    (6, "block_sparse_moe.experts.<e>.{w1,w3}", 0),
    (6, "feed_forward.{w1,w3}", 0),
    (6, "feed_forward.experts.<e>.{w1,w3}", 0),
    (7, "mlp.down_proj", 0),
    (7, "mlp.experts.<e>.down_proj", 0),
    (7, "mlp.experts.down_proj...", 0),
    (7, "block_sparse_moe.experts.<e>.w2", 0),
    (7, "feed_forward.w2", 0),
    (7, "feed_forward.experts.<e>.w2", 0),
    (8, "mlp.shared_expert.{gate_proj,up_proj,down_proj}", 0),
    (8, "mlp.shared_experts.{gate_proj,up_proj,down_proj}", 0),
    (8, "mlp.shared_expert_gate", 3),
]
VIEWS = {"q_proj": "qkv_proj", "k_proj": "qkv_proj", "v_proj": "qkv_proj", "wq": "qkv_proj",
         "wk": "qkv_proj", "wv": "qkv_proj", "gate_proj": "gate_up_proj",
         "up_proj": "gate_up_proj", "w1": "gate_up_proj", "w3": "gate_up_proj"}
EXPERT_VIEWS = dict(VIEWS, down_proj="down_proj", w2="down_proj")
MEMBERS = {"qkv_proj": 3, "gate_up_proj": 2, "down_proj": 1}
KINDS = {"weight": 0, "weight_packed": 0, "_blocks": 0, "": 0, "bias": 1, "_bias": 1}
NUMBER = "(?:0|[1-9][0-9]{0,18})"
NONE = 0xFFFFFFFF
ROW, BLOCK, GROUP = GROUPED = 2, 3, 4  # granularities whose scales may group


def rows_of_table():
    """(slot, pattern, member, view) for each single module."""
    for slot, text, member in LAYER:
        braces = re.search(r"\{(.*)\}", text)
        for i, name in enumerate(braces[1].split(",") if braces else [text]):
            module = text[:braces.start()] + name + text[braces.end():] if braces else name
            parent, _, leaf = module.rpartition(".")
            suffix = r"(?:\.(?P<s>.+))?"
            if module.endswith("..."):
                module, suffix = module[:-3], r"(?:\.(?P<s>.+)|(?P<u>_.+))?"
            if module.endswith(".<suffix>"):
                module, suffix = parent, r"\.(?P<s>[^.]+)"
            view = (EXPERT_VIEWS if "<e>" in module else VIEWS).get(leaf)
            pattern = re.escape(module).replace("<e>", f"(?P<e>{NUMBER})") + suffix
            yield (slot, re.compile(pattern, re.S), member + i,
                   view and parent.replace(".<e>", "") + "." + view)


TABLE = list(rows_of_table())


def natural(name):
    """Digit runs compare as numbers, all else as bytes; equal ones by their bytes."""
    out = []
    for text in re.findall(rb"[0-9]+|[^0-9]", name.encode(), re.S):
        out.append((0x30, int(text)) if text.isdigit() else (text[0], 0))
    return out, name.encode()


class Place:
    """Where a name stands: its sort key and the view of its group."""

    def __init__(self, name):
        self.name, self.layer, self.slot, self.expert, self.member = name, 0, 0, 0, 0
        self.stage, self.prefix, self.suffix, self.view, self.experts = 3, "", "", "", False
        if not any(self.match(p, name[len(p):]) for p in PREFIXES if name.startswith(p)):
            if not (name.startswith("language_model.")
                    and self.single("language_model.", "lm_head", 4)):
                self.single("", "tok_embeddings", 0) or self.single("", "output", 4)
        self.kind = KINDS.get(self.suffix, 2)

    def single(self, prefix, module, stage):
        rest = self.name[len(prefix):]
        if rest != module and not rest.startswith(module + "."):
            return False
        self.stage, self.prefix, self.suffix = stage, prefix, rest[len(module) + 1:]
        return True

    def match(self, prefix, rest):
        for module, stage in (("embed_tokens", 0), ("norm", 2), ("lm_head", 4)):
            if self.single(prefix, module, stage):
                return True
        m = re.match(rf"layers\.({NUMBER})\.(?=.)", rest, re.S)
        if not m:
            return False
        self.stage, self.layer, self.prefix = 1, int(m[1]), prefix + m[0]
        self.in_layer(prefix + m[0], rest[m.end():])
        return True

    def in_layer(self, start, rest):
        for slot, pattern, member, view in TABLE:
            m = pattern.fullmatch(rest)
            if m:
                parts = m.groupdict()
                self.slot, self.member = slot, member
                self.suffix = parts["s"] or parts.get("u") or ""
                self.experts = parts.get("e") is not None
                self.expert = int(parts["e"]) if self.experts else 0
                self.view = start + view if view else ""
                return
        self.slot = 9

    def group(self):
        return (self.stage, self.layer, self.slot, self.kind, self.suffix.encode(), self.prefix,
                not self.view, self.view)

    def key(self):
        return self.group() + (self.expert, self.member, natural(self.name))

    def view_name(self):
        return self.view + ("." + self.suffix if self.suffix else "")


def is_group(pack, run, names):
    """Do these rows, all of one view, form a group?"""
    places = [Place(r.name) for r in run]
    members = MEMBERS[places[0].view.rpartition(".")[2]]
    if len(run) < 2 or places[0].view_name() in names or any(r.tied for r in run):
        return False
    wanted = [(e, m) for e in range(len(run) // members) for m in range(members)]
    if [(p.expert, p.member) for p in places] != wanted:
        return False
    if not places[0].experts and len(run) != members:
        return False
    if any(r.dtype != run[0].dtype or not r.shape or r.shape[1:] != run[0].shape[1:] for r in run):
        return False
    if places[0].experts and any(r.shape != run[0].shape for r in run):
        return False
    if any(r.bytes == 0 or r.bytes % 16 for r in run):
        return False
    return scales_allow(pack, run)


def scales_allow(pack, run):
    """Rows of kind 2 must be scales, of rows, blocks or groups, and the blocks must fit."""
    for i, r in enumerate(run):
        links = [x for x in pack.links if pack.rows[x.object] is r and x.subject != NONE
                 and not pack.rows[x.subject].view]
        if Place(r.name).kind == 2 and not links:
            return False
        for x in links:
            if x.granularity not in GROUPED:
                return False
            rows = (pack.rows[x.subject].shape + [1])[0]
            if x.granularity == BLOCK and i < len(run) - 1 and x.rows and rows % x.rows:
                return False
    return True


def view_shape(run, experts):
    members = len(run)
    if not experts:
        return [sum(r.shape[0] for r in run)] + run[0].shape[1:]
    count = 1 + max(Place(r.name).expert for r in run)
    return [count, members // count * run[0].shape[0]] + run[0].shape[1:]


def units(pack):
    """Runs of rows that are laid end to end, in order, with the name and shape of their view."""
    plain = [r for r in pack.rows if not r.view and not r.shadow]
    names = {r.name for r in plain}
    tied_head = {r.name for r in plain if r.tied and Place(r.name).stage == 4}
    plain = sorted((r for r in plain if r.name not in tied_head), key=lambda r: Place(r.name).key())
    out = []
    for key, run in groupby(plain, key=lambda r: Place(r.name).group()):
        run = list(run)
        if key[-1] and is_group(pack, run, names):
            place = Place(run[0].name)
            out.append((run, place.view_name(), view_shape(run, place.experts), False))
        else:
            out += [([r], None, None, False) for r in run]
    shadows = sorted((r for r in pack.rows if r.shadow),
                     key=lambda r: (Place(r.name).key(), r.source))
    return out + [([r], None, None, True) for r in shadows]


def layout(runs):
    """Extents [offset, length, flags] and for each run (extent, offset inside)."""
    extents, places, at, small = [], [], 65536, None
    for run, _, _, shadow in runs:
        size = sum(r.bytes for r in run)
        if size == 0:
            places.append((NONE, 0))
        elif size < PAGE and small == shadow:
            extent = extents[-1]
            inside = -(-extent[1] // 256) * 256
            extent[1] = inside + size
            places.append((len(extents) - 1, inside))
        else:
            at = -(-at // PAGE) * PAGE
            extents.append([at, size, int(size < PAGE)])
            small = shadow if size < PAGE else None
            places.append((len(extents) - 1, 0))
        at = extents[-1][0] + extents[-1][1] if extents else at
    return extents, places


def same(found, wanted, what):
    if found != wanted:
        raise ValueError(f"{what}: {found}, should be {wanted}")


def check_view(pack, run, name, shape):
    views = [r for r in pack.rows if r.view and r.name == name]
    same(len(views), 1, f"rows of the view {name!r}")
    view = views[0]
    same((view.shape, view.dtype), (shape, run[0].dtype), f"view {name!r}")
    same((view.extent, view.offset), (run[0].extent, run[0].offset), f"view {name!r}: place")
    same(view.bytes, sum(r.bytes for r in run), f"view {name!r}: bytes")


def check_view_links(pack, runs):
    """A view has its parts' links where their scales are a group, link for link."""
    index = {r.name: i for i, r in enumerate(pack.rows) if not r.shadow}
    views = {tuple(r.name for r in run): name for run, name, _, _ in runs if name}
    for run, name, _, _ in runs:
        if not name:
            continue
        parts = [[x for x in pack.links if x.subject == index[r.name]] for r in run]
        wanted = []
        for links in zip(*parts):
            objects = tuple(pack.rows[x.object].name for x in links)
            if len({(x.role, x.stage) for x in links}) == 1 and objects in views:
                wanted.append((index[views[objects]], links[0].role, links[0].stage))
        found = [(x.object, x.role, x.stage) for x in pack.links if x.subject == index[name]]
        same(sorted(found), sorted(wanted), f"links of the view {name!r}")


def check_sequence(pack, runs):
    """First what follows what, then where: a wrong order is easier to see that way."""
    wanted = [r for run, _, _, _ in runs for r in run if r.bytes]
    found = sorted((r for r in wanted), key=lambda r: (r.extent, r.offset))
    for i, (f, w) in enumerate(zip(found, wanted)):
        same(f.name, w.name, f"number {i} in the weights, after {found[i - 1].name!r}")


def check(pack):
    runs = units(pack)
    check_sequence(pack, runs)
    extents, places = layout(runs)
    same([[a, n, f] for a, n, _, f in pack.extents], extents, "extents")
    for (run, name, shape, _), (extent, inside) in zip(runs, places):
        for r in run:
            same((r.extent, r.offset), (extent, inside) if r.bytes else (NONE, 0),
                 f"place of {r.name!r}")
            inside += r.bytes
        if name:
            check_view(pack, run, name, shape)
    same(sorted(r.name for r in pack.rows if r.view), sorted(n for _, n, _, _ in runs if n), "views")
    check_view_links(pack, runs)
    end = extents[-1][0] + extents[-1][1] if extents else 65536
    same(pack.tail, -(-end // PAGE) * PAGE, "the tail's offset")
