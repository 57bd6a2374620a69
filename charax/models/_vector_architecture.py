"""Classifiers of rows of numbers."""

import math
from dataclasses import dataclass

import jax
from jaxtyping import PRNGKeyArray

from charax.models._architecture import AbstractArchitecture
from charax.models._classifier import Classifier
from charax.models._methods import neural_ode, parse_method
from charax.models._names import JacobianForm
from charax.nn import Flatten, Linear


@dataclass(frozen=True)
class VectorArchitecture(AbstractArchitecture):
    """Any of the eight methods with small perceptrons inside, and a linear readout. Pixels of images become rows.

    ```python
    import jax
    from charax.models import VectorArchitecture

    model = VectorArchitecture("c-node", width=16).build((4,), 3, key=jax.random.key(0))
    logits, _ = model(jax.numpy.ones((5, 4)))
    assert logits.shape == (5, 3)
    ```
    """

    method: str
    width: int = 64
    augment_dim: int = 4
    characteristic_dim: int = 2
    activation: str = "tanh"
    jacobian: JacobianForm = "separate"

    @property
    def kind(self) -> str:
        return "vector"

    def build(self, shape: tuple[int, ...], classes: int, *, key: PRNGKeyArray) -> Classifier:
        inputs = math.prod(shape)
        ode_key, head_key = jax.random.split(key)
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
        # The second-order state has a position and a velocity, and both are read.
        lift = parse_method(self.method).lift
        channels = {"node": inputs, "2nd-order": 2 * (inputs + self.augment_dim)}.get(lift, inputs + self.augment_dim)
        return Classifier(ode, Linear(channels, classes, key=head_key), None if len(shape) == 1 else Flatten())
