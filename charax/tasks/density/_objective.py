"""By what a flow is trained: its likelihood, or flow matching."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from charax.data import AbstractStoredRows, Split
from charax.models.matching import (
    COUPLINGS,
    PATHS,
    TIMES,
    FlowMatching,
    OptimalTransport,
    couple_batches,
    exchange_partners,
)
from charax.tasks.density._names import CouplingName, PathName, TimesName
from charax.tasks.density._spec import DensityBatch

_ROUNDS, _ROUNDS_BETWEEN_DATA = 24, 64
"""Partners are exchanged between all rows in so many rounds. A likelihood does not ask for the straightest paths."""
_SIZE = 128
"""Before that, the partners of few rows, and of rows with classes, are chosen within so many of them: exchanges alone
would end further away from the optimum."""
_COLUMN_WEIGHT = 100.0
"""Cost of a squared distance of 1 between standardized columns of context, of which no two rows are equal."""


@dataclass(frozen=True)
class MatchingDesign:
    """The parts of flow matching, by name.

    ```python
    from charax.models.matching import FlowMatching
    from charax.tasks.density import MatchingDesign

    assert isinstance(MatchingDesign(path="linear", coupling="ot").build(), FlowMatching)
    ```
    """

    path: PathName = "linear"
    """The path between a sample and its partner in the source."""
    times: TimesName = "data"
    """The distribution of the times."""
    coupling: CouplingName = "independent"
    """How partners are chosen."""

    def build(self) -> FlowMatching:
        """Build the objective.

        Returns:
            The objective.
        """
        return FlowMatching(PATHS[self.path], TIMES[self.times])

    def couple(
        self,
        train: DensityBatch,
        order: Int[np.ndarray, "steps batch"],
        generator: np.random.Generator,
        *,
        scale: float,
        has_classes: bool,
    ) -> DensityBatch:
        """Choose the partners of all samples for one epoch.

        Args:
            train: The training split.
            order: The rows of each mini-batch.
            generator: The random numbers of this epoch.
            scale: The standard deviation of a normal source.
            has_classes: Whether the density is conditioned on classes.

        Returns:
            The split with its partners. It is returned as it is if they can be drawn independently in the step.

        Raises:
            ValueError: If partners must be chosen among samples that are on disk.
        """
        if train.source is None and self.coupling == "independent":
            return train
        if isinstance(train.inputs, AbstractStoredRows) or isinstance(train.context, AbstractStoredRows):
            raise ValueError(
                "partners by optimal transport are chosen in memory, and these samples are on disk: add --coupling "
                "independent"
            )
        if train.source is None:
            source, rounds = scale * generator.standard_normal(train.inputs.shape, np.float32), _ROUNDS
        else:
            source, rounds = train.source[generator.permutation(len(train.source))], _ROUNDS_BETWEEN_DATA
        # Slices, because in many processes only rows that are asked for are in memory.
        inputs, targets = train.inputs[:], train.targets[:] if has_classes else None
        if train.context is None:
            return train._replace(source=self._couple(inputs, source, targets, generator, rounds))
        # Once: after an exchange, a partner no longer tells whose context it was drawn for.
        coupling = OptimalTransport(_COLUMN_WEIGHT) if self.coupling == "ot" else COUPLINGS[self.coupling]
        condition = _join(train.context[:], targets)
        return train._replace(source=couple_batches(coupling, inputs, source, order, condition))

    def _couple(
        self,
        inputs: Float[np.ndarray, "n *state"],
        source: Float[np.ndarray, "n *state"],
        classes: Int[np.ndarray, "n"] | None,
        generator: np.random.Generator,
        rounds: int,
    ) -> Float[np.ndarray, "n *state"]:
        if self.coupling == "independent":
            return source
        if classes is not None or len(inputs) <= _SIZE:
            order = generator.permutation(len(inputs))[None]
            source = couple_batches(COUPLINGS[self.coupling], inputs, source, order, classes, size=_SIZE)
        return exchange_partners(inputs, source, rounds=rounds, classes=classes, generator=generator)

    def pair(self, samples: Split, source: Split) -> DensityBatch:
        """Choose partners among samples of another data set, once.

        Args:
            samples: A split of the data.
            source: A split of the source. It is repeated, or cut, to as many samples.

        Returns:
            The samples with their partners.

        Raises:
            ValueError: If samples are on disk.
        """
        if isinstance(samples.inputs, AbstractStoredRows) or isinstance(source.inputs, AbstractStoredRows):
            raise ValueError("partners are chosen in memory, and these samples are on disk: use fewer of them")
        rows = np.arange(len(samples.inputs))
        partners = np.resize(np.arange(len(source.inputs)), len(rows))
        drawn = source.inputs[partners]
        coupled = self._couple(samples.inputs, drawn, None, np.random.default_rng(0), _ROUNDS_BETWEEN_DATA)
        return DensityBatch(samples.inputs, samples.targets, source=coupled)


def _join(context: Float[np.ndarray, "n columns"], targets: Int[np.ndarray, "n"] | None) -> Float[np.ndarray, "n more"]:
    return context if targets is None else np.column_stack([context, targets])
