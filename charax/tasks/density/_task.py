"""Densities: negative log-likelihood, or bits per dimension of images."""

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Float32, Int, PRNGKeyArray

from charax.data import check_limit, read_inputs
from charax.models.flows import (
    AbstractFlow,
    AbstractFlowDesign,
    AbstractTrace,
    ExactTrace,
    FlowResult,
    Hutchinson,
    HutchPlusPlus,
    hide_context,
)
from charax.plotting import Section
from charax.solve import Solver
from charax.tasks.density._names import EXACT_UP_TO
from charax.tasks.density._objective import MatchingDesign
from charax.tasks.density._options import vector_options
from charax.tasks.density._spec import DensityBatch, DensitySpec
from charax.train import (
    AbstractTask,
    GeneratedSamples,
    Predictions,
    Program,
    Splits,
    mark_failures,
    solve_in_batches,
)

TRACES: dict[str, Callable[[int], AbstractTrace]] = {
    "exact": lambda probes: ExactTrace(),
    "hutchinson": lambda probes: Hutchinson(probes),
    "gaussian": lambda probes: Hutchinson(probes, "gaussian"),
    "hutch++": lambda probes: HutchPlusPlus(),
}
"""The traces by name, for a number of probes."""

_FINETUNE_FROM = 0.75
"""The fraction of the epochs after which flow matching is followed by maximum likelihood."""

_MEANINGS = {
    "log density": (
        "input: the row, file or index of the input",
        "log density: natural logarithm of the density of the standardized columns; larger is more typical",
    ),
    "bits per dimension": (
        "input: the file or index of the image",
        "bits per dimension: negative log2-likelihood of the grey levels per pixel; smaller is more typical",
    ),
}


