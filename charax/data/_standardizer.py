"""Standardize columns or channels to mean zero and unit standard deviation."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Float32, Float64, Shaped

from charax.data._errors import DataError


@dataclass(frozen=True)
class Standardizer:
    """The affine map from raw values to what a model reads: `(raw - mean) / std`, per column or per channel.

    It holds plain numbers, so that it can be hashed, pickled and stored as JSON.

    ```python
    import numpy as np
    from charax.data import Standardizer

    raw = np.array([[1.0, 5.0], [3.0, 5.0]])
    standardizer = Standardizer.fit(raw)
    assert standardizer.apply(raw).tolist() == [[-1, 0], [1, 0]]
    assert (standardizer.inverse(standardizer.apply(raw)) == raw).all()
    ```
    """

    mean: tuple[float, ...]
    """The mean of each column or channel, or a single number for all."""
    std: tuple[float, ...]
    """The standard deviation of each, or a single number for all."""
    max_value: float | None = None
    """The raw value of a fully bright pixel, which puts images from files on the scale of the data; None if the inputs
    are not known to be images."""

    @classmethod
    def to_unit(cls, max_value: float) -> "Standardizer":
        """Scale images from [0, max_value] to [0, 1].

        Args:
            max_value: The raw value of a fully bright pixel.

        Returns:
            The standardizer.
        """
        return cls((0.0,), (max_value,), max_value)

    @classmethod
    def fit(
        cls,
        values: Shaped[np.ndarray, "n *shape"],
        *,
        weights: Float[np.ndarray, "n"] | None = None,
        max_value: float | None = None,
    ) -> "Standardizer":
        """Compute the mean and the standard deviation over all axes but the last.

        A constant column or channel keeps its unit: it is only centered.

        Args:
            values: Raw values.
            weights: How much each row counts; all count the same if left out.
            max_value: The raw value of a fully bright pixel, for images.

        Returns:
            The standardizer.
        """
        if weights is None:
            axes = tuple(range(values.ndim - 1))
            mean, std = values.mean(axes, dtype=np.float64), values.std(axes, dtype=np.float64)
        else:
            rows = values.reshape(-1, values.shape[-1])
            weights = np.repeat(weights, len(rows) // len(values))
            mean = np.average(rows, axis=0, weights=weights)
            std = np.sqrt(np.average((rows - mean) ** 2, axis=0, weights=weights))
        return cls.from_moments(mean, std, max_value=max_value)

    @classmethod
    def from_moments(
        cls, mean: Float64[np.ndarray, "c"], std: Float64[np.ndarray, "c"], *, max_value: float | None = None
    ) -> "Standardizer":
        """Standardize by known means and standard deviations. A constant column keeps its unit.

        Args:
            mean: The mean of each column or channel.
            std: The standard deviation of each.
            max_value: The raw value of a fully bright pixel, for images.

        Returns:
            The standardizer.
        """
        std = np.where(std > 1e-12 * np.abs(mean), std, 1.0)
        return cls(tuple(mean.tolist()), tuple(std.tolist()), max_value)

    def apply(self, raw: Shaped[np.ndarray, "n *shape"]) -> Float32[np.ndarray, "n *shape"]:
        """Standardize raw values.

        Args:
            raw: Values in the units of the data.

        Returns:
            What the model reads.

        Raises:
            DataError: If there is another number of columns or channels than in `mean`.
        """
        self._check(raw)
        # Bytes are exact in single precision; a column of, say, timestamps keeps its digits only in double.
        dtype = np.float32 if raw.dtype.itemsize == 1 else np.float64
        out = raw.astype(dtype, order="C")
        out -= np.asarray(self.mean, dtype)
        out /= np.asarray(self.std, dtype)
        return out.astype(np.float32, copy=False)

    def inverse(self, standardized: Float[np.ndarray, "n *shape"]) -> Float64[np.ndarray, "n *shape"]:
        """Map standardized values back to the units of the data.

        Args:
            standardized: Values as `apply` returns them.

        Returns:
            Raw values, in double precision.

        Raises:
            DataError: If there is another number of columns or channels than in `mean`.
        """
        self._check(standardized)
        return np.asarray(self.mean) + np.asarray(self.std) * standardized

    def select(self, columns: Sequence[int]) -> "Standardizer":
        """Select some of the columns.

        Args:
            columns: Their numbers.

        Returns:
            The standardizer of these columns.
        """
        pick = lambda values: tuple(values[column] for column in columns)
        return Standardizer(pick(self.mean), pick(self.std), self.max_value)

    def _check(self, values: np.ndarray) -> None:
        if len(self.mean) not in (1, values.shape[-1]):
            raise DataError(
                f"the inputs have {values.shape[-1]} columns or channels where {len(self.mean)} are expected"
            )
