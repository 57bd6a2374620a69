"""What an archive says about its members, checked before any of them is unpacked."""

import struct
import zipfile
from pathlib import Path

from charax.data._errors import DataError
from charax.data._limits import check_limit, check_passed

_END, _LOCATOR, _LONG_END = b"PK\x05\x06", b"PK\x06\x07", b"PK\x06\x06"
_MAX_COMMENT = 1 << 16
_BYTES_PER_MEMBER = 256
"""Of the directory of an archive: 46, the name of the member, and more."""


def check_directory(path: Path, limit: str = "members") -> None:
    """Refuse a zip archive whose list of members is too long to be read, by the limit of this name.

    `zipfile` makes an object of every member as soon as it opens an archive.
    """
    with path.open("rb") as file:
        size = file.seek(0, 2)
        start = max(0, size - _MAX_COMMENT - 100)
        file.seek(start)
        tail = file.read()
        end = tail.rfind(_END)
        if end < 0 or len(tail) < end + 22:
            return  # not an archive, which is for `zipfile` to say
        (directory,) = struct.unpack_from("<I", tail, end + 12)
        if directory == 0xFFFFFFFF and end >= 20 and tail.startswith(_LOCATOR, end - 20):
            (at,) = struct.unpack_from("<Q", tail, end - 12)
            if at + 56 <= size:
                file.seek(at)
                record = file.read(56)
                if record.startswith(_LONG_END):
                    (directory,) = struct.unpack_from("<Q", record, 40)
    check_passed(limit, directory // _BYTES_PER_MEMBER, path)


def check_members(path: Path, members: list[zipfile.ZipInfo]) -> None:
    """Refuse members that unpack to more than the limits. `zipfile` never unpacks more than a member declares."""
    check_limit("members", len(members), path)
    check_limit("bytes", sum(member.file_size for member in members), path, "unpacks to")
    for member in members:
        if member.flag_bits & 1:
            raise DataError(f"{path} has the encrypted member {member.filename!r}: save it without a password")


def bound_unpacked(path: Path) -> int:
    """The most that a file compressed by gzip can unpack to: deflate shortens by 1032 at best."""
    return 1032 * path.stat().st_size
