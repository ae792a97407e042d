# SPDX-License-Identifier: Apache-2.0
"""XXH3 with seed 0 and the default secret, written from the published specification.

xxh3_128(data) and xxh3_128_spans(data, span) give canonical bytes; xxh3_64(data) an integer.
Long inputs go through numpy: what the stripes of a 1024-byte block add to the accumulators does
not depend on the accumulators, so that all blocks are summed at once and only the scrambling
between blocks is a loop.
"""

import numpy as np

SECRET = bytes.fromhex(
    "b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671f"
    "cb79e64eccc0e578825ad07dccff7221b8084674f743248ee03590e6813a264c"
    "3c2852bb91c300cb88d0658b1b532ea371644897a20df94e3819ef46a9deacd8"
    "a8fa763fe39c343ff9dcbbc7c70b4f1d8a51e04bcdb45931c89f7ec9d9787364"
    "eac5ac8334d3ebc3c581a0fffa1363eb170ddd51b7f0da49d316552629d4689e"
    "2b16be587d47a1fc8ff8b8d17ad031ce45cb3a8f95160428afd7fbcabb4b407e")
P32 = (0, 0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D)
P64 = (0, 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63,
       0x27D4EB2F165667C5)
MX1, MX2 = 0x165667919E3779F9, 0x9FB21C651E98DF25
START = (P32[3], P64[1], P64[2], P64[3], P64[4], P32[2], P64[5], P32[1])
M64 = (1 << 64) - 1
BLOCK = 1024
BATCH = 4096  # blocks summed at a time: 4 MiB of input


def word(data, offset, size=8):
    return int.from_bytes(data[offset:offset + size], "little")


def swap(value, size):
    return int.from_bytes(value.to_bytes(size, "little"), "big")


def fold(a, b):
    product = a * b
    return (product & M64) ^ (product >> 64)


def avalanche(x):
    x = ((x ^ x >> 37) * MX1) & M64
    return x ^ x >> 32


def avalanche64(x):
    x = ((x ^ x >> 33) * P64[2]) & M64
    x = ((x ^ x >> 29) * P64[3]) & M64
    return x ^ x >> 32


def key(offset, size=8):
    """Two neighbouring words of the secret, one xor the other."""
    return word(SECRET, offset, size) ^ word(SECRET, offset + size, size)


def upto3(data):
    n = len(data)
    c = data[-1] | n << 8 | data[0] << 16 | data[n >> 1] << 24
    s = swap(c, 4)
    turned = (s << 13 | s >> 19) & 0xFFFFFFFF
    return avalanche64(key(0, 4) ^ c), avalanche64(key(8, 4) ^ turned)


def upto8(data):
    n = len(data)
    value = key(16) ^ (word(data, 0, 4) | word(data, n - 4, 4) << 32)
    product = value * (P64[1] + (n << 2))
    low, high = product & M64, product >> 64 & M64
    high = (high + (low << 1)) & M64
    low ^= high >> 3
    low = ((low ^ low >> 35) * MX2) & M64
    return low ^ low >> 28, avalanche(high)


def upto16(data):
    n = len(data)
    last = word(data, n - 8)
    one, two = key(32) ^ word(data, 0) ^ last, key(48) ^ last
    product = one * P64[1]
    low = ((product & M64) + (n - 1 << 54)) & M64
    high = ((product >> 64) + two + (two & 0xFFFFFFFF) * (P32[2] - 1)) & M64
    low ^= swap(high, 8)
    product = low * P64[2]
    high = ((product >> 64) + high * P64[2]) & M64
    return avalanche(product & M64), avalanche(high)


def mix_two(acc, data, one, two, secret):
    def mix(at, s):
        return fold(word(data, at) ^ word(SECRET, s), word(data, at + 8) ^ word(SECRET, s + 8))
    acc[0] = (acc[0] + mix(one, secret)) & M64 ^ (word(data, two) + word(data, two + 8)) & M64
    acc[1] = (acc[1] + mix(two, secret + 16)) & M64 ^ (word(data, one) + word(data, one + 8)) & M64


