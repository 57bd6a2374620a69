"""A model as data: everything that is needed to build it again, except its weights."""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import equinox as eqx
import jax
from jaxtyping import PRNGKeyArray

from charax.models._classifier import Classifier
from charax.nn import count_parameters


@dataclass(frozen=True)
class AbstractArchitecture(ABC):
    """Sizes and names from which a classifier is built. Its fields are plain numbers and strings.

    ```python
    from charax.models import AbstractArchitecture, VectorArchitecture

    architecture: AbstractArchitecture = VectorArchitecture("node", width=8)
    assert architecture.count((4,), 3) == (5 * 8 + 8) + (8 * 4 + 4) + (4 * 3 + 3)
    ```
    """

    @abstractmethod
    def build(self, shape: tuple[int, ...], classes: int, *, key: PRNGKeyArray) -> Classifier:
        """Build a classifier with random weights.

        Args:
            shape: The shape of one input.
            classes: The number of classes.
            key: Random key of the initial weights.

        Returns:
            The classifier.

        Raises:
            ValueError: If the architecture does not suit such inputs.
        """

    @abstractmethod
    def hidden_size(self, shape: tuple[int, ...]) -> int:
        """Count the numbers of a hidden layer.

        Args:
            shape: The shape of one input.

        Returns:
            How many there are per sample.
        """

    def count(self, shape: tuple[int, ...], classes: int) -> int:
        """Count the parameters without allocating them.

        Args:
            shape: The shape of one input.
            classes: The number of classes.

        Returns:
            The number of parameters.
        """
        return count_parameters(eqx.filter_eval_shape(self.build, shape, classes, key=jax.random.key(0)))
