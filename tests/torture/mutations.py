"""Damage to bytes, and damage to what the bytes mean, with lengths and checksums that fit again.

A mutation takes the bytes of a file and a random generator, and returns other bytes. All are functions of these two.
"""

from __future__ import annotations

import ast
import base64
import io
import json
import re
import struct
import warnings
import zipfile
import zlib
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

Rng: TypeAlias = np.random.Generator
Mutation: TypeAlias = Callable[[bytes, Rng], bytes]

NUMBERS = (0, 1, 2, 3, 4, 7, 8, 255, 256, 32767, 65535, 65536, 2**24, 2**31 - 1, 2**31, 2**32 - 1, 2**62, 2**63, 2**64)
MAGICS = (
    b"II*\0",
    b"MM\0*",
    b"II+\0",
    b"\x89PNG\r\n\x1a\n",
    b"\xff\xd8\xff\xe0",
    b"\x93NUMPY",
    b"PK\3\4",
    b"PK\5\6",
    b"SQLite format 3\0",
    b"\x89C5DATA\n",
    b"\x89C5SET\r\n",
    b"FUJIFILMCCD-RAW ",
    b"FOVb",
    b"\0\0\0\x18ftypcrx ",
    b"<?xml version='1.0'?>",
    b"[White Balance]\n",
    b"path,camera,r,g,b\n",
    b"{",
    b"\xef\xbb\xbf",
    b"\xff\xfe",
    b"\0" * 32,
)


def pick(rng: Rng, items: Sequence[Any]) -> Any:
    return items[int(rng.integers(len(items)))]


# Bytes ----------------------------------------------------------------------------------------------------------------


def flip_bits(data: bytes, rng: Rng) -> bytes:
    bad = bytearray(data or b"\0")
    for place in rng.integers(0, len(bad), int(2 ** rng.integers(0, 5))):
        bad[place] ^= 1 << int(rng.integers(8))
    return bytes(bad)


def flip_near_the_start(data: bytes, rng: Rng) -> bytes:
    """Most formats say there what follows."""
    head = min(len(data), 512)
    return flip_bits(data[:head], rng) + data[head:]


def truncate(data: bytes, rng: Rng) -> bytes:
    return data[: int(rng.integers(len(data) + 1))]


def splice(data: bytes, rng: Rng) -> bytes:
    """A stretch cut out, doubled, or put over another one."""
    first, last = sorted(int(place) for place in rng.integers(0, len(data) + 1, 2))
    piece, target = data[first:last], int(rng.integers(len(data) + 1))
    kind = rng.integers(4)
    if kind == 0:
        return data[:first] + data[last:]
    if kind == 1:
        return data[:last] + piece + data[last:]
    if kind == 2:
        return data[:target] + piece + data[target:]
    return data[:target] + piece + data[target + len(piece) :]


def fill(data: bytes, rng: Rng) -> bytes:
    """A run of zeros, ones or noise."""
    first, last = sorted(int(place) for place in rng.integers(0, len(data) + 1, 2))
    last = min(last, first + int(2 ** rng.integers(1, 12)))
    run = (bytes(last - first), b"\xff" * (last - first), rng.bytes(last - first))[rng.integers(3)]
    return data[:first] + run + data[last:]


