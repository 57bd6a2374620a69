"""Data to learn a density of: points, rows of numbers, or images of whole grey levels. Labels may be missing."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Float32, Int32, Shaped

from charax.data._arrays import read_arrays
from charax.data._catalogue import DATASETS
from charax.data._dataset import Split, Standardizer
from charax.data._errors import DataError
from charax.data._images import find_images, read_images
from charax.data._loading import load_dataset
from charax.data._tables import read_table, table_numbers
from charax.data._toys import TOYS, draw_toy

_FEWEST = 10


@dataclass(frozen=True)
class DensityData:
    """Three parts. `levels` is the number of grey levels of images, and None for numbers.

    Rows of numbers are standardised by `standardizer`; images are whole grey levels 0 … levels − 1; the points of a
    toy are as they are. Targets are class indices where there are classes, else 0.

    ```python
    from charax.data import load_density_data

    digits = load_density_data("digits")
    assert digits.levels == 17 and digits.train.inputs.max() == 16
    ```
    """

    name: str
    train: Split
    validation: Split
    test: Split
    levels: int | None
    standardizer: Standardizer
    classes: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one sample."""
        return self.train.inputs.shape[1:]


def load_density_data(
    name: str, *, seed: int = 0, points: int = 25_600, shrink: int = 1, labelled: bool = False
) -> DensityData:
    """A toy (`TOYS`), a data set of images by name, or the user's own file.

    An own file is an `.npz` with `x`, rows of numbers or images of bytes; a `.csv` or `.parquet` of numbers, in
    which a column called "target" is left out; or a folder of images. `points` is how many points of a toy there
    are to train on. `shrink` averages squares of so many pixels a side. With `labelled`, rows must have classes, as
    `load_dataset` finds them.

    ```python
    from charax.data import load_density_data

    assert load_density_data("moons", points=1_000).train.inputs.shape == (1_000, 2)
    ```
    """
    if name in TOYS:
        return _toy(name, seed, points)
    if name in DATASETS:
        return _images_by_name(name, seed, shrink)
    path = Path(name).expanduser()
    if not path.exists():
        raise DataError(f"{name} is neither a file or folder that exists nor one of {', '.join([*TOYS, *DATASETS])}")
    if labelled:
        data = load_dataset(name, seed=seed)
        if len(data.input_shape) != 1:
            raise DataError(f"{path} has images: classes are for rows of numbers")
        check_varied(data.train.inputs, data.columns, str(path))
        return DensityData(
            name, data.train, data.validation, data.test, None, data.standardizer, data.classes, data.columns
        )
    raw, columns = _read_own(path)
    if raw.ndim == 4:
        if raw.dtype != np.uint8:
            raise DataError(
                f"{path} has images of type {raw.dtype}: the density of images is over whole grey levels, so give "
                "bytes from 0 to 255 (uint8)"
            )
        raw = _shrink(raw, shrink, 255, str(path))
        return _sample_set(name, _split(raw.astype(np.float32), seed, path), levels=256)
    parts = _split(raw, seed, path)
    standardizer = Standardizer.standardise(parts[0])
    check_varied(parts[0], columns, str(path))
    return _sample_set(name, [standardizer.apply(part) for part in parts], None, standardizer, columns)


def check_varied(raw: Shaped[np.ndarray, "n columns"], columns: tuple[str, ...], source: str) -> None:
    """A column that never changes has no density: say which."""
    constant = np.flatnonzero(np.ptp(raw, axis=0) <= 1e-12 * np.abs(raw).max(axis=0))
    if constant.size:
        which = repr(columns[constant[0]]) if columns else f"{constant[0]} (counted from 0)"
        raise DataError(f"{source}: column {which} is constant, so its density is infinite: remove it")


def _toy(name: str, seed: int, points: int) -> DensityData:
    if points < _FEWEST:
        raise DataError(f"points must be at least {_FEWEST}, got {points}")
    held_out = max(_FEWEST, points // 5)
    parts = [draw_toy(name, n, seed=3 * seed + i) for i, n in enumerate((points, held_out, 2 * held_out))]
    return _sample_set(name, parts, None)


def _images_by_name(name: str, seed: int, shrink: int) -> DensityData:
    data = load_dataset(name, seed=seed)
    standardizer, white = data.standardizer, data.standardizer.white
    assert white is not None
    mean, std = np.asarray(standardizer.mean, np.float32), np.asarray(standardizer.std, np.float32)
    parts = [
        Split(_shrink(np.round(split.inputs * std + mean), shrink, white, name), split.targets)
        for split in (data.train, data.validation, data.test)
    ]
    unit = Standardizer((0.0,), (1.0,), white)
    return DensityData(name, *parts, levels=int(white) + 1, standardizer=unit, classes=data.classes)


def _shrink(images: np.ndarray, by: int, white: float, source: str) -> Float32[np.ndarray, "n height width channels"]:
    if by < 1 or images.shape[1] % by or images.shape[2] % by:
        raise DataError(f"{source}: {images.shape[1]}x{images.shape[2]} pixels cannot be shrunk by {by}")
    n, height, width, channels = images.shape
    squares = images.reshape(n, height // by, by, width // by, by, channels).astype(np.float32)
    return np.clip(np.round(squares.mean(axis=(2, 4))), 0, white)


def _read_own(path: Path) -> tuple[Shaped[np.ndarray, "n *shape"], tuple[str, ...]]:
    if path.is_dir():
        return read_images(find_images(path)), ()
    match path.suffix.lower():
        case ".npz":
            return read_arrays(path), ()
        case ".csv" | ".parquet":
            table = read_table(path)
            columns = tuple(name for name in table.names if name != "target")
            if not columns:
                raise DataError(f"{path} has no columns of numbers")
            return table_numbers(table, columns), columns
    raise DataError(f"{path} is not a kind of file that can be learned from: give .npz, .csv, .parquet or a folder")


def _split(raw: np.ndarray, seed: int, path: Path) -> list[np.ndarray]:
    if len(raw) < _FEWEST:
        raise DataError(f"{path} has {len(raw)} samples: a density needs at least {_FEWEST}, to learn from and to test")
    order = np.random.default_rng(seed).permutation(len(raw))
    test, validation = max(1, len(raw) // 5), max(1, len(raw) // 10)
    return [raw[order[test + validation :]], raw[order[test : test + validation]], raw[order[:test]]]


def _sample_set(
    name: str,
    parts: list[np.ndarray],
    levels: int | None,
    standardizer: Standardizer | None = None,
    columns: tuple[str, ...] = (),
) -> DensityData:
    unit = Standardizer((0.0,), (1.0,), None if levels is None else float(levels - 1))
    splits = [Split(part.astype(np.float32), _no_targets(len(part))) for part in parts]
    return DensityData(name, *splits, levels=levels, standardizer=standardizer or unit, columns=columns)


def _no_targets(n: int) -> Int32[np.ndarray, "n"]:
    return np.zeros(n, np.int32)
