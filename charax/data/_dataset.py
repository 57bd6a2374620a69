"""Data sets for classification: from a name or a path to three splits that are ready to train on."""

from dataclasses import dataclass

from charax.data._errors import DataError
from charax.data._raw import RawDataset, RawSplit
from charax.data._splitting import Split, stratified_split
from charax.data._standardizer import Standardizer
from charax.data.files._dispatch import find_path, read_labelled
from charax.data.sources._catalogue import DATASETS
from charax.data.sources._fetching import fetch
from charax.data.sources._source import Augmentation, PixelScaling


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
    """How raw inputs were scaled."""
    augmentation: Augmentation = "none"
    """How training batches should be augmented."""
    columns: tuple[str, ...] = ()
    """The names of the features of a table, in order; empty for everything else."""

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
    shrink: int = 1,
    max_samples: int | None = None,
) -> Dataset:
    """Load a classification data set by its name, or the user's own by its path.

    Own data are an `.npz` with `x` and `y`, a `.csv` or `.parquet` with a column of classes, or a folder of images with
    one subfolder per class.

    An official test split stays the test split. The other splits are chosen by the seed, with every class in every
    split. Named data sets are scaled as their `Source` says; everything else is standardized by the mean and the
    standard deviation of its training split.

    Args:
        name: A name, one of `DATASETS`, or a path.
        seed: Seed of the splits.
        validation_fraction: The size of the validation split, as a fraction of the samples.
        test_fraction: The size of the test split, where there is no official one.
        target: The column of the classes in a table; "target" if left out.
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
    if name in DATASETS:
        raw = read_source(name)
        scaling, augmentation = DATASETS[name].scaling, DATASETS[name].augmentation
    else:
        raw = read_labelled(find_path(name, DATASETS), target)
    if max_samples is not None:
        raw = raw.limit(max_samples)
    if shrink != 1:
        raw = raw.shrink(shrink)
    splits = split_raw(raw, seed=seed, validation_fraction=validation_fraction, test_fraction=test_fraction)
    if scaling == "unit" and raw.max_value is not None:
        standardizer = Standardizer.to_unit(raw.max_value)
    else:
        standardizer = Standardizer.fit(splits[0].inputs, max_value=raw.max_value)
    train, validation, test = (Split(standardizer.apply(split.inputs), split.targets) for split in splits)
    return Dataset(name, train, validation, test, raw.classes, standardizer, augmentation, raw.columns)


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
