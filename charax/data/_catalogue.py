"""The data sets that are known by name, and where they come from."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from charax.data._errors import DataError


@dataclass(frozen=True)
class Source:
    """A data set's size, its files with their MD5, and the addresses that serve them, first choice first.

    ```python
    from charax.data import DATASETS

    assert DATASETS["mnist"].shape == (28, 28, 1) and len(DATASETS["mnist"].mirrors) == 2
    ```
    """

    name: str
    description: str
    origin: str
    train: int
    test: int
    shape: tuple[int, ...]
    files: Mapping[str, str] = field(default_factory=dict)
    mirrors: tuple[str, ...] = ()


_SOURCES = (
    Source(
        "digits",
        "handwritten digits in 16 grey levels; split by seed; embedded, nothing to download",
        "scikit-learn",
        train=1_797,
        test=0,
        shape=(8, 8, 1),
    ),
    Source(
        "mnist",
        "handwritten digits",
        "LeCun, Cortes, Burges",
        train=60_000,
        test=10_000,
        shape=(28, 28, 1),
        files={
            "train-images-idx3-ubyte.gz": "f68b3c2dcbeaaa9fbdd348bbdeb94873",
            "train-labels-idx1-ubyte.gz": "d53e105ee54ea40749a09fcbcd1e9432",
            "t10k-images-idx3-ubyte.gz": "9fb629c4189551a2d022fa330f9573f3",
            "t10k-labels-idx1-ubyte.gz": "ec29112dd5afa0611ce80d1b7f02629c",
        },
        mirrors=(
            "https://ossci-datasets.s3.amazonaws.com/mnist/",
            "https://storage.googleapis.com/cvdf-datasets/mnist/",
        ),
    ),
    Source(
        "cifar10",
        "small colour photographs of ten kinds of things, binary version",
        "Krizhevsky, University of Toronto",
        train=50_000,
        test=10_000,
        shape=(32, 32, 3),
        files={"cifar-10-binary.tar.gz": "c32a1d4ab5d03f1284b67883e8d87530"},
        mirrors=("https://www.cs.toronto.edu/~kriz/",),
    ),
    Source(
        "svhn",
        "cropped digits of house numbers in street photographs",
        "Netzer et al., Stanford University",
        train=73_257,
        test=26_032,
        shape=(32, 32, 3),
        files={
            "train_32x32.mat": "e26dedcc434d2e4c54c9b2d4a06d8373",
            "test_32x32.mat": "eb5a983be6a315427106f1b164d9cef3",
        },
        mirrors=("http://ufldl.stanford.edu/housenumbers/",),
    ),
)

DATASETS: Mapping[str, Source] = MappingProxyType({source.name: source for source in _SOURCES})
"""The data sets by name. `test` is the size of the official test part; 0 where there is none."""


def find_source(name: str) -> Source:
    if name not in DATASETS:
        raise DataError(f"there is no data set {name!r}; the names are {', '.join(DATASETS)}")
    return DATASETS[name]
