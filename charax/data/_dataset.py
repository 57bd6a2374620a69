"""What a data set is once it is in memory."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
from jaxtyping import Float32, Int32, Shaped

from charax.data._errors import DataError

Augmentation = Literal["none", "flip-crop", "distort"]


class Split(NamedTuple):
    """One part of a data set: normalised inputs (NHWC images, or rows of features) and class indices."""

    inputs: Float32[np.ndarray, "n *shape"]
    targets: Int32[np.ndarray, "n"]


@dataclass(frozen=True)
class Standardizer:
    """How raw inputs become what a model reads: `(raw - mean) / std`, per channel or per column.

    `white` is the raw value of a fully bright pixel, so that a picture from a file can be put on the
    scale of the data; it is None where the inputs are not known to be pictures.

    ```python
    import numpy as np
    from charax.data import Standardizer

    standardizer = Standardizer(mean=(0.0,), std=(255.0,), white=255.0)
    assert standardizer.apply(np.full((1, 28, 28, 1), 255, np.uint8)).max() == 1
    assert Standardizer.from_json(standardizer.to_json()) == standardizer
    ```
    """

    mean: tuple[float, ...]
    std: tuple[float, ...]
    white: float | None = None

    @classmethod
    def to_unit(cls, white: float) -> "Standardizer":
        """Pictures in [0, white] to [0, 1]."""
        return cls((0.0,), (white,), white)

    @classmethod
    def standardise(cls, raw: Shaped[np.ndarray, "n *shape"], *, white: float | None = None) -> "Standardizer":
        """Mean zero and standard deviation one over `raw`; a constant column or channel is only centred."""
        axes = tuple(range(raw.ndim - 1))
        mean, std = raw.mean(axes, dtype=np.float64), raw.std(axes, dtype=np.float64)
        std[std <= 1e-12 * np.abs(mean)] = 1.0
        return cls(tuple(mean.tolist()), tuple(std.tolist()), white)

    def apply(self, raw: Shaped[np.ndarray, "n *shape"]) -> Float32[np.ndarray, "n *shape"]:
        """What the model reads. A last axis of another length than `mean` is an error, unless `mean` has length one."""
        if len(self.mean) not in (1, raw.shape[-1]):
            raise DataError(f"the inputs have {raw.shape[-1]} columns or channels where {len(self.mean)} are expected")
        # Bytes are exact in single precision; a column of, say, timestamps keeps its digits only in double.
        dtype = np.float32 if raw.dtype.itemsize == 1 else np.float64
        out = raw.astype(dtype, order="C")
        out -= np.asarray(self.mean, dtype)
        out /= np.asarray(self.std, dtype)
        return out.astype(np.float32, copy=False)

    def to_json(self) -> dict[str, list[float] | float | None]:
        """Plain lists and numbers."""
        return {"mean": list(self.mean), "std": list(self.std), "white": self.white}

    @classmethod
    def from_json(cls, fields: dict) -> "Standardizer":
        """The inverse of `to_json`."""
        return cls(tuple(fields["mean"]), tuple(fields["std"]), fields["white"])


@dataclass(frozen=True)
class Dataset:
    """Three parts, the names of the classes, and how raw inputs were normalised.

    `augment` is what a training loop should do with its batches. `columns` names the features of a table,
    in order, and is empty for everything else.

    ```python
    from charax.data import load_dataset

    digits = load_dataset("digits")
    assert digits.input_shape == (8, 8, 1) and len(digits.classes) == 10
    ```
    """

    name: str
    train: Split
    validation: Split
    test: Split
    classes: tuple[str, ...]
    standardizer: Standardizer
    augment: Augmentation = "none"
    columns: tuple[str, ...] = ()

    @property
    def input_shape(self) -> tuple[int, ...]:
        """The shape of one input."""
        return self.train.inputs.shape[1:]


class Labelled(NamedTuple):
    """Raw inputs as a file has them, and class indices."""

    inputs: Shaped[np.ndarray, "n *shape"]
    targets: Int32[np.ndarray, "n"]

    def take(self, indices: np.ndarray) -> "Labelled":
        return Labelled(self.inputs[indices], self.targets[indices])


@dataclass(frozen=True)
class Raw:
    """What a reader finds: samples to split, and the official test part where there is one.

    `source` is what an error about the samples should name.
    """

    source: Path | str
    samples: Labelled
    classes: tuple[str, ...]
    test: Labelled | None = None
    columns: tuple[str, ...] = ()
    white: float | None = None


def index_classes(names: Sequence[str]) -> tuple[Int32[np.ndarray, "n"], tuple[str, ...]]:
    """Class indices for names, and the classes in order: as numbers if they all are, else alphabetically."""
    distinct = set(names)
    whole = all(name.removeprefix("-").isdecimal() for name in distinct)
    classes = tuple(sorted(distinct, key=(lambda name: (int(name), name)) if whole else None))
    position = {name: i for i, name in enumerate(classes)}
    return np.asarray([position[name] for name in names], np.int32), classes
