"""What a named data set of images is made of."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from charax.data._names import Augmentation
from charax.data._raw import RawDataset

PixelScaling = Literal["unit", "standardize"]
"""How pixels are scaled: to [0, 1], or to mean zero and unit standard deviation per channel of the training split."""

DIGIT_CLASSES = tuple(str(digit) for digit in range(10))
"""The classes of every data set of digits."""


@dataclass(frozen=True)
class Source:
    """A named data set of images: where its files are, how they are read, scaled and augmented.

    ```python
    from charax.data import DATASETS

    assert DATASETS["mnist"].shape == (28, 28, 1) and len(DATASETS["mnist"].mirrors) == 2
    ```
    """

    name: str
    """The name by which it is loaded."""
    description: str
    """What it shows, in one line."""
    origin: str
    """Who published it."""
    train: int
    """The number of samples outside the official test split."""
    test: int
    """The size of the official test split; 0 if there is none."""
    shape: tuple[int, ...]
    """The shape of one image: height, width, channels."""
    read: Callable[[Path], RawDataset]
    """Reads the samples from the folder that `fetch` returns."""
    scaling: PixelScaling = "unit"
    """How its pixels are scaled."""
    augmentation: Augmentation = "none"
    """How its training images are augmented."""
    files: Mapping[str, str] = field(default_factory=dict)
    """The MD5 of each file to download."""
    mirrors: tuple[str, ...] = ()
    """The addresses that serve the files, in the order in which they are tried."""
    find_folder: Callable[[], Path] | None = None
    """Finds the folder of a data set that is installed with a package, so that nothing is downloaded."""
