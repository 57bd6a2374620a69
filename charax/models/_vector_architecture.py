"""Classifiers of rows of numbers."""

import math
from dataclasses import dataclass

from jaxtyping import PRNGKeyArray

from charax.models._architecture import AbstractArchitecture
from charax.models._classifier import Classifier
from charax.models._methods import neural_ode, parse_method
from charax.models._names import JacobianForm
from charax.nn import Flatten, Linear, split_key


@dataclass(frozen=True)
class VectorArchitecture(AbstractArchitecture):
    """Any of the eight methods with small perceptrons inside, and a linear readout. Images are flattened.

    ```python
    import jax
    from charax.models import VectorArchitecture

    model = VectorArchitecture("c-node", width=16).build((4,), 3, key=jax.random.key(0))
    logits, _ = model(jax.numpy.ones((5, 4)))
    assert logits.shape == (5, 3)
    ```
    """

    method: str
    """One of `METHOD_NAMES`."""
    width: int = 64
    """The width of the hidden layers."""
    augment_dim: int = 4
    """The number of dimensions that ANODE, IL-NODE and second-order models add to the data's."""
    characteristic_dim: int = 2
    """The number k of characteristic dimensions."""
    activation: str = "tanh"
    """The name of the activation function."""
    jacobian: JacobianForm = "separate"
    """The form of the Jacobian."""

    def hidden_size(self, shape: tuple[int, ...]) -> int:
        return self.width

    def build(self, shape: tuple[int, ...], classes: int, *, key: PRNGKeyArray) -> Classifier:
        inputs = math.prod(shape)
        ode_key, head_key = split_key(key)
        ode = neural_ode(
            self.method,
            inputs,
            width=self.width,
            augment_dim=self.augment_dim,
            characteristic_dim=self.characteristic_dim,
            activation=self.activation,
            jacobian=self.jacobian,
            key=ode_key,
        )
        # The readout sees both the position and the velocity of a second-order state.
        lift = parse_method(self.method).lift
        channels = {"node": inputs, "2nd-order": 2 * (inputs + self.augment_dim)}.get(lift, inputs + self.augment_dim)
        return Classifier(ode, Linear(channels, classes, key=head_key), None if len(shape) == 1 else Flatten())
