"""From a name or a path to a data set that is ready to train on."""

from pathlib import Path

import numpy as np

from charax.data._arrays import read_labelled_arrays
from charax.data._catalogue import DATASETS
from charax.data._cifar import read_cifar10
from charax.data._dataset import Augmentation, Dataset, Labelled, Raw, Split, Standardizer
from charax.data._errors import DataError
from charax.data._fetching import fetch
from charax.data._idx import read_mnist
from charax.data._images import read_labelled_images
from charax.data._splitting import stratified_split
from charax.data._svhn import read_svhn
from charax.data._tables import read_labelled_table


def load_dataset(
    name: str,
    *,
    seed: int = 0,
    validation_fraction: float = 0.1,
    test_fraction: float = 0.2,
    target: str | None = None,
) -> Dataset:
    """A data set by name (see `DATASETS`), or the user's own by its path.

    Own data are an `.npz` with `x` and `y`, a `.csv` or `.parquet` whose `target` column holds the classes
    (the column called "target" if none is named), or a folder of images with one subfolder a class.

    The seed decides who is in which part; every class is in every part. An official test part stays the
    test part. `digits`, `mnist` and `svhn` are scaled to [0, 1]; everything else is standardised by the
    mean and standard deviation of its training part.

    ```python
    from charax.data import load_dataset

    digits = load_dataset("digits", seed=1)
    assert digits.train.inputs.min() == 0 and digits.train.inputs.max() == 1
    ```
    """
    raw = _read(name, target)
    if len(raw.classes) < 2:
        raise DataError(f"{raw.source} has only the class {''.join(raw.classes)!r}: a classifier needs two or more")
    fractions = [validation_fraction] if raw.test is not None else [validation_fraction, test_fraction]
    train, *parts = (
        raw.samples.take(indices)
        for indices in stratified_split(
            raw.samples.targets, fractions, seed=seed, classes=raw.classes, source=str(raw.source)
        )
    )
    if raw.test is not None:
        parts.append(raw.test)
    if name in ("digits", "mnist", "svhn") and raw.white is not None:
        standardizer = Standardizer.to_unit(raw.white)
    else:
        standardizer = Standardizer.standardise(train.inputs, white=raw.white)
    train, validation, test = (Split(standardizer.apply(part.inputs), part.targets) for part in (train, *parts))
    return Dataset(
        name=name,
        train=train,
        validation=validation,
        test=test,
        classes=raw.classes,
        standardizer=standardizer,
        augment=_AUGMENTED.get(name, "none"),
        columns=raw.columns,
    )


_AUGMENTED: dict[str, Augmentation] = {"digits": "distort", "cifar10": "flip-crop"}
"""The digits are few, and slanted in many ways."""

_NAMED = {"mnist": read_mnist, "cifar10": read_cifar10, "svhn": read_svhn}


def _read(name: str, target: str | None) -> Raw:
    if name == "digits":
        return _read_digits()
    if name in _NAMED:
        return _NAMED[name](fetch(name))
    path = Path(name).expanduser()
    if path.is_dir():
        return read_labelled_images(path)
    if not path.exists():
        raise DataError(f"{name} is neither a file or folder that exists nor one of {', '.join(DATASETS)}")
    match path.suffix.lower():
        case ".npz":
            return read_labelled_arrays(path)
        case ".csv" | ".parquet":
            return read_labelled_table(path, target)
    raise DataError(f"{path} is not a kind of file that can be learned from: give .npz, .csv, .parquet or a folder")


def _read_digits() -> Raw:
    from sklearn.datasets import load_digits  # slow to import, and needed by one data set only

    images, labels = load_digits(return_X_y=True)
    classes = tuple(str(digit) for digit in range(10))
    return Raw("digits", Labelled(images.reshape(-1, 8, 8, 1), np.asarray(labels, np.int32)), classes, white=16.0)
