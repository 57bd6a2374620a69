"""The forms of the Jacobian that are built from a network, by name."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from jaxtyping import PRNGKeyArray

from charax.fields._jacobian._base import AbstractJacobian
from charax.fields._jacobian._joint import build_joint
from charax.fields._jacobian._separate import build_separate
from charax.nn import Chain

NetworkBuilder = Callable[[PRNGKeyArray], Chain]

JACOBIANS: Mapping[str, Callable[[NetworkBuilder, int, PRNGKeyArray], AbstractJacobian]] = MappingProxyType(
    {
        "separate": build_separate,
        "joint": build_joint,
    }
)
"""Builders `(network, characteristic_dim, key) -> Jacobian` by name; the names are those of `JacobianForm`."""


def build_jacobian(name: str, network: NetworkBuilder, characteristic_dim: int, key: PRNGKeyArray) -> AbstractJacobian:
    """Build a Jacobian of a named form from networks of one architecture.

    ```python
    import jax
    from charax.fields import build_jacobian
    from charax.nn import mlp

    network = lambda key: mlp([2, 16, 2], key=key)
    jacobian = build_jacobian("joint", network, 8, jax.random.key(0))
    assert jacobian.characteristic_dim == 8
    ```

    Args:
        name: A name in `JACOBIANS`.
        network: `network(key)` builds a network from u to one derivative of the state.
        characteristic_dim: The number k of characteristic dimensions.
        key: The random key of all parameters.

    Returns:
        The Jacobian. Its parameters depend on the key alone.

    Raises:
        ValueError: If the name is unknown, or the network does not suit the form.
    """
    if name not in JACOBIANS:
        raise ValueError(f"unknown Jacobian {name!r}; choose from {', '.join(JACOBIANS)}")
    return JACOBIANS[name](network, characteristic_dim, key)
