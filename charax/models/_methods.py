"""The paper's eight methods: four lifts times {plain, characteristic}."""

from collections.abc import Callable
from typing import Literal, NamedTuple

from jaxtyping import PRNGKeyArray

from charax.fields import (
    AbstractField,
    AbstractVelocity,
    CharacteristicField,
    NetworkVelocity,
    PlainField,
    Read,
    SecondOrderField,
    build_jacobian,
)
from charax.models._lift import AbstractLift, Identity, InputLayer, PositionVelocity, ZeroAugment
from charax.models._names import METHOD_NAMES, JacobianForm
from charax.models._neural_ode import NeuralODE
from charax.nn import Chain, Linear, mlp, split_key


class MethodParts(NamedTuple):
    """The lift and the kind of field of a method."""

    lift: Literal["node", "anode", "2nd-order", "il-node"]
    characteristic: bool


def parse_method(method: str) -> MethodParts:
    """Split a method's name into its lift and its kind of field.

    ```python
    from charax.models import parse_method

    assert parse_method("anode+c-node") == ("anode", True)
    ```

    Args:
        method: One of `METHOD_NAMES`.

    Returns:
        `lift` ("node", "anode", "2nd-order" or "il-node"), and whether the field is `characteristic`.

    Raises:
        ValueError: If the name is unknown.
    """
    if method not in METHOD_NAMES:
        raise ValueError(f"unknown method {method!r}; choose from {', '.join(METHOD_NAMES)}")
    lift = "node" if method == "c-node" else method.removesuffix("+c-node")
    return MethodParts(lift, method.endswith("c-node"))  # pyright: ignore[reportArgumentType]


def neural_ode(
    method: str,
    features: int,
    *,
    width: int = 32,
    augment_dim: int = 4,
    characteristic_dim: int = 2,
    activation: str = "tanh",
    jacobian: JacobianForm = "separate",
    velocity_reads: tuple[Read, ...] = ("s", "u0"),
    key: PRNGKeyArray,
) -> NeuralODE:
    """Build any of the eight methods for rows of numbers, with small perceptrons inside.

    ```python
    import jax
    from charax.models import neural_ode

    model = neural_ode("il-node+c-node", 2, key=jax.random.key(0))
    assert model(jax.numpy.ones((4, 2))).u.shape == (4, 6)
    ```

    Args:
        method: One of `METHOD_NAMES`.
        features: The number of columns of the data.
        width: The width of the hidden layers.
        augment_dim: The number of dimensions that the state of ANODE, of IL-NODE and of the second-order position has
            beyond the data's columns.
        characteristic_dim: The number k of characteristic dimensions.
        activation: The name of the activation function.
        jacobian: The form of the Jacobian.
        velocity_reads: What the velocity of a characteristic reads: s and the initial value, as in the paper, or s and
            u for one that is not conditioned on the data.
        key: Random key of the initial weights.

    Returns:
        The model, a lift and a field.

    Raises:
        ValueError: If a name is unknown.
    """
    parts = parse_method(method)
    lift_key, velocity_key, network_key = split_key(key, 3)
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
        reads=velocity_reads,
    )
    network = lambda inputs, outputs, key: mlp([inputs, width, outputs], activation=activation, key=key)
    return build_neural_ode(
        parts,
        lift,
        channels,
        velocity=velocity,
        network=network,
        jacobian=jacobian,
        reads=("s", "u"),
        key=network_key,
    )


def build_neural_ode(
    parts: MethodParts,
    lift: AbstractLift,
    channels: int,
    *,
    velocity: AbstractVelocity,
    network: Callable[[int, int, PRNGKeyArray], Chain],
    jacobian: JacobianForm = "separate",
    reads: tuple[Read, ...],
    key: PRNGKeyArray,
) -> NeuralODE:
    """Build a method from its lift and its networks.

    Args:
        parts: The lift and the kind of field, from `parse_method`.
        lift: The lift.
        channels: The size of the state's last axis after the lift.
        velocity: The velocity of a characteristic method; plain ones ignore it.
        network: `network(inputs, outputs, key)` builds the plain field, or the networks of the Jacobian.
        jacobian: The form of the Jacobian.
        reads: The inputs of a plain field; characteristic ones ignore it.
        key: Random key of the initial weights.

    Returns:
        The model.
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
