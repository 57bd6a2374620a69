"""Images in a `.zip` or `.tar`, in one folder per class, which are read without unpacking the archive."""

import os
import tarfile
import zipfile
import zlib
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from charax.data._errors import DataError
from charax.data._limits import check_limit, check_passed
from charax.data.files._archives import check_directory

_LOCAL_LENGTHS, _LOCAL_HEADER = 26, 30
"""Where the header of a member of a ZIP archive has the lengths of what follows it, and how long it is."""


class ArchivedImage(NamedTuple):
    """An image in an archive, and where it is there. Other processes can read it, too."""

    archive: Path
    name: str
    offset: int
    """Where its header is in a `.zip`, and its bytes in a `.tar`."""
    stored: int
    """Bytes in the archive."""
    size: int
    """Bytes of the image."""
    method: int | None
    """How it is compressed in a `.zip`; None in a `.tar`."""

    def __str__(self) -> str:
        return f"{self.archive}: {self.name}"

    @property
    def suffix(self) -> str:
        """How the name ends."""
        return PurePosixPath(self.name).suffix

    def read_bytes(self) -> bytes:
        """The bytes of the image."""
        with self.archive.open("rb") as file:
            file.seek(self.offset)
            if self.method is not None:
                file.seek(_LOCAL_LENGTHS, os.SEEK_CUR)
                lengths = file.read(4)
                name, extra = int.from_bytes(lengths[:2], "little"), int.from_bytes(lengths[2:], "little")
                file.seek(self.offset + _LOCAL_HEADER + name + extra)
            content = file.read(self.stored)
        # Never more than the archive says, whatever is packed in it.
        return (
            zlib.decompressobj(-15).decompress(content, self.size) if self.method == zipfile.ZIP_DEFLATED else content
        )


def list_images(path: Path, suffixes: tuple[str, ...]) -> list[ArchivedImage]:
    """Find the images of an archive, in the order of their names."""
    try:
        found = _list_zip(path) if zipfile.is_zipfile(path) else _list_tar(path)
    except DataError:
        raise
    except Exception as error:  # a damaged archive makes its readers fail in any way they can
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise DataError(f"{path} cannot be read as an archive ({reason}): pack it again") from None
    images = sorted((each for each in found if _is_visible(each.name, suffixes)), key=lambda each: each.name)
    if not images:
        raise DataError(f"{path} has no images in it ({', '.join(suffixes)})")
    for image in images:
        check_limit("bytes", image.size, image, "unpacks to")
    return images


def relative_names(images: list[ArchivedImage]) -> list[str]:
    """The names without the folders that all of them are in, but with that of the class."""
    parts = [PurePosixPath(image.name).parts for image in images]
    depth = 0
    while all(len(each) > depth + 2 and each[depth] == parts[0][depth] for each in parts):
        depth += 1
    return ["/".join(each[depth:]) for each in parts]


def _list_zip(path: Path) -> list[ArchivedImage]:
    check_directory(path, "files")
    with zipfile.ZipFile(path) as archive:
        members = [member for member in archive.infolist() if not member.is_dir()]
    for member in members:
        if member.flag_bits & 1 or member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise DataError(f"{path}: {member.filename!r} is encrypted or packed in a rare way: pack it with deflate")
    return [
        ArchivedImage(path, each.filename, each.header_offset, each.compress_size, each.file_size, each.compress_type)
        for each in members
    ]


def _list_tar(path: Path) -> list[ArchivedImage]:
    found = []
    try:
        with tarfile.open(path, "r:") as archive:
            for member in archive:
                if member.isfile():
                    found.append(ArchivedImage(path, member.name, member.offset_data, member.size, member.size, None))
                check_passed("files", len(found), path)
    except tarfile.ReadError:
        raise DataError(
            f"{path} is compressed as a whole, or is no archive, so its images cannot be read one by one: pack them as "
            ".zip or as plain .tar"
        ) from None
    return found


def _is_visible(name: str, suffixes: tuple[str, ...]) -> bool:
    path = PurePosixPath(name)
    return path.suffix.lower() in suffixes and not any(part.startswith((".", "__MACOSX")) for part in path.parts)
