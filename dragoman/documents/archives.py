"""Documents that are zips of XML: some of the files in them are rewritten, all others are copied as
they lie there, compressed. Knows the zip and limits on what it unpacks to; no format.

A zip may lie about itself, and may unpack to far more than it is: what is read is counted while it
is inflated, and nothing is inflated that is not read.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable
from io import BytesIO
from zipfile import ZIP_DEFLATED, ZIP_STORED, BadZipFile, ZipFile, ZipInfo

MAX_UNPACKED = 50 * 2**20  # bytes of all files that are read
MAX_FILES = 5_000  # in one document: parts, and a file for each picture

Rewriter = Callable[[bytes], bytes]  # of one file in a document
_BUFFER = 2**16
_OLE = bytes.fromhex("d0cf11e0a1b11ae1")  # of older kinds, and of new ones under a password
_LOCAL = struct.Struct("<4s5H3I2H")
_CENTRAL = struct.Struct("<4s4B4H3I5H2I")
_END = struct.Struct("<4s4H2IH")
_ENCRYPTED = 0x1
_SIZES_FOLLOW = 0x8
_UTF8_NAME = 0x800


class Archive:
    """The files of a document, of which some are to be rewritten."""

    def __init__(self, data: bytes) -> None:
        if data.startswith(_OLE):
            raise ValueError("it has a password or is of the kind before 2007")
        self._data = data
        # It stays open: each time, its whole directory is read.
        self._zip = ZipFile(BytesIO(data))
        self._items = self._zip.infolist()
        self.names = {item.filename for item in self._items}
        self._left = MAX_UNPACKED
        self._counted: set[str] = set()  # files whose size has been taken off
        self._check()

    def _check(self) -> None:
        count = len(self._items)
        if count > MAX_FILES:
            raise ValueError(f"it has {count:,} files in it, more than {MAX_FILES:,}")
        if len(self.names) < count:
            raise ValueError("it has two files of the same name in it")
        for item in self._items:
            if item.flag_bits & _ENCRYPTED:
                raise ValueError("it has a password")
            if item.compress_type not in (ZIP_STORED, ZIP_DEFLATED):
                # Others are inflated by whole blocks, whatever size they claim.
                raise ValueError("it is compressed as office programs never do")

    def read(self, name: str) -> bytes:
        """Return a file; in blocks, so that one that is longer than it claims is never unpacked
        whole."""
        if name not in self.names:
            raise ValueError(f"it has no {name}")
        left = MAX_UNPACKED if name in self._counted else self._left
        content = bytearray()
        with self._zip.open(name) as file:
            while block := file.read(_BUFFER):
                content += block
                if len(content) > left:
                    raise ValueError(f"it unpacks to more than {MAX_UNPACKED:,} bytes")
        if name not in self._counted:
            self._left -= len(content)
            self._counted.add(name)
        return bytes(content)

    def rewritten(self, rewriter_of: Callable[[str], Rewriter | None]) -> bytes:
        """Return the document with some files rewritten; the very same bytes if none changes."""
        changed: dict[str, bytes] = {}
        for item in self._items:
            rewriter = rewriter_of(item.filename)
            if rewriter is None:
                continue
            content = self.read(item.filename)
            new = rewriter(content)
            if new != content:
                changed[item.filename] = new
        return self._packed(changed) if changed else self._data

    def _packed(self, changed: dict[str, bytes]) -> bytes:
        out = BytesIO()
        directory = BytesIO()
        for item in self._items:
            offset = out.tell()
            extra, packed = self._packed_file(item)
            if item.filename in changed:
                packed = _deflated(item, changed[item.filename])
            name = _encoded(item)
            out.write(_local_header(item, name, extra, len(packed)))
            out.write(name + extra + packed)
            directory.write(_central_header(item, name, len(packed), offset))
        start = out.tell()
        entries = directory.getvalue()
        comment = self._zip.comment
        count = len(self._items)
        end = _END.pack(b"PK\5\6", 0, 0, count, count, len(entries), start, len(comment))
        return out.getvalue() + entries + end + comment

    def _packed_file(self, item: ZipInfo) -> tuple[bytes, bytes]:
        """Return the extra fields of a file and its bytes as they lie in the zip."""
        start = item.header_offset
        header = self._data[start : start + _LOCAL.size]
        if len(header) < _LOCAL.size or not header.startswith(b"PK\3\4"):
            raise BadZipFile("a file in it does not begin where it should")
        name_size, extra_size = _LOCAL.unpack(header)[-2:]
        extra_start = start + _LOCAL.size + name_size
        content_start = extra_start + extra_size
        content = self._data[content_start : content_start + item.compress_size]
        if len(content) < item.compress_size:
            raise BadZipFile("a file in it is cut off")
        return _without_sizes(self._data[extra_start:content_start]), content


def _deflated(item: ZipInfo, content: bytes) -> bytes:
    """Compress a file as it was, and note its new size."""
    item.CRC = zlib.crc32(content)
    item.file_size = len(content)
    if item.compress_type == ZIP_STORED:
        return content
    compressor = zlib.compressobj(wbits=-15)
    return compressor.compress(content) + compressor.flush()


def _local_header(item: ZipInfo, name: bytes, extra: bytes, size: int) -> bytes:
    return _LOCAL.pack(
        b"PK\3\4",
        item.extract_version,
        item.flag_bits & ~_SIZES_FOLLOW,
        item.compress_type,
        *_dos_time(item),
        item.CRC,
        size,
        item.file_size,
        len(name),
        len(extra),
    )


def _central_header(item: ZipInfo, name: bytes, size: int, offset: int) -> bytes:
    extra = _without_sizes(item.extra)
    header = _CENTRAL.pack(
        b"PK\1\2",
        item.create_version,
        item.create_system,
        item.extract_version,
        item.reserved,
        item.flag_bits & ~_SIZES_FOLLOW,
        item.compress_type,
        *_dos_time(item),
        item.CRC,
        size,
        item.file_size,
        len(name),
        len(extra),
        len(item.comment),
        0,
        item.internal_attr,
        item.external_attr,
        offset,
    )
    return header + name + extra + item.comment


def _encoded(item: ZipInfo) -> bytes:
    return item.orig_filename.encode("utf-8" if item.flag_bits & _UTF8_NAME else "cp437")


def _dos_time(item: ZipInfo) -> tuple[int, int]:
    year, month, day, hour, minute, second = item.date_time
    return hour << 11 | minute << 5 | second // 2, (year - 1980) << 9 | month << 5 | day


def _without_sizes(extra: bytes) -> bytes:
    """Return extra fields without that of 64-bit sizes, which no document here needs."""
    kept = bytearray()
    start = 0
    while len(extra) - start >= 4:
        kind, size = struct.unpack_from("<2H", extra, start)
        end = start + 4 + size
        if kind != 1:
            kept += extra[start:end]
        start = end
    return bytes(kept)
