"""Documents of every BSON type, byte by byte, for round_trips.py.

They are built from bytes, not from Python's values: a driver's classes can't say which of the NaNs is
meant, or what an array's elements are called. Each value has a kind, a row of the first table in
docs/round-trips.md, and knows what it becomes where a carrier loses something: `LOSSES` has a function
for each loss that the table names.
"""

import random
import struct

DEPTH_MAX = 180
# Of a request that asks for a document by its `_id`: they count, too (SHORTCOMINGS.md).
REQUEST_LEVELS = 10


def element(kind, name, payload):
    return bytes([kind]) + name + b"\0" + payload


def document(*elements):
    body = b"".join(elements)
    return struct.pack("<i", len(body) + 5) + body + b"\0"


def string(text):
    return struct.pack("<i", len(text) + 1) + text + b"\0"


def int32(number):
    return struct.pack("<i", number)


def int64(number):
    return struct.pack("<q", number)


def double(number):
    return struct.pack("<d", number)


def bits64(bits):
    return struct.pack("<Q", bits)


def binary(subtype, content):
    return struct.pack("<iB", len(content), subtype) + content


def old_binary(length, content):
    return binary(2, struct.pack("<i", length) + content)


def regex(pattern, options):
    return pattern + b"\0" + options + b"\0"


def decimal(high, low):
    return struct.pack("<QQ", low, high)


def nested(depth):
    """A document of so many levels, itself the first."""
    inner = document(element(0x10, b"n", int32(1)))
    for _ in range(depth - 1):
        inner = document(element(0x03, b"d", inner))
    return inner


ONE = element(0x10, b"0", int32(1))
TWO = element(0x02, b"1", string(b"two"))
WORDS = document(element(0x02, b"a", string(b"b")))
OID = bytes(range(12))
# Sign, exponent 6176 (that is 10 to the 0th).
DECIMAL_ONE = 0x3040 << 48


def values(seed):
    """(kind, type, payload) of each value; some are drawn from the seed."""
    draw = random.Random(seed)
    letters = ["a", "ß", "\u2028", "\U0010ffff", "\x01", '"', "\\", "\n", "\x7f", "</", "\ufeff"]
    drawn = "".join(draw.choice(letters) for _ in range(40)).encode()
    finite = [0.0, -0.0, 1.0, 0.1, 5e-324, 2.2250738585072014e-308, 1.7976931348623157e308, 1e22]
    finite += [9007199254740993.0, 1e-7, 123456789012345680.0, -1.5, draw.uniform(-1e6, 1e6)]
    while len(finite) < 40:
        number = struct.unpack("<d", draw.randbytes(8))[0]
        if number == number and abs(number) != float("inf"):
            finite.append(number)
    out = [("double", 0x01, double(number)) for number in finite]
    out += [("infinity", 0x01, double(float(sign))) for sign in ("inf", "-inf")]
    out.append(("NaN", 0x01, bits64(0x7FF8 << 48)))
    payloads = [0xFFF8 << 48, 0x7FF0 << 48 | 1, 0x7FFF << 48 | draw.getrandbits(48)]
    out += [("NaN with sign or payload", 0x01, bits64(bits)) for bits in payloads]
    for text in (b"", b"a", b"\0", b"a\0b", "ßß\U0001f33f\u2028".encode(), drawn, b"$oid", b"{}"):
        out.append(("string", 0x02, string(text)))
        out.append(("symbol", 0x0E, string(text)))
        out.append(("code", 0x0D, string(text)))
        scoped = string(text) + WORDS
        out.append(("code with scope", 0x0F, struct.pack("<i", len(scoped) + 4) + scoped))
    out.append(("document", 0x03, document()))
    out.append(("document", 0x03, WORDS))
    out.append(("document", 0x03, nested(90)))
    out.append(("document nested deeply", 0x03, nested(DEPTH_MAX - REQUEST_LEVELS)))
    out.append(("array", 0x04, document()))
    out.append(("array", 0x04, document(ONE, TWO)))
    many = [element(0x10, str(at).encode(), int32(at)) for at in range(120)]
    out.append(("array", 0x04, document(*many)))
    for names in ([b"1", b"0"], [b"0", b"0"], [b"", b""], [b"a", b"b"], [b"00", b"01"]):
        items = (element(0x10, name, int32(1)) for name in names)
        out.append(("array whose names aren't 0, 1, ...", 0x04, document(*items)))
    for subtype in (0, 1, 3, 4, 5, 6, 7, 8, 9, 0x7F, 0x80, 0xFF):
        for content in (b"", b"\0", draw.randbytes(16), draw.randbytes(3)):
            out.append(("binary", 0x05, binary(subtype, content)))
    for content in (b"\0", draw.randbytes(16)):
        out.append(("binary of subtype 2", 0x05, old_binary(len(content), content)))
    out.append(("binary of subtype 2 without content", 0x05, old_binary(0, b"")))
    out.append(("undefined", 0x06, b""))
    out += [("ObjectId", 0x07, it) for it in (OID, bytes(12), b"\xff" * 12)]
    out += [("boolean", 0x08, b"\0"), ("boolean", 0x08, b"\1")]
    for millis in (0, 1, 999, 1000, 1700000000123, 253402300799999):
        out.append(("date", 0x09, int64(millis)))
    for millis in (-1, -(1 << 63), (1 << 63) - 1, 253402300800000, -62135596800001, -1500):
        out.append(("date before 1970 or after 9999", 0x09, int64(millis)))
    out.append(("null", 0x0A, b""))
    for pattern, options in ((b"", b""), (b"^a/\\d\"", b"im"), ("ß".encode(), b"imsx")):
        out.append(("regex", 0x0B, regex(pattern, options)))
    out.append(("regex whose options aren't sorted", 0x0B, regex(b"a", b"mi")))
    out.append(("DBPointer", 0x0C, string(b"a.b") + OID))
    for number in (0, 1, -1, (1 << 31) - 1, -(1 << 31)):
        out.append(("int32", 0x10, int32(number)))
        out.append(("int64 that fits 32 bits", 0x12, int64(number)))
    for number in (1 << 31, -(1 << 31) - 1, (1 << 63) - 1, -(1 << 63), (1 << 53) + 1):
        out.append(("int64", 0x12, int64(number)))
    for stamp in (1, 1 << 32, (1 << 64) - 1, draw.getrandbits(64)):
        out.append(("timestamp", 0x11, bits64(stamp)))
    for high, low in decimals(draw):
        out.append(("decimal", 0x13, decimal(high, low)))
    out += [("decimal infinity", 0x13, decimal(top << 56, 0)) for top in (0x78, 0xF8)]
    out.append(("decimal NaN", 0x13, decimal(0x7C << 56, 0)))
    for high, low in ((0xFC << 56, 0), (0x7E << 56, 0), (0x7C << 56, 7), (0x78 << 56, 7)):
        out.append(("decimal NaN or infinity with more bits", 0x13, decimal(high, low)))
    # 113 bits hold more than 34 digits: what is more means 0. So does the form that begins with two ones.
    out.append(("decimal of more than 34 digits", 0x13, decimal(DECIMAL_ONE | 0x1FFFFFFFFFFFF, (1 << 64) - 1)))
    out.append(("decimal of the large form", 0x13, decimal(0x6C10 << 48, 1)))
    out += [("minKey", 0xFF, b""), ("maxKey", 0x7F, b"")]
    for names in ((b"",), (b"a.b", b".", b"a."), (b"a", b"a"), ("ß\U0001f33f".encode(),), (b"x" * 3000,)):
        fields = (element(0x10, name, int32(at)) for at, name in enumerate(names))
        out.append(("names: empty, dots, equal ones", 0x03, document(*fields)))
    for names in ((b"$a",), (b"a", b"$oid"), (b"$", b"b"), (b"$gt", b"$lt")):
        fields = (element(0x10, name, int32(at)) for at, name in enumerate(names))
        out.append(("names with a dollar", 0x03, document(*fields)))
    out.append(("a document that reads as a wrapper", 0x03, document(element(0x02, b"$numberInt", string(b"5")))))
    return out


