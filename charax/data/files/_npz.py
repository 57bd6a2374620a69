"""NumPy archives: `x`, and `y` where there are classes; or an array per column."""

import math
import struct
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Shaped

from charax.data._errors import DataError
from charax.data._limits import LIMITS, check_limit
from charax.data._raw import RawDataset, RawSplit, check_labels, index_classes
from charax.data._stored import MappedRows
from charax.data.files._archives import check_directory, check_members
from charax.data.files._kind import FileKind, InputSpec, NamedInputs, TableOptions, has_suffix
from charax.data.files._numbers import parse_numbers
from charax.data.files._series import RawSeries, SeriesRequest
from charax.data.files._table import Column, Table, TableRequest

_LOCAL_LENGTHS, _LOCAL_HEADER = 26, 30
"""Where the header of a member of a ZIP archive has the lengths of what follows it, and how long it is."""

_LOOKED_AT = 2**24
"""Bytes of images on disk that are looked at to find out how bright a pixel can be."""


def read_arrays(path: Path, names: tuple[str, ...] | None = None) -> dict[str, np.ndarray]:
    """Read the named arrays of an archive, or all of them."""
    check_directory(path)
    if not zipfile.is_zipfile(path):
        raise DataError(f"{path} is not an .npz archive, or is truncated: save it again with numpy.savez")
    try:
        with zipfile.ZipFile(path) as archive:
            files = [name.removesuffix(".npy") for name in archive.namelist() if name.endswith(".npy")]
            names = tuple(files) if names is None else names
            missing = [name for name in names if name not in files]
            if missing:
                raise DataError(f"{path} has no array {missing[0]!r}; it has {', '.join(files) or 'none'}")
            _check_arrays(path, archive, names)
            return {name: _read_array(archive, name) for name in names}
    except DataError:
        raise
    except Exception as error:  # a damaged archive makes its readers fail in any way they can
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise DataError(f"{path} is not a valid .npz archive ({reason}): save it again with numpy.savez") from None


def _check_arrays(path: Path, archive: zipfile.ZipFile, names: Iterable[str]) -> None:
    """Compare what the headers of the arrays promise with what the archive holds, before anything is unpacked."""
    members = [archive.getinfo(f"{name}.npy") for name in names]
    check_members(path, members)
    for member in members:
        name = member.filename.removesuffix(".npy")
        with archive.open(member) as file:
            shape, dtype = _read_header(file)
            rest = member.file_size - file.tell()
        # A pickle can run any code when it is loaded, so arrays of objects are refused.
        if dtype.hasobject:
            raise DataError(f"{path} contains pickled objects, which are never loaded: save plain arrays")
        promised = math.prod(shape) * dtype.itemsize
        check_limit("bytes", promised, f"{path}: {name} of shape {shape}")
        if promised != rest or min(shape, default=0) < 0:
            raise DataError(
                f"{path}: {name} of shape {shape} should have {promised:,} bytes, and has {rest:,}: save it again with "
                "numpy.savez"
            )


def _read_header(file: Any) -> tuple[tuple[int, ...], np.dtype]:
    readers = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
    version = np.lib.format.read_magic(file)
    if version not in readers:
        raise ValueError(f"an array of the format {version[0]}.{version[1]}")
    shape, _, dtype = readers[version](file)
    return shape, dtype


def _read_array(archive: zipfile.ZipFile, name: str) -> np.ndarray:
    with archive.open(f"{name}.npy") as file:
        array = np.lib.format.read_array(file, allow_pickle=False)
        if file.read(1):  # also verifies the checksum of the member
            raise ValueError(f"{name} has more bytes than it should")
    return array


def _read_labelled(path: Path, options: TableOptions) -> RawDataset:
    """`y` has class indices from 0 without gaps, or names."""
    x, y = read_pair(path)
    return label_samples(path, check_inputs(path, x), y)


