"""Data sets for classification: from a name or a path to three splits that are ready to train on."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from charax.data._encoder import TableEncoder
from charax.data._encoder_fitting import check_texts, fit_encoder
from charax.data._errors import DataError
from charax.data._names import Augmentation
from charax.data._raw import RawDataset, RawSplit
from charax.data._splitting import Split, stratified_split
from charax.data._standardizer import Standardizer
from charax.data._stored import fit_standardizer, standardize_rows
from charax.data.files._dispatch import find_path, holds_images, read_labelled
from charax.data.files._kind import TableOptions
from charax.data.files._layout import Separator
from charax.data.files._stored_table import StoredTable
from charax.data.files._table import Table
from charax.data.sources._catalogue import DATASETS
from charax.data.sources._fetching import fetch
from charax.data.sources._source import PixelScaling


@dataclass(frozen=True)
class Dataset:
    """A classification data set in three splits.

    ```python
    from charax.data import load_dataset

    digits = load_dataset("digits")
    assert digits.input_shape == (8, 8, 1) and len(digits.classes) == 10
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
    classes: tuple[str, ...]
    """The names of the classes."""
    standardizer: Standardizer
    """How raw inputs were scaled, after the columns of a table were encoded."""
    augmentation: Augmentation = "none"
    """How training batches should be augmented."""
    encoder: TableEncoder | None = None
    """How the columns of a table were encoded as features; None for everything else."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns of a table, in order; empty for everything else."""
        return () if self.encoder is None else self.encoder.columns

    @property
    def notes(self) -> tuple[str, ...]:
        """What was done with the columns of a table that are not simply numbers, one line each."""
        return () if self.encoder is None else self.encoder.notes

    @property
    def input_shape(self) -> tuple[int, ...]:
        """The shape of one input."""
        return self.train.inputs.shape[1:]


def load_dataset(
    name: str,
    *,
    seed: int = 0,
    validation_fraction: float = 0.1,
    test_fraction: float = 0.2,
    target: str | None = None,
    separator: Separator | None = None,
    size: int | None = None,
    shrink: int = 1,
    max_samples: int | None = None,
) -> Dataset:
    """Load a classification data set by its name, or the user's own by its path.

    Own data are an `.npz` with `x` and `y`, an `x.npy` with `y.npy` next to it, a table with a column of classes, or a
    folder, a `.zip` or a `.tar` of images with one subfolder per class. A table is a `.csv`, `.tsv` or `.txt` (also
    compressed, `.csv.gz`), a `.parquet` or the first sheet of an `.xlsx`. Its columns may hold numbers, dates, booleans
    and texts, and lack some values: `TableEncoder` says what becomes of them. Samples that are too large for memory
    stay on disk, where their format allows it.

    An official test split stays the test split. The other splits are chosen by the seed, with every class in every
    split. Named data sets are scaled as their `Source` says; everything else is standardized by the mean and the
    standard deviation of its training split.

    Args:
        name: A name, one of `DATASETS`, or a path.
        seed: Seed of the splits.
        validation_fraction: The size of the validation split, as a fraction of the samples.
        test_fraction: The size of the test split, where there is no official one.
        target: The column of the classes in a table; "target" if left out.
        separator: The separator of the columns of a text file; found out if left out.
        size: The height and width of the images of a folder: their shorter side is resized to it, and the centre cut
            out. By default images of different sizes are fitted to the shortest side of any.
        shrink: Average images over squares with this many pixels per side.
        max_samples: Keep the first so many samples, and a fifth as many of an official test split.

    Returns:
        The data set.

    Raises:
        DataError: If the data cannot be read or split; the message names the file, the row and the fix.

    ```python
    from charax.data import load_dataset

    digits = load_dataset("digits", seed=1)
    assert digits.train.inputs.min() == 0 and digits.train.inputs.max() == 1
    ```
    """
    scaling: PixelScaling = "standardize"
    augmentation: Augmentation = "none"
    if size is not None and (name in DATASETS or not holds_images(find_path(name, DATASETS))):
        raise DataError(
            f"{name} is not a folder or an archive of images, so it cannot be resized to {size} pixels: leave out the "
            "size"
        )
    if name in DATASETS:
        raw = read_source(name)
        scaling, augmentation = DATASETS[name].scaling, DATASETS[name].augmentation
    else:
        raw = read_labelled(find_path(name, DATASETS), TableOptions(target, separator, size))
    if max_samples is not None:
        raw = raw.limit(max_samples)
    if shrink != 1:
        raw = raw.shrink(shrink)
    splits = split_raw(raw, seed=seed, validation_fraction=validation_fraction, test_fraction=test_fraction)
    return assemble(name, raw, splits, fit_encoder, scaling, augmentation)


def assemble(
    name: str,
    raw: RawDataset,
    splits: Sequence[RawSplit],
    fit: Callable[[Table], TableEncoder],
    scaling: PixelScaling = "standardize",
    augmentation: Augmentation = "none",
) -> Dataset:
    """Encode and scale splits as it suits the first of them, which is to train on."""
    first = splits[0].inputs
    encoder = fit_table(first, fit)
    arrays = [encode(split.inputs, encoder) for split in splits]
    if scaling == "unit" and raw.max_value is not None:
        standardizer = Standardizer.to_unit(raw.max_value)
    else:
        standardizer = fit_standardizer(arrays[0], max_value=raw.max_value)
    train, validation, test = (
        Split(standardize_rows(array, standardizer), split.targets) for array, split in zip(arrays, splits, strict=True)
    )
    return Dataset(name, train, validation, test, raw.classes, standardizer, augmentation, encoder)


def fit_table(inputs: Any, fit: Callable[[Table], TableEncoder]) -> TableEncoder | None:
    """Decide how a table is encoded, by some of its rows if it is on disk; None for arrays."""
    if isinstance(inputs, StoredTable):
        sample = inputs.sample()
        check_texts(sample)
        return fit(sample)
    return fit(inputs) if isinstance(inputs, Table) else None


def encode(inputs: Any, encoder: TableEncoder | None) -> Any:
    """Encode a table as features, now or when it is read; arrays are left as they are."""
    if isinstance(inputs, StoredTable):
        assert encoder is not None
        return inputs.encode(encoder)
    if isinstance(inputs, Table):
        assert encoder is not None
        return encoder.apply(inputs)
    return inputs


def read_source(name: str) -> RawDataset:
    """Read the raw samples of a named data set, downloading them first if they are not there."""
    return DATASETS[name].read(fetch(name))


def split_raw(
    raw: RawDataset, *, seed: int, validation_fraction: float = 0.1, test_fraction: float = 0.2
) -> tuple[RawSplit, RawSplit, RawSplit]:
    """Split raw samples for training, validation and test."""
    if len(raw.classes) < 2:
        raise DataError(f"{raw.source} has only the class {''.join(raw.classes)!r}: a classifier needs two or more")
    fractions = [validation_fraction] if raw.test is not None else [validation_fraction, test_fraction]
    train, validation, *held_out = (
        raw.samples.take(indices)
        for indices in stratified_split(
            raw.samples.targets, fractions, seed=seed, classes=raw.classes, source=str(raw.source)
        )
    )
    return train, validation, raw.test if raw.test is not None else held_out[0]
