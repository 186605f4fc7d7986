"""A reader of manifests of its own, by docs/reference/manifest.md alone."""

import pathlib
import struct

SECTIONS = {1: ("facts", "entries", "sizes", "restarts", "names"),
            2: ("facts", "entries", "sizes", "checksums", "restarts", "names"),
            3: ("facts", "entries", "sizes", "checksums", "restarts", "names", "forms")}
HEADER = 256
TABLE_AT = 80
ROW = struct.Struct("<QQII")


def _crc32c_table():
    table = []
    for value in range(256):
        for _ in range(8):
            value = (value >> 1) ^ (0x82F63B78 if value & 1 else 0)
        table.append(value)
    return table


_TABLE = _crc32c_table()


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = (crc >> 8) ^ _TABLE[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


def varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 0x7F) << shift
        shift += 7
        at += 1
        if data[at - 1] < 0x80:
            return value, at


class ManifestFile:
    """names, sizes and checksums (None where there are none) of the objects; samples as (object, offset, length, crc32c)."""

    def __init__(self, path):
        self.data = data = pathlib.Path(path).read_bytes()
        assert data[:8] == b"PENSTKMF"
        self.version, sections = struct.unpack_from("<II", data, 16)
        kinds = SECTIONS[self.version]
        assert sections == len(kinds) and struct.unpack_from("<Q", data, 24)[0] == len(data)
        self.rows = [ROW.unpack_from(data, TABLE_AT + ROW.size * i) for i in range(sections)]
        parts = {}
        for number, (kind, (offset, length, row_kind, crc)) in enumerate(zip(kinds, self.rows)):
            assert row_kind == number
            parts[kind] = data[offset:offset + length]
            assert crc32c(parts[kind]) == crc, kind
        self.flags = struct.unpack_from("<I", data, 64)[0]
        self.samples = [(number, offset, length, crc)
                        for offset, length, number, _, crc, _ in struct.iter_unpack("<QQIIII", parts["entries"])]
        self.lengths = [length for _, _, length, _ in self.samples]  # of the samples when their forms are undone
        if "forms" in parts:
            extents = list(struct.iter_unpack("<QQ", parts["forms"][-16 * len(self.samples):]))
            entries = struct.iter_unpack("<QQIIII", parts["entries"])
            self.lengths = [extent[1] if entry[5] else entry[1] for entry, extent in zip(entries, extents)]
        self.sizes = [size for size, in struct.iter_unpack("<Q", parts["sizes"])]
        self.checksums = [crc for crc, in struct.iter_unpack("<I", parts["checksums"])] if self.flags & 4 else None
        self.names, at = [], 0
        for _ in self.sizes:
            shared, at = varint(parts["names"], at)
            more, at = varint(parts["names"], at)
            before = self.names[-1].encode() if self.names else b""
            self.names.append((before[:shared] + parts["names"][at:at + more]).decode())
            at += more

    def payloads(self, name):
        """(offset, length) of the samples in the object of that name, by offset."""
        number = self.names.index(name)
        return sorted((offset, length) for owner, offset, length, _ in self.samples if owner == number)

    def as_version_1(self):
        """The bytes of a manifest that has no checksums of objects."""
        rows = [(offset, length, kind) for offset, length, kind, _ in self.rows if SECTIONS[2][kind] != "checksums"]
        contents = [self.data[offset:offset + length] for offset, length, _ in rows]
        body, table = b"", b""
        for number, content in enumerate(contents):
            body += bytes(-len(body) % 64)
            table += ROW.pack(HEADER + len(body), len(content), number, crc32c(content))
            body += content
        header = bytearray(self.data[:TABLE_AT] + table + bytes(HEADER - TABLE_AT - len(table)))
        struct.pack_into("<IIQ", header, 16, 1, len(rows), HEADER + len(body))
        struct.pack_into("<I", header, 64, self.flags & ~4)
        struct.pack_into("<I", header, 12, 0)
        struct.pack_into("<I", header, 12, crc32c(header))
        return bytes(header) + body