def set_number(data: bytes, rng: Rng) -> bytes:
    """A field of 1, 2, 4 or 8 bytes, most often near one of the ends, as some length or count that is not so."""
    size, order = pick(rng, "BHIQ"), pick(rng, "<>")
    width = struct.calcsize(size)
    if len(data) < width:
        return data
    reach = min(len(data) - width, 400) if rng.random() < 0.7 else len(data) - width
    place = int(rng.integers(reach + 1))
    if rng.random() < 0.3:
        place = len(data) - width - place
    number = pick(rng, (*NUMBERS, len(data), len(data) - 1, len(data) // 2)) % 256**width
    return data[:place] + struct.pack(order + size, number) + data[place + width :]


def set_magic(data: bytes, rng: Rng) -> bytes:
    magic: bytes = pick(rng, MAGICS)
    place = 0 if rng.random() < 0.6 else int(rng.integers(len(data) + 1))
    return data[:place] + magic + data[place + len(magic) :]


def prolong(data: bytes, rng: Rng) -> bytes:
    extra = (bytes(int(rng.integers(1, 5000))), rng.bytes(int(rng.integers(1, 5000))), data)[rng.integers(3)]
    return data + extra if rng.random() < 0.7 else extra + data


BYTES: tuple[Mutation, ...] = (
    flip_bits, flip_bits, flip_near_the_start, truncate, splice, fill, set_number, set_number, set_magic, prolong,
)  # fmt: skip


# JSON -----------------------------------------------------------------------------------------------------------------

_LITERAL = "\ue000literal:"
LITERALS = (
    "Infinity",
    "-Infinity",
    "NaN",
    "1e999",
    "9" * 400,
    "9" * 5000,
    "-0",
    "1e-320",
    "[" * 20 + "]" * 20,
    "[" * 5000 + "]" * 5000,
    '{"a":' * 3000 + "1" + "}" * 3000,
    '"\\ud800"',
    '"\\u0000"',
)


def hostile_value(rng: Rng) -> Any:
    """Something that JSON can say and nobody expects."""
    kind = rng.integers(6)
    if kind == 0:
        return _LITERAL + pick(rng, LITERALS)
    if kind == 1:
        return pick(rng, NUMBERS) * pick(rng, (1, -1))
    if kind == 2:
        return pick(
            rng, ("", "x", "x" * 20000, "../../../etc/passwd", "/dev/zero", "\x1b[31m", "1", "nan", "a\nb", "é\u202e")
        )
    if kind == 3:
        return pick(rng, (None, True, False, [], {}, [[]], {"a": 1}, [None], [1, 2, 3], ["a"] * 1000, [0.0] * 1000))
    if kind == 4:
        return float(pick(rng, (0.5, -1.0, 1e300, -1e300, 1e-300, 1e38, 2.0**53)))
    return [pick(rng, NUMBERS) for _ in range(int(rng.integers(1, 5)))]


def change_value(tree: Any, rng: Rng) -> Any:
    """The same tree with one value replaced, removed, renamed or doubled, in place where it can be."""
    parent: Any = None
    key: Any = None
    place = tree
    while isinstance(place, dict | list) and place and (parent is None or rng.random() < 0.85):
        parent = place
        key = pick(rng, list(place)) if isinstance(place, dict) else int(rng.integers(len(place)))
        place = parent[key]
    if parent is None:
        return hostile_value(rng)
    kind = rng.random()
    if kind < 0.7:
        parent[key] = hostile_value(rng)
    elif kind < 0.85:
        del parent[key]
    elif isinstance(parent, dict):
        parent[pick(rng, ("", "x", "level_0", "name"))] = parent.pop(key)
    else:
        parent += parent[: int(rng.integers(1, 4))]
    return tree


def to_json(tree: Any) -> bytes:
    """JSON of a tree that `change_value` has changed."""
    text = json.dumps(tree, ensure_ascii=False)
    text = re.sub(rf'"{_LITERAL}(.*?)(?<!\\)"', lambda found: str(json.loads(f'"{found[1]}"')), text)
    return text.encode("utf-8", "surrogatepass")


def change_json(data: bytes, rng: Rng) -> bytes:
    tree = json.loads(data)
    for _ in range(int(rng.integers(1, 4))):
        tree = change_value(tree, rng)
    return to_json(tree)


# TIFF and DNG ---------------------------------------------------------------------------------------------------------

WANTED_TAGS = (256, 257, 258, 259, 262, 273, 277, 278, 279, 317, 322, 323, 324, 325, 330, 339, 34665, 34675, 301)


def tiff_entries(data: bytes) -> tuple[str, list[int], list[int]]:
    """Byte order, and where the directories and their entries stand, of a small TIFF that is whole."""
    order = "<" if data.startswith(b"II") else ">"
    waiting, directories, entries = [struct.unpack_from(order + "I", data, 4)[0]], list[int](), list[int]()
    while waiting and len(directories) < 20:
        place = waiting.pop(0)
        if not 8 <= place < len(data) - 6 or place in directories:
            continue
        directories.append(place)
        (count,) = struct.unpack_from(order + "H", data, place)
        for entry in range(place + 2, min(place + 2 + 12 * count, len(data) - 12), 12):
            entries.append(entry)
            code, _, _, value = struct.unpack_from(order + "HHII", data, entry)
            if code in (330, 34665):
                waiting.append(value)
        end = place + 2 + 12 * count
        waiting += struct.unpack_from(order + "I", data, end) if end + 4 <= len(data) else ()
    return order, directories, entries


def change_tags(data: bytes, rng: Rng) -> bytes:
    """Codes, types, counts and values of tags, and where directories point to."""
    order, directories, entries = tiff_entries(data)
    bad = bytearray(data)
    if not entries:
        return flip_bits(data, rng)
    for _ in range(int(rng.integers(1, 5))):
        entry = pick(rng, entries)
        places = [*directories, len(data) - 1, len(data), 8, 0, entry, int(rng.integers(len(data)))]
        number = pick(rng, (*NUMBERS, *places, len(data) // 2, 60, 1000, 10000, 100000)) % 2**32
        kind = rng.integers(7)
        if kind == 0:
            struct.pack_into(order + "H", bad, entry + 2, int(rng.integers(0, 20)))
        elif kind == 1:
            struct.pack_into(order + "I", bad, entry + 4, number)
        elif kind in (2, 3):
            struct.pack_into(order + "I", bad, entry + 8, number)
        elif kind == 4:
            struct.pack_into(order + "H", bad, entry, pick(rng, WANTED_TAGS))
        elif kind == 5:  # a value by its place, of few or many
            count = pick(rng, (1, 2, 3, 4, 9, 16, 100, len(data) // 4))
            struct.pack_into(
                order + "HII", bad, entry + 2, pick(rng, (3, 4, 5, 10, 12)), count, pick(rng, places) % 2**32
            )
        else:
            directory = pick(rng, directories)
            (count,) = struct.unpack_from(order + "H", data, directory)
            end = directory + 2 + 12 * count
            if rng.random() < 0.5 or end + 4 > len(data):
                struct.pack_into(order + "H", bad, directory, pick(rng, (0, 1, count + 1, 255, 65535)))
            else:
                struct.pack_into(order + "I", bad, end, pick(rng, places) % 2**32)
    return bytes(bad)


def share_tiles(data: bytes, rng: Rng) -> bytes:
    """A TIFF of any size whose tiles or strips all are the same few bytes."""
    width, height = (int(2 ** rng.integers(4, 15)) for _ in range(2))
    side = int(2 ** rng.integers(4, 9))
    count = min(-(-width // side) * -(-height // side), 50_000)
    samples = pick(rng, (1, 3, 3, 4, 60))
    code = pick(rng, (1, 8, 5, 32773, 50013, 34925, 50000, 7))
    packed = zlib.compress(bytes(2 * side * side * samples), 9) if code == 8 else rng.bytes(64)
    photometric = pick(rng, (1, 2, 32803, 34892))
    values = {256: width, 257: height, 258: 16, 259: code, 262: photometric, 277: samples, 322: side, 323: side}
    head, tail = struct.pack("<2sHIH", b"II", 42, 8, len(values) + 2), 8 + 2 + 12 * (len(values) + 2) + 4
    rows = [struct.pack("<HHII", tag, 4, 1, value) for tag, value in values.items()]
    rows.append(struct.pack("<HHII", 324, 4, count, tail if count > 1 else tail + 8))
    rows.append(struct.pack("<HHII", 325, 4, count, tail + 4 * count if count > 1 else len(packed)))
    place = tail + 8 * count
    body = struct.pack(f"<{count}I", *[place] * count) + struct.pack(f"<{count}I", *[len(packed)] * count)
    return head + b"".join(rows) + bytes(4) + body + packed


# NumPy ----------------------------------------------------------------------------------------------------------------

DESCRIPTIONS = (
    "'|V0'",
    "'|O'",
    "'<U1000000'",
    "'<f8'",
    "'<c16'",
    "'|b1'",
    "'>u2'",
    "'<m8'",
    "[('a', '<u2')]",
    "'x'",
    "3",
    "None",
    "'<f2'",
    "'|S0'",
    "'<f4,<f4'",
    "('<u2', (1000, 1000))",
    "('<u2', 3)",
)
SHAPES = (
    "()",
    "(3,)",
    "(10000, 10000, 1000000000)",
    "(0, 0, 3)",
    "(-1, -1, 3)",
    "(4, 5, 3)",
    "(10**9, 1, 3)",
    "(True, 4, 3)",
    "(2.5, 4, 3)",
    "None",
    "(1000000, 1, 3)",
    "(4, 4, 3, 1)",
    "(" + "1," * 100 + ")",
    "(9223372036854775807, 2, 3)",
    "'x'",
)


def change_npy(data: bytes, rng: Rng) -> bytes:
    """The header of an array: its text, its length and its version."""
    found = re.match(rb"\x93NUMPY..(..)(\{.*?\})\s*\n", data, re.DOTALL)
    if found is None:
        return flip_bits(data, rng)
    table = {key: repr(value) for key, value in ast.literal_eval(found[2].decode()).items()}
    for _ in range(int(rng.integers(1, 3))):
        kind = rng.integers(5)
        if kind == 0:
            table["descr"] = pick(rng, DESCRIPTIONS)
        elif kind == 1:
            table["shape"] = pick(rng, SHAPES)
        elif kind == 2:
            table["fortran_order"] = pick(rng, ("True", "1", "'yes'", "None", "[" * 90 + "]" * 90))
        elif kind == 3:
            table.pop(pick(rng, list(table)), None)
        else:
            table[pick(rng, ("x", "descr", "shape"))] = pick(
                rng, ("{" * 300, "(" * 300, "'", "1" * 5000, "-" * 3000 + "1", "\0", "lambda: 0")
            )
    text = ("{" + ", ".join(f"'{key}': {value}" for key, value in table.items()) + "}").encode("latin1")
    version = pick(rng, ((1, 0), (1, 0), (1, 0), (2, 0), (3, 0), (9, 9), (1, 1)))
    length = len(text) + 1
    if rng.random() < 0.15:
        length = pick(rng, (0, 1, 65535, length - 1, length + 1000, 2**31))
    layout, most = ("<H", 2**16) if version[0] == 1 else ("<I", 2**32)
    return b"\x93NUMPY" + bytes(version) + struct.pack(layout, length % most) + text + b"\n" + data[found.end() :]


# PNG ------------------------------------------------------------------------------------------------------------------


def png_chunks(data: bytes) -> list[tuple[bytes, bytes]]:
    chunks, place = [], 8
    while place + 12 <= len(data):
        (length,) = struct.unpack_from(">I", data, place)
        chunks.append((data[place + 4 : place + 8], data[place + 8 : place + 8 + length]))
        place += 12 + length
    return chunks


def change_png(data: bytes, rng: Rng) -> bytes:
    """Chunks changed, doubled, moved or made up, all with a right checksum."""
    chunks = png_chunks(data)
    for _ in range(int(rng.integers(1, 4))):
        place = int(rng.integers(len(chunks)))
        name, content = chunks[place]
        kind = rng.integers(7)
        if kind == 0:
            header = bytearray(chunks[0][1].ljust(13, b"\0"))
            where = int(rng.integers(13))
            if where < 8:
                struct.pack_into(">I", header, where // 4 * 4, pick(rng, NUMBERS) % 2**32)
            else:
                header[where] = pick(rng, (0, 1, 2, 3, 4, 6, 8, 16, 255))
            chunks[0] = (b"IHDR", bytes(header))
        elif kind == 1:
            chunks[place] = (name, pick(rng, BYTES)(content, rng))
        elif kind == 2:
            chunks.insert(place, chunks[place])
        elif kind == 3:
            chunks.append(chunks.pop(place))
        elif kind == 4:
            made = pick(rng, ("iCCP", "gAMA", "cICP", "sRGB", "cHRM", "tRNS", "PLTE", "zTXt", "eXIf", "acTL", "fdAT"))
            filling = pick(
                rng, (b"", rng.bytes(4), rng.bytes(64), b"a\0\0" + zlib.compress(bytes(4_000_000)), bytes(768))
            )
            chunks.insert(min(place, 1), (made.encode(), filling))
        elif kind == 5:
            chunks[place:place] = [(b"tEXt", b"a\0b")] * int(2 ** rng.integers(1, 12))
        else:
            raw = zlib.decompress(b"".join(part for kind_, part in png_chunks(data) if kind_ == b"IDAT"))
            packed = zlib.compress(
                pick(rng, (raw[: len(raw) // 2], raw * 3, flip_bits(raw, rng), bytes(4_000_000), b""))
            )
            chunks = [chunk for chunk in chunks if chunk[0] != b"IDAT"]
            chunks.insert(min(1, len(chunks)), (b"IDAT", packed))
        if not chunks:
            break
    return data[:8] + b"".join(
        struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body)) for name, body in chunks
    )


# Zip ------------------------------------------------------------------------------------------------------------------


def pack_zip(members: Sequence[tuple[str, bytes]], compression: int = zipfile.ZIP_DEFLATED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a name may be there twice
        for name, content in members:
            info = zipfile.ZipInfo(name)
            info.compress_type = compression
            archive.writestr(info, content)
    return buffer.getvalue()


def unpack_zip(data: bytes) -> list[tuple[str, bytes]]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return [(info.filename, archive.read(info)) for info in archive.infolist()]


def change_zip(data: bytes, rng: Rng) -> bytes:
    """The same members in an archive that lies: sizes, flags, methods, spare and doubled members, bombs."""
    members = unpack_zip(data)
    kind = rng.integers(7)
    compression = pick(rng, (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA))
    if kind == 0:
        size = int(2 ** rng.integers(0, 16))
        members += [(f"spare{i}", bytes(size)) for i in range(int(2 ** rng.integers(0, 8)))]
    elif kind == 1:
        name, _ = pick(rng, members)
        members.insert(int(rng.integers(len(members) + 1)), (name, b"" if rng.random() < 0.5 else rng.bytes(100)))
    elif kind == 2:
        members.pop(int(rng.integers(len(members))))
    elif kind == 3:
        place = int(rng.integers(len(members)))
        name, content = members[place]
        members[place] = (
            pick(rng, ("", "/etc/passwd", "../x", name + "/", name.upper(), "a" * 5000, name + "\0")),
            content,
        )
    elif kind == 4:  # a member of zeros in the place of another: small packed, large unpacked
        place = int(rng.integers(len(members)))
        members[place] = (members[place][0], bytes(int(2 ** rng.integers(10, 23))))
        if rng.random() < 0.1:
            members[place], compression = (members[place][0], bytes(2**27)), zipfile.ZIP_DEFLATED
    elif kind == 5:
        place = int(rng.integers(len(members)))
        members[place] = (members[place][0], pick(rng, BYTES)(members[place][1], rng))
    packed = pack_zip(members, compression)
    return packed if rng.random() < 0.5 else lie_in_zip(packed, rng)


def lie_in_zip(packed: bytes, rng: Rng) -> bytes:
    """Other numbers in the directory of an archive, or in the headers of its members, or in both alike."""
    bad = bytearray(packed)
    central = [found.start() for found in re.finditer(b"PK\x01\x02", packed)]
    local = [found.start() for found in re.finditer(b"PK\x03\x04", packed)]
    for _ in range(int(rng.integers(1, 4))):
        offset, width = pick(rng, ((6, 2), (8, 2), (14, 4), (18, 4), (22, 4), (22, 4), (22, 4), (26, 2), (28, 2)))
        number = pick(rng, (*NUMBERS, 12, 14, 99, len(packed))) % 256**width
        layout = "<H" if width == 2 else "<I"
        number = pick(rng, (0, 1, 8, 9, 12, 14, 0x800, 0x41)) if offset in (6, 8) else number
        index = int(rng.integers(max(1, len(central))))
        if central and rng.random() < 0.8:
            place = central[min(index, len(central) - 1)] + offset + 2
            if place + width <= len(bad):
                struct.pack_into(layout, bad, place, number)
        if local and rng.random() < 0.5:
            place = local[min(index, len(local) - 1)] + offset
            if place + width <= len(bad):
                struct.pack_into(layout, bad, place, number)
    return bytes(bad)


def in_member(mutation: Mutation, ending: str = "") -> Mutation:
    """The same mutation of one member of a zip file, whose checksum is made again."""

    def change(data: bytes, rng: Rng) -> bytes:
        members = unpack_zip(data)
        places = [i for i, (name, _) in enumerate(members) if name.endswith(ending)]
        place = pick(rng, places)
        members[place] = (members[place][0], mutation(members[place][1], rng))
        return pack_zip(members)

    return change


# XML and key files ----------------------------------------------------------------------------------------------------


def change_xml(data: bytes, rng: Rng) -> bytes:
    """Elements and attributes of an XMP packet nested, doubled, removed or given other values."""
    kind = rng.integers(9)
    text = data.decode("utf-8", "replace")
    count = int(2 ** rng.integers(1, 15))
    ends = [found.start() for found in re.finditer("</rdf:Description>|</rdf:RDF>", text)] or [len(text)]
    place = pick(rng, ends)
    if kind == 0:
        made = "".join(f'<a{i}:b xmlns:a{i}="http://x/{i}">' for i in range(count)) + "".join(
            f"</a{i}:b>" for i in reversed(range(count))
        )
    elif kind == 1:
        made = "<rdf:Bag>" * count + "</rdf:Bag>" * count
    elif kind == 2:
        made = '<rdf:Description rdf:about=""/>' * count
    elif kind == 3:
        made = "<rdf:Description " + " ".join(f'xmlns:n{i}="u{i}" n{i}:a="b"' for i in range(count)) + "/>"
    elif kind == 4:
        values = list(re.finditer(r'="([^"]*)"', text))
        found = pick(rng, values)
        bomb = "gz99" + base64.b64encode(zlib.compress(bytes(int(2 ** rng.integers(10, 25))), 9)).decode()
        value = pick(
            rng,
            (
                "",
                "-1",
                "1e999",
                "nan",
                "9" * 5000,
                "999999999999",
                "x" * 100000,
                bomb,
                "gz01",
                "\u202e",
                "&#0;",
                "&amp;",
                "<",
                "00" * 50000,
            ),
        )
        return f"{text[: found.start(1)]}{value}{text[found.end(1) :]}".encode()
    elif kind == 5:
        starts = ('<!DOCTYPE x [<!ENTITY a "b">]>', f"<?x {'y' * 10000}?>", "<!--" + "-" * 500, "\ufeff", " " * 10000)
        return f"{pick(rng, starts)}{text}".encode()
    elif kind == 6:
        return text.encode(pick(rng, ("utf-16", "utf-32", "utf-16-le", "utf-7")))
    elif kind == 7:
        tags = list(re.finditer(r"<[^>]*>", text))
        first, second = pick(rng, tags), pick(rng, tags)
        return f"{text[: first.start()]}{second[0]}{text[first.end() :]}".encode()
    else:
        made = pick(
            rng,
            (
                "<![CDATA[" + "x" * 1000 + "]]>",
                "text" * 1000,
                "<rdf:li/>" * count,
                "&a;",
                "<x:y/>",
                "<darktable:history><rdf:Seq/></darktable:history>" * 3,
            ),
        )
    return (text[:place] + made + text[place:]).encode()


def change_lines(data: bytes, rng: Rng) -> bytes:
    """Lines of a text doubled, moved, emptied, or very many or long."""
    lines = data.split(b"\n")
    for _ in range(int(rng.integers(1, 4))):
        place = int(rng.integers(len(lines)))
        kind = rng.integers(7)
        if kind == 0:
            lines.insert(int(rng.integers(len(lines) + 1)), lines[place])
        elif kind == 1:
            lines.append(lines.pop(place))
        elif kind == 2:
            lines[place] = lines[place] * int(2 ** rng.integers(1, 12))
        elif kind == 3:
            lines[place:place] = [lines[place]] * int(2 ** rng.integers(1, 12))
        elif kind == 4:
            lines[place] = pick(
                rng, (b"", b"\0", b"=", b"[", b"[]", b"[White Balance]", b"\xff\xfe", b"\r", b'"', b",,,,,,,", b"#")
            )
        elif kind == 5:
            lines[place] = re.sub(
                rb"[-0-9.]+",
                lambda _: pick(rng, (b"nan", b"inf", b"1e999", b"-1", b"9" * 5000, b"0", b"", b"\xd9\xa3")),
                lines[place],
                count=int(rng.integers(1, 4)),
            )
        else:
            lines[place] = pick(rng, BYTES)(lines[place], rng)
    return b"\n".join(lines) if rng.random() < 0.9 else b"\r".join(lines)


CELLS = (
    "",
    "nan",
    "inf",
    "-inf",
    "1e999",
    "-1",
    "0",
    "9" * 5000,
    "9" * 30,
    "x" * 100000,
    "/etc/passwd",
    "../../x.npy",
    "/dev/zero",
    "a\0b",
    "\ud800",
    "\u202e",
    "\x1b[31m",
    "٣",
    "1_0",
    " 1 ",
    "0x10",
    "²",
    "a" * 300 + ".npy",
    "~",
    ".",
    "..",
    "0.npy/",
    "pipe",
)


def change_cells(data: bytes, rng: Rng) -> bytes:
    """Cells and columns of a table."""
    rows = [line.split(",") for line in data.decode().splitlines()]
    for _ in range(int(rng.integers(1, 5))):
        row = pick(rng, rows)
        column = int(rng.integers(len(row)))
        kind = rng.integers(6)
        if kind < 3:
            row[column] = pick(rng, CELLS)
        elif kind == 3:
            row[column] = pick(
                rng, ('"', '"a\n\nb"', "'", ";", "path", "camera", "black", "white", "fold", "mask", "R", "g ")
            )
        elif kind == 4:
            row.insert(column, row[column])
        elif len(row) > 1:
            row.pop(column)
    text = "\n".join(",".join(row) for row in rows)
    encoding = pick(rng, ("utf-8",) * 8 + ("utf-16", "latin-1", "utf-8-sig"))
    return text.encode(encoding, "surrogatepass" if encoding != "latin-1" else "replace")
