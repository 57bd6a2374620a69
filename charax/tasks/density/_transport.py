"""Flows between two data sets: flow matching from samples of a source that has no known density."""

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from charax import data
from charax.data import DataError, DensityData, Separator, Standardizer, TableEncoder, check_limit, read_inputs
from charax.models.flows import AbstractFlowDesign, ContinuousFlow
from charax.models.flows._continuous import solve_inverse
from charax.models.matching import wasserstein_distance
from charax.plotting import Section
from charax.solve import Solver
from charax.tasks.density._objective import MatchingDesign
from charax.tasks.density._spec import DensityBatch
from charax.train import (
    ADDED_LATER,
    AbstractTask,
    GeneratedSamples,
    Predictions,
    Program,
    Splits,
    mark_failures,
    restore,
    solve_in_batches,
    standardize,
)

_COMPARED = 2_000
"""Samples of which a Wasserstein distance is computed; its time grows with the cube of their number."""


@dataclass(frozen=True)
class TransportSpec:
    """What a flow between two data sets must know about them.

    ```python
    from charax.data import load_density_data
    from charax.tasks.density import TransportSpec

    moons, source = (load_density_data(name, points=50) for name in ("moons", "eight-gaussians"))
    assert TransportSpec.from_data(moons, source).source == "eight-gaussians"
    ```
    """

    shape: tuple[int, ...]
    """Shape of one sample."""
    standardizer: Standardizer
    """How raw samples of the data are scaled."""
    source: str
    """The name or the path of the source."""
    source_standardizer: Standardizer
    """How raw samples of the source are scaled."""
    source_encoder: TableEncoder | None = None
    """Which columns of a table of the source are read."""
    seed: int = field(default=0, metadata=ADDED_LATER)
    """The seed of the splits of the source."""
    separator: Separator | None = field(default=None, metadata=ADDED_LATER)
    """The separator of its columns."""

    @classmethod
    def from_data(
        cls, loaded: DensityData, source: DensityData, *, seed: int = 0, separator: Separator | None = None
    ) -> "TransportSpec":
        """Describe two data sets.

        Args:
            loaded: The data.
            source: Where the flow comes from.
            seed: The seed of the splits of the source.
            separator: The separator of its columns.

        Returns:
            Their description.

        Raises:
            ValueError: If one has images, their samples have different shapes, or both are the same.
        """
        if loaded.name == source.name:
            raise ValueError(f"{source.name} is the data and the source, and a flow between them does nothing")
        for each in (loaded, source):
            if each.levels is not None:
                raise ValueError(f"{each.name} has images: a source other than noise is for points and tables")
        if loaded.shape != source.shape:
            raise ValueError(
                f"a flow keeps the number of columns: {loaded.name} has {loaded.shape[0]} and {source.name} has "
                f"{source.shape[0]}"
            )
        scales = loaded.standardizer, source.name, source.standardizer
        return cls(loaded.shape, *scales, source.encoder, seed, separator)

    @staticmethod
    def pairing_notes(loaded: DensityData, source: DensityData) -> tuple[str, ...]:
        """Say how columns with other names are paired.

        Args:
            loaded: The data.
            source: Where the flow comes from.

        Returns:
            A line, if the columns of two tables have other names.
        """
        if not loaded.columns or not source.columns or loaded.columns == source.columns:
            return ()
        pairs = ", ".join(f"{theirs} with {own}" for theirs, own in zip(source.columns, loaded.columns, strict=True))
        return (f"The columns have other names in {source.name}, and are paired as they come: {pairs}",)


