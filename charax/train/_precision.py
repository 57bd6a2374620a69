"""Runs in double precision: JAX computes in float64 only where it is told to."""

import contextlib
from collections.abc import Iterator
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from charax.train._batches import Batch
from charax.train._config import AbstractConfig


def check_precision(config: AbstractConfig) -> None:
    """Refuse to compute a run in more than it asks for: its data and weights would be a mixture.

    Args:
        config: The config of the run.

    Raises:
        ValueError: If JAX computes in float64, and the run does not.
    """
    if jax.config.jax_enable_x64 and not _is_double(config):  # pyright: ignore[reportAttributeAccessIssue]
        raise ValueError(
            "runs are computed in float32: unset JAX_ENABLE_X64, switch jax_enable_x64 off, or choose "
            "--precision float64"
        )


@contextlib.contextmanager
def computing_in(precision: AbstractConfig | Any) -> Iterator[None]:
    """Let JAX compute in float64 as far as a run needs it.

    Args:
        precision: The config of a run, or its model.

    Yields:
        Nothing.

    ```python
    import jax.numpy as jnp
    from charax import RegressionConfig, SolverConfig
    from charax.train import computing_in

    with computing_in(RegressionConfig(solver=SolverConfig(precision="float64"))):
        assert jnp.ones(1).dtype == "float64"
    ```
    """
    with jax.enable_x64(True) if _is_double(precision) else contextlib.nullcontext():
        yield


def widen(batch: Batch) -> Batch:
    """Data as the run computes: they are stored in float32.

    Args:
        batch: Arrays, also of whole numbers, which stay what they are.

    Returns:
        The same, in float64 if that is what JAX computes in.
    """
    dtype = jnp.result_type(float)
    return jax.tree.map(lambda leaf: leaf.astype(dtype) if jnp.issubdtype(leaf.dtype, jnp.floating) else leaf, batch)


def _is_double(precision: AbstractConfig | Any) -> bool:
    if isinstance(precision, AbstractConfig):
        return precision.solver.precision == "float64"
    leaves = jax.tree.leaves(eqx.filter(precision, eqx.is_array))
    return any(leaf.dtype == jnp.dtype("float64") for leaf in leaves)
