"""Bad observations, in words."""

import jax.core
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array


def check_observations(times, values, lengths) -> tuple[Array, Array, Array]:
    """Convert observations to arrays of one dtype.

    What is wrong with the numbers can be named only where there are numbers: under `jit` a sample whose times do not
    increase becomes NaN instead, and a solve along it reports a state that is not finite.

    Args:
        times: The times of the observations, `[batch, length]`.
        values: The observations, `[batch, length, channels]`; NaN where one is missing.
        lengths: The number of observations of each sample, `[batch]`, or `None` for all of them.

    Returns:
        The three as arrays.

    Raises:
        ValueError: If the shapes do not belong together, or a sample's times, values or length cannot be used.
    """
    values = jnp.asarray(values)
    if not jnp.issubdtype(values.dtype, jnp.floating):
        raise ValueError(f"values must be floating point, got {values.dtype}: convert them with values.astype(float)")
    times = jnp.asarray(times, values.dtype)
    if values.ndim != 3:
        raise ValueError(f"values must be [batch, length, channels], got the shape {values.shape}")
    if times.shape != values.shape[:2]:
        raise ValueError(f"times must be [batch, length] = {values.shape[:2]} as in values, got {times.shape}")
    batch, length = times.shape
    if not (batch and length):
        raise ValueError(f"there is nothing to interpolate in values of the shape {values.shape}")
    lengths = jnp.full(batch, length) if lengths is None else jnp.asarray(lengths)
    if lengths.shape != (batch,) or not jnp.issubdtype(lengths.dtype, jnp.integer):
        raise ValueError(f"lengths must be {batch} integers, got {lengths.dtype} of the shape {lengths.shape}")
    if not any(isinstance(array, jax.core.Tracer) for array in (times, values, lengths)):
        _check_numbers(np.asarray(times), np.asarray(values), np.asarray(lengths))
    return times, values, lengths


def _check_numbers(times: np.ndarray, values: np.ndarray, lengths: np.ndarray) -> None:
    length = times.shape[1]
    sample = _first((lengths < 1) | (lengths > length))
    if sample is not None:
        raise ValueError(
            f"sample {sample} has length {lengths[sample]}: every sample needs between 1 and {length} observations"
        )
    used = np.arange(length) < lengths[:, None]
    sample = _first((used & ~np.isfinite(times)).any(axis=1))
    if sample is not None:
        raise ValueError(f"a time of sample {sample} is not finite: drop the observation, or shorten lengths[{sample}]")
    backwards = (np.diff(times, axis=1) <= 0) & used[:, 1:]
    sample = _first(backwards.any(axis=1))
    if sample is not None:
        i = int(np.argmax(backwards[sample]))
        raise ValueError(
            f"the times of sample {sample} must increase, but {times[sample, i + 1]} at position {i + 1} follows "
            f"{times[sample, i]}: sort the observations and merge those of the same time. Times that differ may be "
            f"equal in {times.dtype}: subtract the first one before the conversion"
        )
    sample = _first((used[:, :, None] & np.isinf(values)).any(axis=(1, 2)))
    if sample is not None:
        raise ValueError(f"a value of sample {sample} is infinite: mark it as missing, which is NaN, or remove it")


def _first(wrong: np.ndarray) -> int | None:
    return int(np.argmax(wrong)) if wrong.any() else None
