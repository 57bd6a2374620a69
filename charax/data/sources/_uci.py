"""The regression data of the UCI repository, in the splits that published tables of log-likelihoods use."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from charax.data._errors import DataError
from charax.data.sources._fetching import _own_folder

UCI: Mapping[str, int] = MappingProxyType(
    {"boston": 13, "concrete": 8, "energy": 8, "kin8nm": 8, "power": 4, "wine": 11, "yacht": 6}
)
"""The names of the data sets, and their numbers of features."""


class UCISplit(NamedTuple):
    """Training and test rows of one split.

    ```python
    import numpy as np
    from charax.data import UCISplit

    split = UCISplit(np.zeros((9, 2)), np.zeros(9), np.zeros((1, 2)), np.zeros(1))
    assert len(split.train_y) + len(split.test_y) == 10
    ```
    """

    train_x: Float[np.ndarray, "train features"]
    """The features of the training rows."""
    train_y: Float[np.ndarray, "train"]
    """Their targets."""
    test_x: Float[np.ndarray, "test features"]
    """The features of the test rows."""
    test_y: Float[np.ndarray, "test"]
    """Their targets."""


def load_uci(name: str, split: int) -> UCISplit:
    """Load one split of a data set of the UCI repository from `$CHARAX_DATA/uci/NAME.npz`.

    The file has features `x`, targets `y`, and `test`, the test rows of every split, padded with −1.

    Args:
        name: The name of the data set, one of `UCI`.
        split: The number of the split, from 0.

    Returns:
        The rows in their original order and units.

    Raises:
        DataError: If there is no such data set, file or split.

    ```python
    from charax.data import UCI

    assert UCI["boston"] == 13  # features
    ```
    """
    if name not in UCI:
        raise DataError(f"unknown data set {name!r}; choose from {', '.join(UCI)}")
    own = _own_folder("uci")
    path = None if own is None else own / f"{name}.npz"
    if path is None or not path.is_file():
        raise DataError(
            f"{name}.npz was not found in {own or '$CHARAX_DATA/uci'}: put it there, with features x, targets y and "
            "test, the test rows of each split, padded with -1"
        )
    with np.load(path) as file:
        x, y, splits = (np.asarray(file[key]) for key in ("x", "y", "test"))
    if not 0 <= split < len(splits):
        raise DataError(f"{path} has {len(splits)} splits, from 0 on; there is no split {split}")
    is_test = np.zeros(len(y), bool)
    is_test[splits[split][splits[split] >= 0]] = True
    return UCISplit(x[~is_test], y[~is_test], x[is_test], y[is_test])
