"""What a flow must know about its data, and the samples that it is trained on."""

from dataclasses import dataclass, field
from typing import NamedTuple

from jaxtyping import Float, Int, Shaped
from numpy import argsort, asarray, concatenate, ndarray

from charax.data import AbstractStoredRows, DensityData, Standardizer, TableEncoder
from charax.train import ADDED_LATER


class DensityBatch(NamedTuple):
    """Samples of a density, with whatever belongs to each of them.

    ```python
    import numpy as np
    from charax.tasks.density import DensityBatch

    batch = DensityBatch(np.zeros((5, 2), np.float32), np.zeros(5, np.int32))
    assert batch.context is None
    ```
    """

    inputs: Float[ndarray, "n *shape"] | AbstractStoredRows
    """The samples; on disk, if they are too large for memory."""
    targets: Int[ndarray, "n"]
    """Class indices; 0 where there are no classes."""
    context: Float[ndarray, "n columns"] | AbstractStoredRows | None = None
    """The columns on which the density is conditioned."""
    source: Float[ndarray, "n *shape"] | None = None
    """The partner of each sample in the source of flow matching; None to draw it in the step."""

    def take(self, count: int) -> "DensityBatch":
        """Take the first samples into memory.

        Args:
            count: How many.

        Returns:
            The samples, with whatever belongs to them.
        """
        return DensityBatch(*(None if part is None else asarray(part[:count]) for part in self))  # pyright: ignore[reportArgumentType]


@dataclass(frozen=True)
class DensitySpec:
    """What a flow must know about its data.

    ```python
    import charax

    spec = charax.DensityConfig(data="moons").load_data().spec
    assert spec.shape == (2,) and spec.levels is None
    ```
    """

    shape: tuple[int, ...]
    """Shape of one sample."""
    levels: int | None
    """Grey levels of images; None for numbers."""
    standardizer: Standardizer
    """How raw samples are scaled."""
    encoder: TableEncoder | None = None
    """Which columns of a table are read."""
    classes: tuple[str, ...] = ()
    """The classes to condition on; empty for one density of all samples."""
    flip: bool = False
    """Whether training images are mirrored at random."""
    context: tuple[int, ...] = ()
    """The columns of a table to condition on, by their number; empty for a density of all columns."""
    logit_mean: tuple[float, ...] = ()
    """The mean logit of every pixel of the training images, for a flow that standardizes them."""
    logit_std: tuple[float, ...] = ()
    """The standard deviation of the logit of every pixel."""
    edges: tuple[float, ...] = field(default=(), metadata=ADDED_LATER)
    """The edges of the bins of histograms, from 0 to 1, for a flow that makes every pixel normal."""
    probabilities: tuple[tuple[float, ...], ...] = field(default=(), metadata=ADDED_LATER)
    """The probability of every bin, for every pixel of the training images."""
    pixel_mean: tuple[float, ...] = field(default=(), metadata=ADDED_LATER)
    """The mean of every pixel of the training images, for a flow of whitened images."""
    coefficient_std: tuple[float, ...] = field(default=(), metadata=ADDED_LATER)
    """The standard deviation of every coefficient of the cosine transform of their rotated channels."""
    rotation: tuple[float, ...] = field(default=(), metadata=ADDED_LATER)
    """The rotation of the channels, row by row."""

    @classmethod
    def from_data(
        cls, loaded: DensityData, *, conditional: bool = False, flip: bool = False, context: tuple[str, ...] = ()
    ) -> "DensitySpec":
        """Describe a data set.

        Args:
            loaded: The data set.
            conditional: Condition on its classes.
            flip: Mirror training images at random.
            context: Condition on these columns.

        Returns:
            Its description.

        Raises:
            ValueError: If there is no such column, or none is left.
        """
        classes = loaded.classes if conditional else ()
        numbers = _find_columns(loaded, context)
        shape = (loaded.shape[0] - len(numbers),) if numbers else loaded.shape
        return cls(shape, loaded.levels, loaded.standardizer, loaded.encoder, classes, flip, numbers)

    @property
    def loss_name(self) -> str:
        """What the loss of a sample is called: `nll`, or `bits_per_dim` for images."""
        return "nll" if self.levels is None else "bits_per_dim"

    @property
    def scaling(self) -> dict[str, tuple]:
        """The settings of a `SingleScaleFlowDesign` by which pixels are scaled."""
        if self.rotation:
            return {"mean": self.pixel_mean, "std": self.coefficient_std, "rotation": self.rotation}
        if self.edges:
            return {"edges": self.edges, "probabilities": self.probabilities}
        return {"mean": self.logit_mean, "std": self.logit_std}

    @property
    def own_columns(self) -> list[int]:
        """The columns whose density is learned, by their number."""
        return [number for number in range(self.shape[0] + len(self.context)) if number not in self.context]

    @property
    def context_names(self) -> tuple[str, ...]:
        """The names of the columns to condition on."""
        return () if self.encoder is None else tuple(self.encoder.columns[number] for number in self.context)

    def join_columns(
        self, values: Float[ndarray, "n *shape"], context: Float[ndarray, "n columns"] | None
    ) -> Float[ndarray, "n *whole"]:
        """Put the columns to condition on back where they were.

        Args:
            values: Standardized samples, without those columns.
            context: Those columns, if there are any.

        Returns:
            The samples with all columns.
        """
        if context is None:
            return values
        order = argsort([*self.own_columns, *self.context])
        return concatenate([values, context], axis=1)[:, order]

    def batch(
        self, inputs: Shaped[ndarray, "n *shape"] | AbstractStoredRows, targets: Int[ndarray, "n"]
    ) -> DensityBatch:
        """Separate the columns to condition on from the others.

        Args:
            inputs: Standardized samples, with all columns.
            targets: Class indices.

        Returns:
            The samples.
        """
        if not self.context:
            return DensityBatch(inputs, targets)
        if isinstance(inputs, AbstractStoredRows):
            return DensityBatch(inputs.select(self.own_columns), targets, inputs.select(self.context))
        return DensityBatch(inputs[:, self.own_columns], targets, inputs[:, list(self.context)])


def _find_columns(loaded: DensityData, names: tuple[str, ...]) -> tuple[int, ...]:
    if not names:
        return ()
    columns = loaded.columns
    unknown = [name for name in names if name not in columns]
    if unknown:
        known = (
            f"its columns are {', '.join(columns)}" if columns else "it has no named columns, so leave --context out"
        )
        raise ValueError(f"{loaded.name} has no column {', '.join(unknown)} to condition on: {known}")
    numbers = tuple(sorted({columns.index(name) for name in names}))
    if len(numbers) == len(columns):
        raise ValueError(f"{loaded.name}: all columns are context, so there is no density to learn: leave one out")
    return numbers
