"""Checks of the arguments of a solve."""

import equinox as eqx
import jax
import jax.core
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from charax.fields import AbstractField


def is_concrete(value) -> bool:
    """Whether a value is known, which it is not while a function is traced."""
    return not isinstance(value, jax.core.Tracer)


def check_arguments(
    field: AbstractField, u0, x0, s0, s1, at, conditioned_on, context
) -> tuple[Array, Array | None, Array, Array, Array | None]:
    """The arguments as arrays of one dtype, or an exception that names the argument and the fix."""
    u0 = jnp.asarray(u0)
    x0, conditioned_on, context = (
        None if value is None else jnp.asarray(value) for value in (x0, conditioned_on, context)
    )
    if not jnp.issubdtype(u0.dtype, jnp.floating):
        raise ValueError(f"u0 must be floating point, got {u0.dtype}: convert it with u0.astype(float)")
    # The weights of a run in double precision are wider than the data that it reads.
    widest = jnp.result_type(u0, *(leaf for leaf in jax.tree.leaves(field) if eqx.is_inexact_array(leaf)))
    u0, x0 = u0.astype(widest), None if x0 is None else x0.astype(widest)
    if u0.ndim == 0:
        raise ValueError("u0 must be a batch, [batch, *state], got a single number: one sample is u0[None]")
    if u0.shape[0] == 0:
        raise ValueError("u0 is an empty batch; give at least one sample")
    for name, value in (("u0", u0), ("context", context), ("conditioned_on", conditioned_on), ("x0", x0)):
        if value is None:
            continue
        if value.shape[0] != u0.shape[0]:
            raise ValueError(f"{name} has {value.shape[0]} samples where u0 has {u0.shape[0]}: give one row per sample")
        _check_finite(name, value)
    if "context" in field.reads and context is None:
        raise ValueError('this field reads "context": pass context=… to the solve')
    if conditioned_on is not None and conditioned_on.shape != u0.shape:
        raise ValueError(f"conditioned_on must have the shape of u0, {u0.shape}, got {conditioned_on.shape}")
    if context is not None and "context" not in field.reads:
        raise ValueError(
            "context was given, but no part of this field reads it: build its velocity, or the plain field, with "
            '"context" in reads, or leave context out'
        )
    if conditioned_on is not None and "u0" not in field.reads:
        raise ValueError(
            "conditioned_on was given, but no part of this field reads u0: build its velocity, or the plain field, "
            'with "u0" in reads, or leave conditioned_on out'
        )
    k = field.characteristic_dim
    if k:
        x0 = jnp.zeros((u0.shape[0], k), u0.dtype) if x0 is None else x0
        if x0.shape[1] != k:
            raise ValueError(f"x0 must have the field's {k} characteristic dimensions, got {x0.shape[1]}")
    elif x0 is not None:
        raise ValueError("x0 was given, but a plain field has no characteristic: leave x0 out")
    _check_points(s0, s1, at)
    s0, s1 = jnp.asarray(s0, u0.dtype), jnp.asarray(s1, u0.dtype)
    return u0, x0, s0, s1, None if at is None else jnp.asarray(at, u0.dtype)


# Values are inspected with NumPy: inside of `jit` even an operation on a known array would be traced.


def _check_finite(name: str, value) -> None:
    if is_concrete(value) and not np.isfinite(value).all():
        finite = np.isfinite(value).reshape(value.shape[0], -1).all(axis=1)
        raise ValueError(
            f"{name} is not finite in sample {int(np.argmin(finite))}: remove or impute NaN and infinity first"
        )


def _check_points(s0, s1, at) -> None:
    if at is not None and at.shape[0] == 0:
        raise ValueError("at is empty: give at least one point between s0 and s1, or leave it out")
    if not (is_concrete(s0) and is_concrete(s1)):
        return
    start, end = float(s0), float(s1)
    if not np.isfinite([start, end]).all():
        raise ValueError(f"s0 and s1 must be finite, got s0={start} and s1={end}")
    if start == end:
        raise ValueError(f"s1 equals s0 ({start}), so the interval is empty: give an s1 before or after s0")
    if at is None or not is_concrete(at):
        return
    forward = np.asarray(at) if start < end else np.asarray(at)[::-1]
    if (np.diff(forward) < 0).any():
        raise ValueError("at must be sorted in the direction from s0 to s1")
    tolerance = 1e-6 * abs(end - start)  # for a point computed in another precision than the ends
    if forward[0] < min(start, end) - tolerance or forward[-1] > max(start, end) + tolerance:
        raise ValueError(f"at must lie between s0={start} and s1={end}, got {forward[0]} to {forward[-1]}")
