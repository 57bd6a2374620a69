"""u(x, t) learned from samples of it: the contract, and the plain Neural ODEs to compare with."""

from abc import abstractmethod
from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from charax.fields import PlainField, Timed
from charax.models._scaling import Scaling
from charax.nn import Chain, Network, mlp
from charax.solve import Outcome, Solution, Solver


class Regressed(eqx.Module):
    """The value at every point, and how it was found."""

    u: Float[Array, "points n"]
    foot: Float[Array, "points d"]
    """Where the walk to the point started at t = 0."""
    spread: Float[Array, "points"]
    """det ∂x/∂ξ: how far apart neighbouring paths are, beside where they started. At 0 they cross."""
    found: Bool[Array, "points"]
    """False where the root finder found no foot point or the walk failed: u means nothing there."""
    solution: Solution


class AbstractRegressor(eqx.Module):
    """A learned function of place and time with n values, in the units of its data."""

    scaling: eqx.AbstractVar[Scaling]

    @abstractmethod
    def __call__(
        self, x: Float[Array, "points d"], t: Float[Array, "points"], *, solver: Solver | None = None
    ) -> Regressed:
        """The value at every point."""

    @abstractmethod
    def paths(self, starts: Float[Array, "starts d"], times: Float[Array, "times"]) -> Float[Array, "times starts d"]:
        """The learned characteristics from places at t = 0: where they are at some times."""


DEFAULT_SOLVER = Solver("midpoint", steps=6)
"""As accurate as the networks are."""


def good_rows(solution: Solution) -> Bool[Array, "points"]:
    """Which samples of a walk ended with a number."""
    return jnp.isfinite(solution.u).all(axis=1) & (solution.outcome == Outcome.SUCCESS)


def quiet_mlp(sizes: Sequence[int], *, key: PRNGKeyArray) -> Chain:
    """A perceptron that is zero at first."""
    network = mlp(sizes, key=key)
    last = network.layers[-1]
    return Chain(*network.layers[:-1], jax.tree.map(jnp.zeros_like, last))


class TimeRegressor(AbstractRegressor):
    """A plain Neural ODE over time at every place: u(x, t) = u₀(x) + ∫₀ᵗ NN(x, τ) dτ.

    Without a network for u₀ it starts at 0 whatever it learns: that is the paper's baseline. With one it is the fair
    one.

    ```python
    import jax
    import jax.numpy as jnp
    from charax.models import Scaling, TimeRegressor

    paper = TimeRegressor.build(Scaling.none(1, 1), width=8, fair=False, key=jax.random.key(0))
    assert paper(jnp.ones((3, 1)), jnp.zeros(3)).u.tolist() == [[0.0]] * 3
    ```
    """

    initial: Network | None
    field: Timed
    scaling: Scaling = eqx.field(static=True)

    @classmethod
    def build(cls, scaling: Scaling, *, width: int, fair: bool, key: PRNGKeyArray) -> "TimeRegressor":
        """One hidden layer for u₀, two for ∂u/∂t."""
        initial_key, key = jax.random.split(key)
        d, n = scaling.dim, scaling.values
        initial = mlp([d, width, n], key=initial_key) if fair else None
        rate = PlainField(mlp([1 + d, width, width, n], key=key), reads=("context",))
        return cls(initial=initial, field=Timed(rate), scaling=scaling)

    def __call__(
        self, x: Float[Array, "points d"], t: Float[Array, "points"], *, solver: Solver | None = None
    ) -> Regressed:
        place, time = self.scaling.place(x), t[:, None] / self.scaling.time
        nothing = self.scaling.value(jnp.zeros((len(x), self.scaling.values), x.dtype))
        start = nothing if self.initial is None else self.initial(place)
        context = jnp.concatenate([time, place], axis=1)
        solution = (solver or DEFAULT_SOLVER).solve(self.field, start, context=context)
        return Regressed(self.scaling.value_back(solution.u), x, jnp.ones_like(t), good_rows(solution), solution)

    def paths(self, starts: Float[Array, "starts d"], times: Float[Array, "times"]) -> Float[Array, "times starts d"]:
        """It stays where it is."""
        return jnp.broadcast_to(starts, (len(times), *starts.shape))
