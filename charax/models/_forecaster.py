"""Values over time from a starting value: C-NODE and Neural ODEs driven by the times of observations."""

from dataclasses import dataclass
from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from charax.fields import AbstractField, CharacteristicField, JointJacobian, NetworkVelocity, PlainField, Timed
from charax.models._scaling import Scaling
from charax.nn import mlp
from charax.solve import Solution, Solver

ForecastMethod = Literal["c-node", "node", "node-fair"]


class Forecast(eqx.Module):
    """What is expected, and how far observations scatter around that."""

    mean: Float[Array, "batch n"]
    noise: Float[Array, "n"]
    """The standard deviation of an observation."""
    solution: Solution

    def band(self, width: float = 1.96) -> tuple[Float[Array, "batch n"], Float[Array, "batch n"]]:
        """Between these, 95% of the observations are expected."""
        return self.mean - width * self.noise, self.mean + width * self.noise


@dataclass(frozen=True)
class ForecasterDesign:
    """Sizes and names from which a forecaster is built.

    - `augment_dim` zeros are added to the state, so that it can do what a value alone cannot: swing.
    - `damping` slows the walk down: of the span of the data that it learned from, it goes on at most so many times.
      A trend then levels off instead of going on for ever. None: it goes on.

    ```python
    import jax
    from charax.models import ForecasterDesign, Scaling
    from charax.nn import count_parameters

    design = ForecasterDesign("c-node", augment_dim=0)
    assert count_parameters(design.build(Scaling.none(0, 1), key=jax.random.key(0))) <= 9744
    ```
    """

    method: ForecastMethod = "c-node"
    width: int = 64
    characteristic_dim: int = 8
    augment_dim: int = 2
    damping: float | None = None

    def __post_init__(self):
        if self.width < 1 or self.augment_dim < 0:
            raise ValueError(
                f"width must be at least 1 and augment_dim at least 0, got {self.width} and {self.augment_dim}"
            )
        if self.damping is not None and not self.damping > 0:
            raise ValueError(f"damping must be above 0, got {self.damping}; leave it out for none")

    def build(self, scaling: Scaling, *, key: PRNGKeyArray) -> "Forecaster":
        """A new forecaster; the places of the scaling are the context's columns."""
        timed = self.method == "node"  # the paper's reads the time; what does not can be trusted beyond its data
        field = Timed(self._field(scaling.values + self.augment_dim, scaling.dim + timed, key), shows_time=timed)
        noise = jnp.full(scaling.values, -1.0)
        return Forecaster(field, noise, self.augment_dim, None if timed else self.damping, scaling)

    def _field(self, state: int, context: int, key: PRNGKeyArray) -> AbstractField:
        velocity_key, body_key, last_key = jax.random.split(key, 3)
        reads, inputs = ("u", "context"), state + context
        if self.method != "c-node":
            return PlainField(mlp([inputs, self.width, self.width, state], key=key), reads=reads)
        k = self.characteristic_dim
        jacobian = JointJacobian(
            mlp([state, self.width, self.width], final="tanh", key=body_key),
            hidden=self.width,
            channels=state,
            characteristic_dim=k,
            key=last_key,
        )
        velocity = NetworkVelocity(mlp([inputs, self.width, self.width, k], key=velocity_key), k, reads=reads)
        return CharacteristicField(velocity, jacobian)


class Forecaster(eqx.Module):
    """u(t) = u(0) + ∫₀ᵗ Σᵢ ∂u/∂zᵢ · dzᵢ/ds ds: the walk goes to the time of each observation, wherever that is.

    ```python
    import jax
    import jax.numpy as jnp
    from charax.models import ForecasterDesign, Scaling

    model = ForecasterDesign("c-node", width=8).build(Scaling.none(0, 2), key=jax.random.key(0))
    forecast = model(jnp.zeros((3, 2)), jnp.array([0.0, 0.7, 2.5]))
    assert forecast.mean[0].tolist() == [0.0, 0.0] and forecast.noise.shape == (2,)
    ```
    """

    field: Timed
    log_noise: Float[Array, "n"]
    augment_dim: int = eqx.field(static=True)
    damping: float | None = eqx.field(static=True)
    scaling: Scaling = eqx.field(static=True)

    def __call__(
        self,
        start: Float[Array, "batch n"],
        t: Float[Array, "batch"],
        context: Float[Array, "batch c"] | None = None,
        *,
        solver: Solver | None = None,
    ) -> Forecast:
        """The value at each time since the starting value, given what is known of the series."""
        values = self.scaling.value(start)
        state = jnp.concatenate([values, jnp.zeros((len(values), self.augment_dim), values.dtype)], axis=1)
        known = jnp.zeros((len(values), 0), values.dtype) if context is None else self.scaling.place(context)
        seen = jnp.concatenate([self.clock(t)[:, None], known], axis=1)
        solution = (solver or Solver(rtol=1e-3, atol=1e-3, max_steps=512)).solve(self.field, state, context=seen)
        spread = jnp.asarray(self.scaling.value_spread, start.dtype)
        mean = self.scaling.value_back(solution.u[:, : self.scaling.values])
        return Forecast(mean, spread * jnp.exp(self.log_noise), solution)

    def clock(self, t: Float[Array, "batch"]) -> Float[Array, "batch"]:
        """How far the walk goes until t, in spans of the data."""
        spans = t / self.scaling.time
        return spans if self.damping is None else -self.damping * jnp.expm1(-spans / self.damping)
