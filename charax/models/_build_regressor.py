"""Regressors of u(x, t) by the name of their method."""

from typing import Any

from jaxtyping import PRNGKeyArray

from charax.models._equation_regressor import EquationRegressor
from charax.models._network_regressor import NetworkRegressor
from charax.models._path_regressor import PathRegressor
from charax.models._regressor import AbstractRegressor
from charax.models._scaling import Scaling
from charax.models._time_regressor import TimeRegressor


def build_regressor(
    method: str,
    scaling: Scaling,
    *,
    width: int,
    key: PRNGKeyArray,
    **structure: Any,
) -> AbstractRegressor:
    """Build a regressor of solutions of PDEs.

    ```python
    import jax
    from charax.models import Scaling, TimeRegressor, build_regressor

    model = build_regressor("node-fair", Scaling.identity(1, 1), width=8, key=jax.random.key(0))
    assert isinstance(model, TimeRegressor)
    ```

    Args:
        method: One of `PDEMethod`: "c-node" is the paper's, "equation" learns a and c of uₜ + a·∇u = c, "node" is the
            paper's baseline, "node-fair" learns the initial value, too, and "mlp" is a network of x and t.
        scaling: The units of the data.
        width: The width of the hidden layers.
        key: Random key of the initial weights.
        structure: What `EquationRegressor.build` takes in addition; other methods ignore it.

    Returns:
        The regressor.

    Raises:
        ValueError: If the method is unknown.
    """
    match method:
        case "c-node":
            return PathRegressor.build(scaling, width=width, key=key)
        case "equation":
            return EquationRegressor.build(scaling, width=width, key=key, **structure)
        case "node" | "node-fair":
            return TimeRegressor.build(scaling, width=width, fair=method == "node-fair", key=key)
        case "mlp":
            return NetworkRegressor.build(scaling, width=width, key=key)
    raise ValueError(f"unknown method {method!r}; choose from c-node, node, node-fair, equation, mlp")
