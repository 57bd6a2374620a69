"""NumPy archives: `x` and `y` in an `.npz`."""

import zipfile
import zlib
from pathlib import Path

import numpy as np
from jaxtyping import Shaped

from charax.data._dataset import Labelled, Raw, index_classes
from charax.data._errors import DataError
from charax.data._labels import check_labels


def read_labelled_arrays(path: Path) -> Raw:
    """`x`: `[n, features]`, `[n, height, width]` or NHWC. `y`: class indices from 0 on without gaps, or names."""
    arrays = read_npz(path, ("x", "y"))
    x, y = check_inputs(path, arrays["x"]), arrays["y"]
    if y.shape != x.shape[:1]:
        raise DataError(f"{path} has y of shape {y.shape} where x has {len(x)} samples: give one label a sample")
    if y.dtype.kind == "U":
        targets, classes = index_classes(y.tolist())
    elif y.dtype.kind in "biu":
        targets = check_labels(y.astype(np.int64), low=0, high=np.iinfo(np.int32).max, source=f"{path}: y")
        found = np.unique(targets)
        if found[-1] != len(found) - 1:
            empty = int(np.argmax(found != np.arange(len(found))))
            raise DataError(
                f"{path}: class {empty} has no samples although y goes up to {found[-1]} (in row {np.argmax(targets)}, "
                "counted from 0): number the classes from 0 on without gaps, or give their names as strings"
            )
        classes = tuple(str(label) for label in found)
    else:
        raise DataError(f"{path} has y of type {y.dtype}: labels are whole numbers or strings")
    return Raw(path, Labelled(x, targets), classes, white=_white(x))


def read_arrays(path: Path) -> Shaped[np.ndarray, "n *shape"]:
    """`x` alone."""
    return check_inputs(path, read_npz(path, ("x",))["x"])


def check_inputs(path: Path, x: np.ndarray) -> Shaped[np.ndarray, "n *shape"]:
    """Finite numbers, a batch of rows or of NHWC images; grey images get their channel."""
    if x.dtype.kind not in "biuf":
        raise DataError(f"{path} has x of type {x.dtype} where numbers belong")
    if x.ndim not in (2, 3, 4) or x.size == 0:
        raise DataError(f"{path} has x of shape {x.shape}: give [n, features], [n, height, width] or NHWC images")
    if x.ndim == 4 and x.shape[1] in (1, 3) and x.shape[2] == x.shape[3] > 4:
        raise DataError(f"{path} has x of shape {x.shape}, channels first: give x.transpose(0, 2, 3, 1)")
    finite = np.isfinite(x).reshape(len(x), -1).all(axis=1)
    if not finite.all():
        raise DataError(
            f"{path} has NaN or infinity in row {np.argmin(finite)} of x (counted from 0): remove or impute it"
        )
    return x[..., None] if x.ndim == 3 else x


def _white(x: np.ndarray) -> float | None:
    if x.ndim != 4:
        return None
    if x.dtype == np.uint8:
        return 255.0
    return 1.0 if x.dtype.kind == "f" and x.min() >= 0 and x.max() <= 1 else None


def read_npz(path: Path, names: tuple[str, ...] | None = None) -> dict[str, np.ndarray]:
    """The named arrays of an archive, or all; one that is not there, or is not sound, is a `DataError`."""
    if not zipfile.is_zipfile(path):
        raise DataError(f"{path} is not an .npz archive, or is truncated: save it again with numpy.savez")
    try:
        # A pickle can run any code when it is loaded, so arrays of objects are refused.
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            names = tuple(archive.files) if names is None else names
            missing = [name for name in names if name not in archive.files]
            if missing:
                raise DataError(f"{path} has no array {missing[0]!r}; it has {', '.join(archive.files) or 'none'}")
            return {name: archive[name] for name in names}
    except DataError:
        raise
    except (OSError, EOFError, ValueError, RuntimeError, zipfile.BadZipFile, zlib.error) as error:
        if "allow_pickle" in str(error):
            raise DataError(f"{path} has pickled objects in it, which are never loaded: save plain arrays") from None
        raise DataError(f"{path} is not a sound .npz archive ({error}): save it again with numpy.savez") from None