class TransportTask(AbstractTask):
    """Learn a flow between two data sets by flow matching. There is no density, since that of the source is unknown.

    ```python
    import jax
    import charax

    config = charax.DensityConfig(data="moons", source="eight-gaussians", objective="matching")
    flow = config.build_task(config.load_data().spec).build(jax.random.key(0))
    ```
    """

    design: AbstractFlowDesign = eqx.field(static=True)
    """Sizes of the flow."""
    solver: Solver
    """How to integrate."""
    spec: TransportSpec = eqx.field(static=True)
    """The description of both data sets."""
    matching: MatchingDesign = eqx.field(static=True)
    """The parts of flow matching."""

    @property
    def monitor(self) -> str:
        return "loss"

    @property
    def higher_is_better(self) -> bool:
        return False

    def build(self, key: PRNGKeyArray) -> eqx.Module:
        return self.design.build(self.spec.shape, key=key)

    def prepare_epoch(
        self, train: DensityBatch, order: Int[np.ndarray, "steps batch"], generator: np.random.Generator
    ) -> DensityBatch:
        return self.matching.couple(train, order, generator, scale=1.0, has_classes=False)

    def loss(
        self, model: eqx.Module, batch: DensityBatch, key: PRNGKeyArray
    ) -> tuple[Float[Array, ""], dict[str, Float[Array, ""]]]:
        return self._losses(model, batch, key).mean(), {"failed": jnp.zeros(()), "nfe": jnp.ones(())}

    def metrics(self, model: eqx.Module, batch: DensityBatch) -> dict[str, Float[Array, "batch"]]:
        # The same times in every evaluation, so that epochs can be compared.
        losses = self._losses(model, batch, jax.random.key(0))
        return {"loss": losses, "matching_loss": losses, "failed": jnp.zeros_like(losses)}

    def _losses(self, model: eqx.Module, batch: DensityBatch, key: PRNGKeyArray) -> Float[Array, "batch"]:
        inputs, source = jnp.asarray(batch.inputs), jnp.asarray(batch.source)
        return _flow(model).match(inputs, self.matching.build(), source=source, key=key)

    def refine(self, model: eqx.Module, splits: Splits, say: Any) -> tuple[eqx.Module, dict[str, Any]]:
        say("comparing the mapped source with the validation split")
        details = self.evaluation_details(model, splits.validation)
        other = _first(splits.train.inputs, len(splits.validation.inputs))
        same = wasserstein_distance(other, _first(splits.validation.inputs, len(other)))
        return model, {"validation_wasserstein": details["wasserstein"], "validation_wasserstein_of_data": same}

    def evaluation_details(self, model: eqx.Module, split: DensityBatch) -> dict[str, Any]:
        """The Wasserstein-2 distance between the mapped source and the data, in standardized units, of up to 2,000
        samples each."""
        target, source = (_first(np.asarray(part), len(split.inputs)) for part in (split.inputs, split.source))
        mapped = self.transport(model, source)
        fine = np.isfinite(mapped).all(axis=1)
        found = wasserstein_distance(mapped[fine], target[fine]) if fine.any() else math.nan
        return {"wasserstein": found, "compared": int(fine.sum())}

    def summary(self, best: dict[str, Any], test: dict[str, Any]) -> dict[str, Any]:
        kept = ("validation_wasserstein", "validation_wasserstein_of_data")
        return {
            "matching_loss": test["test_matching_loss"],
            "validation_matching_loss": best["validation_matching_loss"],
            **{name: test[name] for name in kept if name in test},
            "objective": "matching",
        }

    def transport(
        self, model: eqx.Module, source: Float[np.ndarray, "n columns"], *, batch_size: int = 1024
    ) -> Float[np.ndarray, "n columns"]:
        """Map samples of the source to data.

        Args:
            model: The trained flow.
            source: Standardized samples of the source.
            batch_size: Maximum number of samples per solve.

        Returns:
            Standardized samples of the data; NaN where the solve failed.
        """
        solve = lambda rows, solver: (_map(_flow(model), jnp.asarray(source[rows]), solver),)
        (mapped,) = solve_in_batches(solve, len(source), self.solver, batch_size=batch_size)
        return mapped

    def predict(
        self, model: eqx.Module, inputs: Path, *, strict: bool = False, class_name: str | None = None
    ) -> Predictions:
        """Map rows of the source, in its units, to the data, in theirs."""
        spec = self.spec
        raw, names = read_inputs(inputs, shape=spec.shape, encoder=spec.source_encoder)
        mapped = self.transport(model, spec.source_standardizer.apply(raw).astype(np.float32))
        values = spec.standardizer.inverse(mapped)
        header = ["input", *(f"u{number + 1}" for number in range(values.shape[1]))]
        rows = [[name, *(f"{value:.6g}" for value in row)] for name, row in zip(names, values, strict=True)]
        meanings = (
            "input: the row or index of the input, a sample of the source",
            "u1, u2, …: where the flow takes it, in the units and the order of the columns of the data",
        )
        return mark_failures(
            Predictions(header, rows, meanings=meanings),
            np.asarray(~np.isfinite(values).all(axis=1)),
            inputs=1,
            names=[f"{inputs}, input {name}" for name in names],
            reason="the solve failed: the input may be far from the source",
            strict=strict,
        )

    def sample(
        self,
        model: eqx.Module,
        n: int,
        *,
        seed: int = 0,
        temperature: float = 1.0,
        class_name: str | None = None,
        context: Path | None = None,
        guidance: float = 0.0,
    ) -> GeneratedSamples:
        for name, given in (
            ("temperature", temperature != 1),
            ("context", context is not None),
            ("guidance", guidance),
        ):
            if given:
                raise ValueError(f"the flow starts from samples of {self.spec.source}: leave --{name} out")
        check_limit("cells", n * math.prod(self.spec.shape), f"{n:,} samples of shape {self.spec.shape}", "have")
        mapped = self.transport(model, self.draw_source(n, seed=seed))
        return GeneratedSamples(self.spec.standardizer.inverse(mapped).astype(np.float32), None, None)

    def draw_source(self, n: int, *, seed: int) -> Float[np.ndarray, "n columns"]:
        """Draw samples of the source: new points of a toy, rows of the training split of a file.

        Args:
            n: Number of samples.
            seed: Seed of the samples.

        Returns:
            Standardized samples.
        """
        if self.spec.source in data.TOYS:
            return data.sample_toy(self.spec.source, n, seed=_FIRST_SEED + seed)
        spec = self.spec
        try:
            source = data.load_density_data(spec.source, seed=spec.seed, separator=spec.separator)
        except DataError as error:
            raise ValueError(
                f"the flow starts from rows of its source, which cannot be read: {error}. Put the file back, or map "
                "rows of another one: charax predict RUN FILE"
            ) from None
        source = source.order_columns(() if spec.source_encoder is None else spec.source_encoder.columns)
        drawn = np.random.default_rng(seed).integers(len(source.train.inputs), size=n)
        raw = source.standardizer.inverse(np.asarray(source.train.inputs[drawn], np.float64))
        return spec.source_standardizer.apply(raw).astype(np.float32)

    def programs(self, model: eqx.Module) -> dict[str, Program]:
        spec, flow = self.spec, _flow(model)

        def transport(raw: Array) -> Array:
            u, _ = solve_inverse(flow, standardize(raw, spec.source_standardizer), self.solver, None)
            return restore(u, spec.standardizer)

        note = f"Samples of the data, from samples of {spec.source}; both in their own units."
        return {"transport": Program(transport, {"input": spec.shape}, note)}

    def plot(self, model: eqx.Module, splits: Splits, folder: Path, *, data: str) -> list[Path]:
        from charax.tasks.density._transport_plots import plot_transport

        return plot_transport(self, _flow(model), splits, folder)

    def report(self, model: eqx.Module, splits: Splits, *, data: str) -> list[Section]:
        from charax.tasks.density._transport_plots import report_transport

        return report_transport(self, _flow(model), splits)


_FIRST_SEED = 1_000_000
"""Samples of a toy are drawn with other seeds than its splits."""


def _flow(model: eqx.Module) -> ContinuousFlow:
    assert isinstance(model, ContinuousFlow)
    return model


@eqx.filter_jit
def _map(flow: ContinuousFlow, source: Array, solver: Solver) -> Array:
    u, outcome = solve_inverse(flow, source, solver, None)
    return jnp.where((outcome == 0)[..., None] if outcome.ndim else outcome == 0, u, jnp.nan)


def _first(rows: np.ndarray, count: int) -> np.ndarray:
    return np.asarray(rows[: min(count, _COMPARED)])
