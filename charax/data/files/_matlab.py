"""MATLAB files, whose arrays may be compressed."""

import math
import struct
import zlib
from pathlib import Path

import numpy as np

from charax.data._errors import DataError
from charax.data._limits import check_limit, check_passed, check_regular

_HEADER, _COMPRESSED = 128, 15
_CHUNK = 1 << 20


def read_matlab(path: Path, names: tuple[str, ...] | None = None) -> dict[str, np.ndarray]:
    """Read the named arrays of a MATLAB file, or all of them; a name that the file does not have is left out."""
    from scipy.io import loadmat, whosmat  # slow to import

    check_regular(path)
    check_limit("bytes", path.stat().st_size, path)
    try:
        for name, shape, _ in whosmat(path):
            check_limit("bytes", math.prod(shape), f"{path}: {name} of shape {shape}", "has at least")
        _check_unpacked(path)
        stored = loadmat(path, variable_names=names)
    except DataError:
        raise
    except Exception as error:  # a damaged file makes the reader fail in any way it can
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise DataError(f"{path} is not a MATLAB file that can be read ({reason}): save it as an .npz") from None
    return {name: np.asarray(value) for name, value in stored.items() if not name.startswith("__")}


def _check_unpacked(path: Path) -> None:
    """Unpack what is compressed, a little at a time, and count: the sizes that a file declares need not be true."""
    total = 0
    with path.open("rb") as file:
        order = {b"IM": "<", b"MI": ">"}.get(file.read(_HEADER)[126:])
        while order is not None and len(tag := file.read(8)) == 8:
            kind, size = struct.unpack(f"{order}II", tag)
            end = file.tell() + size
            if kind == _COMPRESSED:
                unpack = zlib.decompressobj()
                packed = file.read(min(size, _CHUNK))
                while packed and not unpack.eof:
                    total += len(unpack.decompress(packed, _CHUNK))
                    check_passed("bytes", total, path, "unpacks to")
                    packed = unpack.unconsumed_tail or file.read(min(end - file.tell(), _CHUNK))
            file.seek(end)
