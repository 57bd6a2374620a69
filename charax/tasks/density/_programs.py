"""The programs of a density: log-densities, or bits per dimension, of samples, and samples of noise."""

import jax
import jax.numpy as jnp
from jaxtyping import Array

from charax.models.flows import AbstractFlow
from charax.tasks.density._task import DensityTask
from charax.train import Program, restore, standardize


def density_programs(task: DensityTask, flow: AbstractFlow) -> dict[str, Program]:
    """What `charax export` writes.

    Args:
        task: The task.
        flow: The trained flow.

    Returns:
        The programs by name.
    """
    spec = task.spec
    own, given = list(spec.own_columns) if spec.context else [], list(spec.context)
    scale = spec.standardizer.select(own) if given else spec.standardizer
    whole = (len(own) + len(given),) if given else spec.shape
    conditions: dict[str, tuple[int, ...]] = {"condition": (len(spec.classes),)} if spec.classes else {}
    columns: dict[str, tuple[int, ...]] = {"columns": (len(given),)} if given else {}
    about = ""
    if spec.classes:
        about += f" The condition is 1 for the class and 0 for the others: {', '.join(spec.classes)}."
    if given:
        about += f" The columns are those that it is conditioned on: {', '.join(spec.context_names)}."

    def context(classes: Array | None, raw: Array | None) -> Array | None:
        parts = [] if classes is None else [classes]
        if raw is not None:
            parts.append(standardize(raw, spec.standardizer.select(spec.context)))
        return jnp.concatenate(parts, axis=1) if parts else None

    def log_density(raw: Array, classes: Array | None = None) -> Array:
        inputs, known = (raw[:, jnp.asarray(own)], raw[:, jnp.asarray(given)]) if given else (raw, None)
        found = flow.evaluate(
            standardize(inputs, scale),
            solver=task.solver,
            trace=task.evaluation_trace,
            context=context(classes, known),
            key=jax.random.key(0),  # the noise and the probes of `predict`
        ).log_prob
        return found if spec.levels is None else flow.loss(found)

    def sample(noise: Array, *conditions: Array) -> Array:
        rest = list(conditions)
        classes = rest.pop(0) if spec.classes else None
        known = rest.pop(0) if given else None
        return restore(flow.generate(noise, solver=task.solver, context=context(classes, known)), scale)

    if spec.levels is None:
        name, answer = "log_density", "The log-density of standardized columns, from raw ones."
    else:
        name, answer = "bits_per_dim", "The bits per dimension of images of whole grey levels."
    return {
        name: Program(log_density, {"input": whole, **conditions}, answer + about),
        "sample": Program(
            sample,
            {"noise": flow.noise_shape, **conditions, **columns},
            "Samples in the units of the data, from standard normal noise." + about,
        ),
    }