def wrong_old_binaries():
    """Payloads of subtype 2 whose inner length isn't that of what follows, or that are too short for one."""
    for length, content in ((9, b"xyz"), (1, b"xyz"), (-1, b""), (0, b"\0")):
        yield old_binary(length, content)
    for content in (b"", b"ab"):
        yield binary(2, content)


def mended_old_binary(payload):
    """The same with the right length: JSON has what stands behind it."""
    content = payload[9:]
    return old_binary(len(content), content)


def decimals(draw):
    """Canonical ones, as the two halves: digits up to 34, all exponents."""
    most = 10**34 - 1
    for negative in (0, 1):
        for digits, exponent in ((0, 0), (0, 6111), (0, -6176), (1, 0), (10, -1), (most, 6111), (most, -6176),
                                 (draw.randrange(most), draw.randrange(-6176, 6112)), (5, -6176), (100, 5)):
            bits = negative << 127 | (exponent + 6176) << 113 | digits
            yield bits >> 64, bits & ((1 << 64) - 1)


def renamed(array):
    """An array's elements with the names 0, 1, ..."""
    out, at, position = [], 4, 0
    while array[at]:
        end = array.index(0, at + 1)
        out.append(element(array[at], str(position).encode(), array[end + 1 : end + 5]))
        at, position = end + 5, position + 1
    return document(*out)


def bare_decimal(payload):
    """NaN or infinity without more bits, and NaN without a sign."""
    high = struct.unpack("<QQ", payload)[1]
    is_nan = high >> 58 & 0x1F == 0x1F
    return decimal(0x7C << 56 if is_nan else (0x78 << 56) | (high >> 63 << 63), 0)


def zero_decimal(payload):
    """What isn't canonical means 0, with its sign and exponent."""
    high = struct.unpack("<QQ", payload)[1]
    exponent = high >> 47 & 0x3FFF if high >> 61 & 3 == 3 else high >> 49 & 0x3FFF
    return decimal((high >> 63 << 63) | exponent << 49, 0)


# 2^113 - 1 in 34 digits, ten times that.
ROUNDED = 1038459371706965525706099265844019

# The loss that a cell names, of the type and the bytes.
LOSSES = {
    "Go's NaN": lambda kind, value: (kind, bits64(0x7FF8 << 48 | 1)),
    "Go's bytes": lambda kind, value: (kind, old_binary(4, bytes(4))),
    "one NaN": lambda kind, value: (kind, bits64(0x7FF8 << 48)),
    "renamed": lambda kind, value: (kind, renamed(value)),
    "sorted": lambda kind, value: (kind, value[:-3] + bytes(sorted(value[-3:-1])) + b"\0"),
    "int32": lambda kind, value: (0x10, value[:4]),
    "bare": lambda kind, value: (kind, bare_decimal(value)),
    "zero": lambda kind, value: (kind, zero_decimal(value)),
    "rounded": lambda kind, value: (kind, decimal(0x3042 << 48 | (ROUNDED >> 64), ROUNDED & ((1 << 64) - 1))),
    "unwrapped": lambda kind, value: (0x10, int32(5)),
    "string": lambda kind, value: (0x02, value),
}
