"""Data for density estimation: points, rows of numbers, or images of integer gray levels, with or without classes."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float32, Shaped

from charax.data._dataset import assemble, encode, fit_table, read_source, split_raw
from charax.data._encoder import TableEncoder
from charax.data._encoder_fitting import fit_numeric_encoder
from charax.data._errors import DataError
from charax.data._limits import LIMITS
from charax.data._raw import shrink_images
from charax.data._splitting import Split
from charax.data._standardizer import Standardizer
from charax.data._stored import AbstractStoredRows, fit_standardizer, standardize_rows, take_rows
from charax.data.files._dispatch import find_path, read_labelled, read_unlabelled
from charax.data.files._kind import TableOptions
from charax.data.files._layout import Separator
from charax.data.files._table import Table
from charax.data.sources._catalogue import DATASETS
from charax.data.sources._toys import TOYS, sample_toy

_MIN_SAMPLES = 10
_LOOKED_AT = 2**24
"""Bytes of rows on disk that are looked at to find columns that are constant."""


@dataclass(frozen=True)
class DensityData:
    """Samples of a density in three splits.

    Rows of numbers are standardized; images have integer gray levels 0 … levels − 1; the points of a toy are left as
    they are. Targets are class indices where there are classes, else 0.

    ```python
    from charax.data import load_density_data

    digits = load_density_data("digits")
    assert digits.levels == 17 and digits.train.inputs.max() == 16
    ```
    """

    name: str
    """The name or the path by which it was loaded."""
    train: Split
    """The training split."""
    validation: Split
    """The split on which the best weights are selected."""
    test: Split
    """The test split."""
    levels: int | None
    """The number of gray levels of images; None for points and rows."""
    standardizer: Standardizer
    """How raw samples were scaled."""
    classes: tuple[str, ...] = ()
    """The names of the classes, where there are any."""
    encoder: TableEncoder | None = None
    """Which columns of a table are read; None for everything else."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns of a table, in order; empty for everything else."""
        return () if self.encoder is None else self.encoder.columns

    @property
    def notes(self) -> tuple[str, ...]:
        """What was done with the columns of a table that are not simply numbers, one line each."""
        return () if self.encoder is None else self.encoder.notes

    def order_columns(self, names: Sequence[str]) -> "DensityData":
        """Put the columns of a table into an order.

        Args:
            names: The names of all columns.

        Returns:
            The data with their columns in that order; as they are if these are not their names.
        """
        if self.encoder is None or tuple(names) == self.columns or sorted(names) != sorted(self.columns):
            return self
        order = [self.columns.index(name) for name in names]
        train, validation, test = (
            split._replace(inputs=_select(split.inputs, order)) for split in (self.train, self.validation, self.test)
        )
        encoder = replace(self.encoder, encoders=tuple(self.encoder.encoders[column] for column in order))
        standardizer = self.standardizer.select(order)
        return replace(self, train=train, validation=validation, test=test, standardizer=standardizer, encoder=encoder)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one sample."""
        return self.train.inputs.shape[1:]


def load_density_data(
    name: str,
    *,
    seed: int = 0,
    points: int = 25_600,
    shrink: int = 1,
    labelled: bool = False,
    separator: Separator | None = None,
) -> DensityData:
    """Load a toy, a named data set of images, or the user's own file.

    An own file is an `.npz` with `x`, or an `.npy`, rows of numbers or images of bytes; a table of numbers as for
    `load_dataset`, in which a column called "target" is left out; or a folder, a `.zip` or a `.tar` of images. A table
    may not have texts, dates, booleans or missing values, which have no density. Rows of numbers that are too large
    for memory stay on disk, where their format allows it.

    Args:
        name: A name, one of `TOYS` or `DATASETS`, or a path.
        seed: Seed of the points of a toy, and of the splits of everything else.
        points: The number of points of a toy to train on.
        shrink: Average images over squares with this many pixels per side.
        labelled: Also read the classes of the rows of an own file, as `load_dataset` does.
        separator: The separator of the columns of a text file; found out if left out.

    Returns:
        The samples.

    Raises:
        DataError: If the data cannot be read, or have no density; the message names the file, the row and the fix.

    ```python
    from charax.data import load_density_data

    assert load_density_data("moons", points=1_000).train.inputs.shape == (1_000, 2)
    ```
    """
    if name in TOYS:
        return _load_toy(name, seed, points)
    if name in DATASETS:
        return _load_images(name, seed, shrink)
    path = find_path(name, [*TOYS, *DATASETS])
    options = TableOptions(separator=separator)
    if labelled:
        return _load_labelled(name, path, seed, shrink, options)
    raw = read_unlabelled(path, options)
    encoder = fit_table(raw, fit_numeric_encoder)
    raw = encode(raw, encoder)
    if raw.ndim == 4:
        return _assemble(name, _split(_as_levels(raw, path, shrink), seed, path), levels=256)
    splits = _split(raw, seed, path)
    _check_varied(splits[0], () if encoder is None else encoder.columns, path)
    standardizer = fit_standardizer(splits[0], max_value=None)
    return _assemble(name, [standardize_rows(split, standardizer) for split in splits], None, standardizer, encoder)


def _select(rows: Any, columns: list[int]) -> Any:
    return rows.select(columns) if isinstance(rows, AbstractStoredRows) else rows[:, columns]


def _load_toy(name: str, seed: int, points: int) -> DensityData:
    if points < _MIN_SAMPLES:
        raise DataError(f"points must be at least {_MIN_SAMPLES}, got {points}")
    held_out = max(_MIN_SAMPLES, points // 5)
    sizes = (points, held_out, 2 * held_out)
    return _assemble(name, [sample_toy(name, n, seed=3 * seed + i) for i, n in enumerate(sizes)], None)


def _load_images(name: str, seed: int, shrink: int) -> DensityData:
    raw = read_source(name)
    assert raw.max_value is not None  # every named data set has images
    splits = [
        Split(_shrink(encode(split.inputs, None), shrink, raw.max_value, name), split.targets)
        for split in split_raw(raw, seed=seed)
    ]
    levels = int(raw.max_value) + 1
    return DensityData(name, *splits, levels=levels, standardizer=_identity(levels), classes=raw.classes)


def _load_labelled(name: str, path: Path, seed: int, shrink: int, options: TableOptions) -> DensityData:
    raw = read_labelled(path, options)
    if isinstance(raw.samples.inputs, np.ndarray | AbstractStoredRows) and raw.samples.inputs.ndim == 4:
        splits = [
            Split(_as_levels(encode(split.inputs, None), path, shrink), split.targets)
            for split in split_raw(raw, seed=seed)
        ]
        return DensityData(name, *splits, levels=256, standardizer=_identity(256), classes=raw.classes)
    if isinstance(raw.samples.inputs, Table):
        fit_numeric_encoder(raw.samples.inputs)  # an error in any split is an error here
    data = assemble(name, raw, split_raw(raw, seed=seed), fit_numeric_encoder)
    _check_varied(data.train.inputs, data.columns, path)
    return DensityData(
        name,
        data.train,
        data.validation,
        data.test,
        levels=None,
        standardizer=data.standardizer,
        classes=data.classes,
        encoder=data.encoder,
    )


def _check_varied(values: Any, columns: Sequence[str], path: Path) -> None:
    if isinstance(values, AbstractStoredRows):
        values = values.read(values.draw(_LOOKED_AT)[0])
    constant = np.flatnonzero(np.ptp(values, axis=0) <= 1e-12 * np.abs(values).max(axis=0))
    if constant.size:
        which = repr(columns[constant[0]]) if columns else f"{constant[0]} (counted from 0)"
        raise DataError(
            f"{path}: column {which} is constant, so that its density is infinite, and as context it tells nothing: "
            "remove it"
        )


def _as_levels(
    raw: Shaped[np.ndarray, "n height width channels"] | AbstractStoredRows, path: Path, shrink: int
) -> Float32[np.ndarray, "n rows columns channels"]:
    """Images of an own file, shrunk, as gray levels."""
    if isinstance(raw, AbstractStoredRows):
        raise DataError(f"{path} has images that do not fit into memory: set {LIMITS['memory'].variable} to more")
    if raw.dtype != np.uint8:
        raise DataError(
            f"{path} has images of type {raw.dtype}: the density of images is over integer gray levels, so give "
            "bytes from 0 to 255 (uint8)"
        )
    return _shrink(raw, shrink, 255.0, str(path))


def _shrink(
    images: Shaped[np.ndarray, "n ..."], by: int, max_value: float, source: str
) -> Float32[np.ndarray, "n height width channels"]:
    return np.clip(np.round(shrink_images(images, by, source)), 0, max_value)


def _split(raw: Any, seed: int, path: Path) -> list[Any]:
    if len(raw) < _MIN_SAMPLES:
        raise DataError(f"{path} has {len(raw)} samples: give at least {_MIN_SAMPLES}, to train, validate and test")
    order = np.random.default_rng(seed).permutation(len(raw))
    test, validation = max(1, len(raw) // 5), max(1, len(raw) // 10)
    rows = (order[test + validation :], order[test : test + validation], order[:test])
    in_blocks = isinstance(raw, AbstractStoredRows) and raw.blocks is not None
    return [take_rows(raw, np.sort(each) if in_blocks else each) for each in rows]


def _identity(levels: int | None) -> Standardizer:
    return Standardizer((0.0,), (1.0,), None if levels is None else float(levels - 1))


def _assemble(
    name: str,
    splits: list[Any],
    levels: int | None,
    standardizer: Standardizer | None = None,
    encoder: TableEncoder | None = None,
) -> DensityData:
    in_memory = [split for split in splits if not isinstance(split, AbstractStoredRows)]
    single = [split.astype(np.float32) for split in in_memory] if in_memory else splits
    parts = [Split(split, np.zeros(len(split), np.int32)) for split in single]
    return DensityData(name, *parts, levels=levels, standardizer=standardizer or _identity(levels), encoder=encoder)