def read_pair(path: Path) -> tuple[np.ndarray | MappedRows, np.ndarray]:
    """Read `x` and `y`; `x` stays on disk if it is stored as it is and too large for memory."""
    stored = map_member(path, "x")
    if stored is not None:
        return stored, read_arrays(path, ("y",))["y"]
    arrays = read_arrays(path, ("x", "y"))
    return arrays["x"], arrays["y"]


def label_samples(path: Path, x: np.ndarray | MappedRows, y: np.ndarray) -> RawDataset:
    """Samples, in memory or on disk, with their labels."""
    if y.shape != x.shape[:1]:
        raise DataError(f"{path} has y of shape {y.shape} where x has {len(x)} samples: give one label per sample")
    if y.dtype.kind == "U":
        targets, classes = index_classes(y.tolist())
    elif y.dtype.kind in "biu":
        targets, classes = _index_integers(path, y.astype(np.int64))
    else:
        raise DataError(f"{path} has y of type {y.dtype}: labels are integers or strings")
    return RawDataset(path, RawSplit(x, targets), classes, max_value=_max_value(x))


def _index_integers(path: Path, y: np.ndarray) -> tuple[np.ndarray, tuple[str, ...]]:
    targets = check_labels(y, low=0, high=np.iinfo(np.int32).max, source=f"{path}: y")
    found = np.unique(targets)
    if found[-1] != len(found) - 1:
        empty = int(np.argmax(found != np.arange(len(found))))
        raise DataError(
            f"{path}: class {empty} has no samples although y goes up to {found[-1]} (in row {np.argmax(targets)}, "
            "counted from 0): number the classes from 0 without gaps, or give their names as strings"
        )
    return targets, tuple(str(label) for label in found)


def _read_unlabelled(path: Path, options: TableOptions) -> Shaped[np.ndarray, "n *shape"] | MappedRows:
    stored = map_member(path, "x")
    return _read_x(path) if stored is None else check_inputs(path, stored)


def _read_inputs(path: Path, spec: InputSpec) -> NamedInputs:
    x, max_value = _read_x(path), spec.max_value
    if x.shape[1:] != spec.shape:
        raise DataError(f"{path} has inputs of shape {x.shape[1:]} where the model reads {spec.shape}")
    if max_value is not None:
        if x.min() < 0 or x.max() > max_value:
            row = int(np.argmax(((x < 0) | (x > max_value)).reshape(len(x), -1).any(axis=1)))
            raise DataError(
                f"{path} has a pixel outside 0 to {max_value:g} in row {row} of x (counted from 0): "
                "give the pixels in the units of the training data"
            )
        if max_value > 1 and x.max() <= 1 and (x != np.round(x)).any():
            raise DataError(
                f"{path} has pixels from 0 to 1 where the model's go from 0 to {max_value:g}: give x * {max_value:g}"
            )
    return NamedInputs(x, [str(i) for i in range(len(x))])


def _read_table(path: Path, request: TableRequest) -> Table:
    """An array of one axis is a column; `x` with d columns becomes x1 … xd."""
    columns: dict[str, np.ndarray] = {}
    for name, array in read_arrays(path).items():
        if array.ndim == 1:
            columns[name] = array
        elif array.ndim == 2:
            single = array.shape[1] == 1
            columns |= {name if single else f"{name}{i + 1}": array[:, i] for i in range(array.shape[1])}
        else:
            raise DataError(f"{path} has {name} of shape {array.shape}: give one number, or one row, per sample")
    lengths = {name: len(column) for name, column in columns.items()}
    if len(set(lengths.values())) != 1 or 0 in lengths.values():
        raise DataError(f"{path} has arrays of different lengths, or empty ones: {lengths}")
    (count,) = set(lengths.values())
    found = {name: _column(path, name, column, request) for name, column in columns.items()}
    return Table(path, found, np.arange(count), lambda: range(count))


