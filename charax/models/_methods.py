"""The paper's eight methods are four lifts times {plain, characteristic}."""

from collections.abc import Callable
from typing import Literal, NamedTuple, get_args

import jax
from jaxtyping import PRNGKeyArray

from charax.fields import (
    AbstractField,
    AbstractVelocity,
    CharacteristicField,
    JacobianForm,
    NetworkVelocity,
    PlainField,
    Read,
    SecondOrderField,
    build_jacobian,
)
from charax.models._lift import AbstractLift, Identity, InputLayer, PositionVelocity, ZeroAugment
from charax.models._neural_ode import NeuralODE
from charax.nn import Chain, Linear, mlp

Method = Literal[
    "node",
    "c-node",
    "anode",
    "anode+c-node",
    "2nd-order",
    "2nd-order+c-node",
    "il-node",
    "il-node+c-node",
]
Jacobian = JacobianForm
METHOD_NAMES: tuple[Method, ...] = get_args(Method)


class Parts(NamedTuple):
    """What a method's name says."""

    lift: Literal["node", "anode", "2nd-order", "il-node"]
    characteristic: bool


def parse_method(method: str) -> Parts:
    """The lift and the kind of field that a method's name stands for.

    ```python
    from charax.models import parse_method

    assert parse_method("anode+c-node") == ("anode", True)
    ```
    """
    if method not in METHOD_NAMES:
        raise ValueError(f"unknown method {method!r}; choose from {', '.join(METHOD_NAMES)}")
    lift = "node" if method == "c-node" else method.removesuffix("+c-node")
    return Parts(lift, method.endswith("c-node"))  # pyright: ignore[reportArgumentType]


def neural_ode(
    method: str,
    features: int,
    *,
    width: int = 32,
    augment_dim: int = 4,
    characteristic_dim: int = 2,
    activation: str = "tanh",
    jacobian: Jacobian = "separate",
    key: PRNGKeyArray,
) -> NeuralODE:
    """Any of the eight methods for data with `features` columns, with small perceptrons inside.

    `augment_dim` is what ANODE adds and IL-NODE and the second-order position have beyond the data's columns.
    The velocity of a characteristic reads s and the initial value.

    ```python
    import jax
    from charax.models import neural_ode

    model = neural_ode("il-node+c-node", 2, key=jax.random.key(0))
    assert model(jax.numpy.ones((4, 2))).u.shape == (4, 6)
    ```
    """
    parts = parse_method(method)
    lift_key, velocity_key, network_key = jax.random.split(key, 3)
    learned = InputLayer(Linear(features, features + augment_dim, bias=False, key=lift_key))
    lift, channels = {
        "node": (Identity(), features),
        "anode": (ZeroAugment(augment_dim), features + augment_dim),
        "il-node": (learned, features + augment_dim),
        "2nd-order": (PositionVelocity(learned), 2 * (features + augment_dim)),
    }[parts.lift]
    velocity = NetworkVelocity(
        mlp([1 + channels, width, characteristic_dim], activation=activation, key=velocity_key),
        characteristic_dim,
        reads=("s", "u0"),
    )
    network = lambda inputs, outputs, key: mlp([inputs, width, outputs], activation=activation, key=key)
    return assemble(
        parts,
        lift,
        channels,
        velocity=velocity,
        network=network,
        jacobian=jacobian,
        reads=("s", "u"),
        key=network_key,
    )


def assemble(
    parts: Parts,
    lift: AbstractLift,
    channels: int,
    *,
    velocity: AbstractVelocity,
    network: Callable[[int, int, PRNGKeyArray], Chain],
    jacobian: Jacobian = "separate",
    reads: tuple[Read, ...],
    key: PRNGKeyArray,
) -> NeuralODE:
    """Put a method together: `network(inputs, outputs, key)` makes the plain field or each column of the Jacobian,
    or all of its columns if that is `joint`.

    `channels` is the state's last axis after the lift; `velocity` is used by characteristic methods only, and
    `reads` by plain ones.
    """
    second_order = parts.lift == "2nd-order"
    outputs = channels // 2 if second_order else channels
    field: AbstractField
    if parts.characteristic:
        field = CharacteristicField(
            velocity,
            build_jacobian(jacobian, lambda key: network(channels, outputs, key), velocity.characteristic_dim, key),
        )
    else:
        field = PlainField(network(channels + ("s" in reads), outputs, key), reads=reads)
    return NeuralODE(SecondOrderField(field) if second_order else field, lift)