def upto240(data):
    n = len(data)
    acc = [n * P64[1] & M64, 0]
    if n <= 128:
        for i in reversed(range((n - 1 >> 5) + 1)):
            mix_two(acc, data, i * 16, n - i * 16 - 16, i * 32)
    else:
        for i in range(4):
            mix_two(acc, data, i * 32, i * 32 + 16, i * 32)
        acc = [avalanche(a) for a in acc]
        for i in range(4, n >> 5):
            mix_two(acc, data, i * 32, i * 32 + 16, (i - 4) * 32 + 3)
        mix_two(acc, data, n - 16, n - 32, 103)
    high = (acc[0] * P64[1] + acc[1] * P64[4] + n * P64[2]) & M64
    return avalanche((acc[0] + acc[1]) & M64), -avalanche(high) & M64


def secret_words(offset):
    return np.frombuffer(SECRET[offset:offset + 64], "<u8")


SWAPPED = [1, 0, 3, 2, 5, 4, 7, 6]
STRIPE_KEYS = np.stack([secret_words(8 * i) for i in range(16)])
SCRAMBLE = secret_words(len(SECRET) - 64)


def sums(stripes, keys):
    """What stripes [..., count, 8] add to the accumulators, one row for each [...]."""
    value = stripes ^ keys
    value = (value & np.uint64(0xFFFFFFFF)) * (value >> np.uint64(32))
    return (value + stripes[..., SWAPPED]).sum(axis=-2, dtype=np.uint64)


def scramble(acc):
    return (acc ^ acc >> np.uint64(47) ^ SCRAMBLE) * np.uint64(P32[1])


def merge(acc, start, offset):
    result = start
    for i in range(4):
        result += fold(acc[2 * i] ^ word(SECRET, offset + 16 * i),
                       acc[2 * i + 1] ^ word(SECRET, offset + 16 * i + 8))
    return avalanche(result & M64)


def finish(acc, n):
    acc = [int(a) for a in acc]
    return merge(acc, n * P64[1] & M64, 11), merge(acc, ~(n * P64[2]) & M64, len(SECRET) - 75)


def accumulate(rows):
    """Accumulators of inputs of one length > 240: rows is a uint8 array [count, length]."""
    count, n = rows.shape
    blocks = (n - 1) // BLOCK
    acc = np.tile(np.array(START, np.uint64), (count, 1))
    for first in range(0, blocks, max(1, BATCH // count)):
        last = min(blocks, first + max(1, BATCH // count))
        part = np.ascontiguousarray(rows[:, first * BLOCK:last * BLOCK])
        added = sums(part.view("<u8").reshape(count, last - first, 16, 8), STRIPE_KEYS)
        for i in range(last - first):
            acc = scramble(acc + added[:, i])
    rest = np.ascontiguousarray(rows[:, blocks * BLOCK:])
    full = (rest.shape[1] - 1) // 64
    if full:
        stripes = np.ascontiguousarray(rest[:, :full * 64]).view("<u8").reshape(count, full, 8)
        acc = acc + sums(stripes, STRIPE_KEYS[:full])
    tail = np.ascontiguousarray(rows[:, n - 64:]).view("<u8").reshape(count, 1, 8)
    return acc + sums(tail, secret_words(len(SECRET) - 71))


def halves(data):
    n = len(data)
    if n == 0:
        return avalanche64(key(64)), avalanche64(key(80))
    for limit, function in ((3, upto3), (8, upto8), (16, upto16), (240, upto240)):
        if n <= limit:
            return function(bytes(data))
    return finish(accumulate(np.frombuffer(data, np.uint8).reshape(1, n))[0], n)


def canonical(pair):
    return pair[1].to_bytes(8, "big") + pair[0].to_bytes(8, "big")


def xxh3_128(data):
    return canonical(halves(data))


def xxh3_64(data):
    """Of more than 240 bytes, where it is the low half of the 128 bits."""
    assert len(data) > 240
    return halves(data)[0]


def xxh3_128_spans(data, span):
    """XXH3-128 of each `span` bytes of data and of what is left, one after another."""
    data = np.frombuffer(data, np.uint8)
    whole = len(data) // span
    out = []
    for first in range(0, whole, 64):
        last = min(whole, first + 64)
        acc = accumulate(data[first * span:last * span].reshape(last - first, span))
        out += [canonical(finish(a, span)) for a in acc]
    if len(data) % span:
        out.append(xxh3_128(data[whole * span:].tobytes()))
    return b"".join(out)
