"""The data sets of images, by name."""

from collections.abc import Mapping
from types import MappingProxyType

from charax.data._errors import DataError
from charax.data.sources._cifar10 import CIFAR10
from charax.data.sources._digits import DIGITS
from charax.data.sources._mnist import MNIST
from charax.data.sources._source import Source
from charax.data.sources._svhn import SVHN

DATASETS: Mapping[str, Source] = MappingProxyType({source.name: source for source in (DIGITS, MNIST, CIFAR10, SVHN)})
"""The data sets by name. A new one is a module with its `Source`, and an entry here."""


def find_source(name: str) -> Source:
    """Look a data set up."""
    if name not in DATASETS:
        raise DataError(f"there is no data set {name!r}; the names are {', '.join(DATASETS)}")
    return DATASETS[name]
