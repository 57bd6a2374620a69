"""A regressor with an estimated noise."""

from statistics import NormalDist
from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from charax.models import Classifier, ClassifierEnsemble, member_outputs
from charax.nn import summarize
from charax.solve import Solution, Solver

_LOG_NOISE_UNIT = 10.0
"""The unit in which the logarithm of the noise is a parameter. Weight decay pulls parameters towards zero, the noise of
an uninformative model; in a large unit that matters little."""


class GaussianPrediction(NamedTuple):
    """A normal distribution per row and target, in standardized units."""

    members: Float[Array, "members batch targets"]
    """The expected values of every member of an ensemble; NaN where the solve failed."""
    log_noise: Float[Array, "targets"]
    """The logarithm of the standard deviation of each target."""
    solution: Solution
    """The solution behind it, with its counts."""

    @property
    def mean(self) -> Float[Array, "batch targets"]:
        """The expected values, the mean over the members."""
        return self.members.mean(axis=0)

    def prediction_interval(
        self, level: float = 0.95
    ) -> tuple[Float[Array, "batch targets"], Float[Array, "batch targets"]]:
        """Compute the interval that contains a target with a given probability.

        Args:
            level: The probability.

        Returns:
            The lower and the upper ends.
        """
        half = NormalDist().inv_cdf(0.5 + level / 2) * jnp.exp(self.log_noise)
        return self.mean - half, self.mean + half


class GaussianRegressor(eqx.Module):
    """The mean of every target from the final state of a neural ODE, or of several, and one noise per target.

    ```python
    import jax
    import jax.numpy as jnp
    from charax.models import VectorArchitecture
    from charax.tasks.regression import GaussianRegressor

    network = VectorArchitecture("node", width=4).build((3,), 2, key=jax.random.key(0))
    out = GaussianRegressor(network, targets=2)(jnp.ones((5, 3)))
    assert out.mean.shape == (5, 2) and out.log_noise.shape == (2,)
    ```
    """

    network: Classifier | ClassifierEnsemble
    scaled_log_noise: Float[Array, "targets"]

    def __init__(self, network: Classifier | ClassifierEnsemble, targets: int):
        """Initialize with the noise of standardized targets, which is 1.

        Args:
            network: A neural ODE whose readout has one output per target, or an ensemble of them.
            targets: The number of targets.
        """
        self.network = network
        self.scaled_log_noise = jnp.zeros(targets)

    def __repr__(self) -> str:
        return summarize(self, self.network)

    def __call__(self, inputs: Float[Array, "batch features"], *, solver: Solver | None = None) -> GaussianPrediction:
        """Predict the targets of a batch.

        Args:
            inputs: Standardized features.
            solver: How to integrate; `Solver()` by default.

        Returns:
            The distribution of the standardized targets.
        """
        means, solution = member_outputs(self.network, inputs, solver=solver)
        return GaussianPrediction(means, _LOG_NOISE_UNIT * self.scaled_log_noise, solution)