def _column(path: Path, name: str, array: np.ndarray, request: TableRequest) -> Column:
    if array.dtype.kind == "b":
        return Column("boolean", array)
    if array.dtype.kind in "iuf":
        return Column("number", array)
    if array.dtype.kind != "U":
        raise DataError(f"{path} has {name} of type {array.dtype}: give numbers or texts")
    distinct, codes = np.unique(np.strings.strip(array), return_inverse=True)
    texts = tuple(distinct.tolist())
    numbers = None if name in request.labels or "" in texts else parse_numbers(texts)
    if numbers is not None:
        return Column("number", np.asarray(numbers)[codes])
    # The empty text, which is the first, stands for a missing cell.
    return Column("text", codes - 1, texts[1:]) if texts[0] == "" else Column("text", codes, texts)


def _read_x(path: Path) -> Shaped[np.ndarray, "n *shape"]:
    return check_inputs(path, read_arrays(path, ("x",))["x"])


def check_shape(path: Path, x: np.ndarray | MappedRows) -> None:
    """Refuse what are not rows of features or images."""
    if x.dtype.kind not in "biuf":
        raise DataError(f"{path} has x of type {x.dtype}: give numbers")
    if x.ndim not in (2, 3, 4) or 0 in x.shape:
        raise DataError(f"{path} has x of shape {x.shape}: give [n, features], [n, height, width] or NHWC images")
    if x.ndim == 4 and x.shape[1] in (1, 3) and x.shape[2] == x.shape[3] > 4:
        raise DataError(f"{path} has x of shape {x.shape}, channels first: give x.transpose(0, 2, 3, 1)")


def map_member(path: Path, name: str) -> MappedRows | None:
    """The array of an archive where it is on disk, if it is stored there as it is and too large for memory."""
    try:
        with zipfile.ZipFile(path) as archive, path.open("rb") as file:
            member = archive.getinfo(f"{name}.npy")
            if member.compress_type != zipfile.ZIP_STORED or member.file_size <= LIMITS["memory"].value:
                return None
            file.seek(member.header_offset + _LOCAL_LENGTHS)
            file.seek(member.header_offset + _LOCAL_HEADER + sum(struct.unpack("<HH", file.read(4))))
            return map_array(path, file)
    except Exception:  # a damaged archive makes its reader fail in any way it can; whoever reads it says why
        return None


def map_array(path: Path, file: Any) -> MappedRows | None:
    """The array whose header is at this place of a file; None if its rows are not one after the other."""
    version = np.lib.format.read_magic(file)
    readers = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
    if version not in readers:
        return None
    shape, is_fortran, dtype = readers[version](file)
    if is_fortran or dtype.hasobject or len(shape) < 2:
        return None
    if file.tell() + math.prod(shape) * dtype.itemsize > path.stat().st_size:
        raise DataError(f"{path} is truncated: x of shape {shape} has more bytes than the file; save it again")
    return MappedRows(path, file.tell(), shape, dtype)


def check_inputs(path: Path, x: Any) -> Any:
    """Check that `x` has finite rows of features or NHWC images; `[n, height, width]` gets its channel.

    What is on disk has its channel, and is looked at when it is read.
    """
    check_shape(path, x)
    if isinstance(x, MappedRows):
        return x
    finite = np.isfinite(x).reshape(len(x), -1).all(axis=1)
    if not finite.all():
        raise DataError(
            f"{path} has NaN or infinity in row {np.argmin(finite)} of x (counted from 0): remove or impute it"
        )
    return x[..., None] if x.ndim == 3 else x


def _read_series(path: Path, request: SeriesRequest) -> RawSeries:
    from charax.data.files._series_arrays import read_series_arrays  # which reads archives with this module

    return read_series_arrays(path, request)


def _max_value(x: np.ndarray | MappedRows) -> float | None:
    if x.ndim != 4:
        return None
    if x.dtype == np.uint8:
        return 255.0
    x = x.read(x.draw(_LOOKED_AT)[0]) if isinstance(x, MappedRows) else x
    return 1.0 if x.dtype.kind == "f" and x.min() >= 0 and x.max() <= 1 else None


NPZ = FileKind(
    name=".npz",
    matches=has_suffix(".npz"),
    read_labelled=_read_labelled,
    read_unlabelled=_read_unlabelled,
    read_inputs=_read_inputs,
    read_table=_read_table,
    read_series=_read_series,
)