class DensityTask(AbstractTask):
    """Learn the density of a data set.

    ```python
    import jax
    import charax

    config = charax.DensityConfig(data="moons")
    flow = config.build_task(config.load_data().spec).build(jax.random.key(0))
    ```
    """

    design: AbstractFlowDesign = eqx.field(static=True)
    """Sizes of the flow."""
    solver: Solver
    """How to integrate."""
    spec: DensitySpec = eqx.field(static=True)
    """The description of the data."""
    trace: str = eqx.field(static=True, default="exact")
    """How the trace is computed in training, by name."""
    probes: int = eqx.field(static=True, default=1)
    """Random directions of an estimated trace."""
    hidden_classes: float = eqx.field(static=True, default=0.0)
    """The fraction of training samples whose context is hidden."""
    kinetic_penalty: float = eqx.field(static=True, default=0.0)
    """Weight of the kinetic energy."""
    jacobian_penalty: float = eqx.field(static=True, default=0.0)
    """Weight of the squared Frobenius norm of the field's Jacobian."""
    matching: MatchingDesign | None = eqx.field(static=True, default=None)
    """The parts of flow matching; None to train by likelihood."""
    finetuned: bool = eqx.field(static=True, default=False)
    """Whether flow matching is followed by maximum likelihood, in the last quarter of the epochs."""
    passes_per_epoch: int = eqx.field(static=True, default=1)
    """Passes over the training split in an epoch."""

    @property
    def monitor(self) -> str:
        return "loss"

    @property
    def higher_is_better(self) -> bool:
        return False

    @property
    def conditional_classes(self) -> tuple[str, ...]:
        return self.spec.classes

    def build(self, key: PRNGKeyArray) -> AbstractFlow:
        return self.design.build(self.spec.shape, key=key)

    @property
    def objective(self) -> str:
        """By what the flow is trained, as `--json` prints it."""
        if self.matching is None:
            return "likelihood"
        return "matching+likelihood" if self.finetuned else "matching"

    @property
    def passes(self) -> int:
        return self.passes_per_epoch

    @property
    def compiler_options(self) -> Mapping[str, bool | int | str]:
        return vector_options() if self.spec.levels is None else {}

    @property
    def stages(self) -> tuple[tuple[float, "DensityTask"], ...]:
        likelihood = replace(self, matching=None, finetuned=False)
        return ((0.0, self), (_FINETUNE_FROM, likelihood)) if self.finetuned else ((0.0, self),)

    def prepare_epoch(
        self, train: DensityBatch, order: Int[np.ndarray, "steps batch"], generator: np.random.Generator
    ) -> DensityBatch:
        if self.matching is None:
            return train
        scale = getattr(self.design, "scale", 1.0)
        return self.matching.couple(train, order, generator, scale=scale, has_classes=bool(self.spec.classes))

    def loss(
        self, model: eqx.Module, batch: DensityBatch, key: PRNGKeyArray
    ) -> tuple[Float[Array, ""], dict[str, Float[Array, ""]]]:
        key, flip_key, hide_key = jax.random.split(key, 3) if self.hidden_classes else (*jax.random.split(key), key)
        inputs = jnp.asarray(batch.inputs)
        if self.spec.flip:
            flip = jax.random.bernoulli(flip_key, shape=(len(inputs), 1, 1, 1))
            inputs = jnp.where(flip, inputs[:, :, ::-1], inputs)
        batch, regularized = batch._replace(inputs=inputs), self.kinetic_penalty > 0 or self.jacobian_penalty > 0
        context = self.context_of(batch)
        if context is not None and self.hidden_classes:
            context = hide_context(context, self.hidden_classes, key=hide_key)
        if self.matching is not None:
            source = None if batch.source is None else jnp.asarray(batch.source)
            losses = _flow(model).match(inputs, self.matching.build(), source=source, context=context, key=key)
            # A stage of likelihood reports more; null is what an epoch of matching has to say about it.
            unknown = (self.spec.loss_name, "kinetic", "jacobian") if self.finetuned and regularized else ()
            return losses.mean(), {
                "failed": jnp.zeros(()),
                "nfe": jnp.ones(()),
                **dict.fromkeys(unknown, jnp.full((), jnp.nan)),
            }
        result = self._evaluate(model, inputs, context, self._training_trace, key, with_energies=regularized)
        likelihood = _flow(model).loss(result.log_prob).mean()
        values = {name: value.mean() for name, value in _counts(result, len(inputs)).items()}
        if result.kinetic is None or result.jacobian_norm is None:
            return likelihood, values
        kinetic, jacobian = result.kinetic.mean(), result.jacobian_norm.mean()
        loss = likelihood + self.kinetic_penalty * kinetic + self.jacobian_penalty * jacobian
        return loss, {**values, self.spec.loss_name: likelihood, "kinetic": kinetic, "jacobian": jacobian}

    def metrics(self, model: eqx.Module, batch: DensityBatch) -> dict[str, Float[Array, "batch"]]:
        # The same noise in every evaluation, so that epochs can be compared.
        inputs, context = jnp.asarray(batch.inputs), self.context_of(batch)
        result = self._evaluate(model, inputs, context, self.evaluation_trace, jax.random.key(0))
        loss = _flow(model).loss(result.log_prob)
        return {"loss": loss, self.spec.loss_name: loss, **_counts(result, len(batch.inputs))}

    def summary(self, best: dict[str, Any], test: dict[str, Any]) -> dict[str, Any]:
        name = self.spec.loss_name
        return {
            name: test[f"test_{name}"],
            f"validation_{name}": best[f"validation_{name}"],
            "objective": self.objective,
        }

    def predict(
        self, model: eqx.Module, inputs: Path, *, strict: bool = False, class_name: str | None = None
    ) -> Predictions:
        """Compute the log-density of inputs, or their bits per dimension if they are images.

        The log-density is that of standardized columns. A conditional density without a `class_name` has one column
        per class.
        """
        spec = self.spec
        shape = (spec.shape[0] + len(spec.context),) if spec.context else spec.shape
        raw, names = read_inputs(inputs, shape=shape, encoder=spec.encoder, max_value=spec.standardizer.max_value)
        quantity = "log density" if spec.levels is None else "bits per dimension"
        classes = (class_name,) if class_name is not None else spec.classes or (None,)
        header = ["input", *(quantity if each is None else f"{quantity} of {each}" for each in classes)]
        values = np.stack([self.log_density(model, raw, each) for each in classes], axis=1)
        rows = [[name, *(f"{value:.6g}" for value in row)] for name, row in zip(names, values, strict=True)]
        return mark_failures(
            Predictions(header, rows, meanings=_MEANINGS[quantity]),
            np.asarray(~np.isfinite(values).all(axis=1)),
            inputs=1,
            names=[f"{inputs}, input {name}" for name in names],
            reason="the solve failed: the input may be far from the training data",
            strict=strict,
        )

    def log_density(
        self, model: eqx.Module, raw: np.ndarray, class_name: str | None = None, *, batch_size: int = 1024
    ) -> Float[np.ndarray, "n"]:
        """Compute log-densities, or bits per dimension of images.

        Args:
            model: The trained flow.
            raw: Raw samples, as `read_inputs` returns them.
            class_name: The class to condition on.
            batch_size: Maximum number of samples per solve.

        Returns:
            One number per sample; NaN where the solve failed.
        """
        label = 0 if class_name is None else self.spec.classes.index(class_name)
        whole = self.spec.batch(self.spec.standardizer.apply(raw), np.full(len(raw), label, np.int32))
        solve = lambda rows, solver: (
            _losses(replace(self, solver=solver), model, jax.tree.map(lambda part: part[rows], whole)),
        )
        (loss,) = solve_in_batches(solve, len(raw), self.solver, batch_size=batch_size)
        return -loss if self.spec.levels is None else loss

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
        if guidance and self.spec.context:
            raise ValueError("a density that is conditioned on columns cannot be guided: leave --guidance out")
        if guidance and not self.hidden_classes:
            raise ValueError(
                "guidance needs a flow that knows the density of all classes, too: train it with --conditional "
                "--hidden-classes 0.1"
            )
        spec, classes = self.spec, self.spec.classes
        check_limit("cells", n * math.prod(spec.shape), f"{n:,} samples of shape {spec.shape}", "have")
        chosen = np.arange(n) % max(len(classes), 1) if class_name is None else np.full(n, classes.index(class_name))
        columns = self._read_context(context)
        given = None if columns is None else columns[np.arange(n) % len(columns)]
        batch = DensityBatch(np.zeros((n, *spec.shape), np.float32), chosen.astype(np.int32), given)
        values = self.sample_given(model, batch, seed=seed, temperature=temperature, guidance=guidance)
        labels = [classes[label] for label in chosen] if classes else None
        return GeneratedSamples(values, spec.standardizer.max_value, labels)

    def sample_given(
        self, model: eqx.Module, batch: DensityBatch, *, seed: int = 0, temperature: float = 1.0, guidance: float = 0.0
    ) -> Float32[np.ndarray, "n *whole"]:
        """Draw a sample for every row of a batch, given its class and its context.

        Args:
            model: The trained flow.
            batch: The classes and the context; its inputs are not used, except for their number.
            seed: Seed of the samples.
            temperature: Multiplies the standard deviation of the base distribution.
            guidance: Above 0, samples are more typical of their class.

        Returns:
            The samples with all columns, in the units of the data.
        """
        drawn = _flow(model).sample(
            len(batch.inputs),
            key=jax.random.key(seed),
            solver=self.solver,
            context=self.context_of(batch),
            temperature=temperature,
            guidance=guidance,
        )
        values = self.spec.join_columns(np.asarray(drawn, np.float32), batch.context)  # pyright: ignore[reportArgumentType]
        return self.spec.standardizer.inverse(values).astype(np.float32)

    def _read_context(self, path: Path | None) -> Float32[np.ndarray, "rows columns"] | None:
        """Rows of the columns that the density is conditioned on, standardized."""
        spec, names = self.spec, self.spec.context_names
        if not names:
            if path is not None:
                raise ValueError("this density is not conditioned on columns: leave --context out")
            return None
        if path is None:
            raise ValueError(
                f"this density is conditioned on {', '.join(names)}: give rows of them with --context FILE"
            )
        raw, _ = read_inputs(path, shape=(len(names),), columns=names)
        own = spec.standardizer.select(spec.context)
        return own.apply(raw).astype(np.float32)

    def programs(self, model: eqx.Module) -> dict[str, Program]:
        from charax.tasks.density._programs import density_programs

        return density_programs(self, _flow(model))

    def plot(self, model: eqx.Module, splits: Splits, folder: Path, *, data: str) -> list[Path]:
        from charax.tasks.density._plots import plot_flow

        return plot_flow(self, model, splits, folder)

    @property
    def evaluation_trace(self) -> AbstractTrace:
        """How the trace is computed where nothing is learned."""
        return ExactTrace() if math.prod(self.spec.shape) <= EXACT_UP_TO else self._training_trace

    @property
    def _training_trace(self) -> AbstractTrace:
        return TRACES[self.trace](self.probes)

    def report(self, model: eqx.Module, splits: Splits, *, data: str) -> list[Section]:
        from charax.tasks.density._report import report_flow

        return report_flow(self, model, splits)

    def context_of(self, batch: DensityBatch) -> Float[Array, "batch columns"] | None:
        """Join everything that a sample is conditioned on.

        Args:
            batch: Some samples.

        Returns:
            The class as a vector of 0 and 1, and the columns of context; None for a density that is not conditional.
        """
        classes = [jax.nn.one_hot(batch.targets, len(self.spec.classes))] if self.spec.classes else []
        columns = [] if batch.context is None else [jnp.asarray(batch.context)]
        return jnp.concatenate([*classes, *columns], axis=1) if classes or columns else None

    def _evaluate(
        self,
        model: eqx.Module,
        inputs: Float[Array, "batch *shape"],
        context: Float[Array, "batch columns"] | None,
        trace: AbstractTrace,
        key: PRNGKeyArray,
        *,
        with_energies: bool = False,
    ) -> FlowResult:
        return _flow(model).evaluate(
            inputs, solver=self.solver, trace=trace, context=context, with_energies=with_energies, key=key
        )


def _flow(model: eqx.Module) -> AbstractFlow:
    assert isinstance(model, AbstractFlow)
    return model


@eqx.filter_jit
def _losses(task: DensityTask, model: eqx.Module, batch: DensityBatch) -> Array:
    return task.metrics(model, batch)["loss"]


def _counts(result: FlowResult, batch: int) -> dict[str, Array]:
    """Whether the solve of each sample failed, and its function evaluations where they are known."""
    each = lambda value: jnp.broadcast_to(value, (batch,)).astype(float)
    return {
        "failed": each(result.outcome != 0),
        **({} if result.nfe is None else {"nfe": each(result.nfe)}),
    }
