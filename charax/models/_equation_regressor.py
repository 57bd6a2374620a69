"""The structured form: the equation uₜ + a·∇u = c itself is learned, and can be shown."""

import dataclasses
from collections.abc import Sequence
from typing import Literal, get_args

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from charax.fields import AbstractField, Condition, Read, Scalar, Timed
from charax.models._regressor import DEFAULT_SOLVER, AbstractRegressor, Regressed, good_rows, quiet_mlp
from charax.models._scaling import Scaling
from charax.nn import Network, mlp
from charax.solve import Solver, find_roots

Part = Literal["x", "t", "u"]


def check_parts(reads: Sequence[str]) -> tuple[Part, ...]:
    """What a coefficient reads, in the order x, t, u."""
    if not reads or set(reads) - set(get_args(Part)):
        raise ValueError(f"a coefficient reads one or more of x, t and u, got {', '.join(reads) or 'nothing'}")
    return tuple(part for part in get_args(Part) if part in reads)


class Coefficient(eqx.Module):
    """A straight line and a network, of whichever of x, t and u it is told to read.

    Most media are nearly linear; the line has that right at once, also where there are few data.
    """

    line: Network
    network: Network
    reads: tuple[Part, ...] = eqx.field(static=True)

    @classmethod
    def build(
        cls, reads: Sequence[str], scaling: Scaling, outputs: int, *, width: int, key: PRNGKeyArray
    ) -> "Coefficient":
        """One hidden layer; zero at first, so that no characteristics cross."""
        parts = check_parts(reads)
        sizes = {"x": scaling.dim, "t": 1, "u": scaling.values}
        inputs = sum(sizes[part] for part in parts)
        line, network = (quiet_mlp([inputs, *hidden, outputs], key=key) for hidden in ([], [width]))
        return cls(line, network, parts)

    def __call__(
        self, x: Float[Array, "batch d"], t: Float[Array, "batch 1"], u: Float[Array, "batch n"]
    ) -> Float[Array, "batch outputs"]:
        seen = {"x": x, "t": t, "u": u}
        read = jnp.concatenate([seen[part] for part in self.reads], axis=1)
        return self.line(read) + self.network(read)


class EquationField(AbstractField):
    """dx/dt = a(x, t, u) and du/dt = c(x, t, u); the time is the context."""

    velocity: Coefficient
    source: Coefficient
    dim: int = eqx.field(static=True)

    @property
    def characteristic_dim(self) -> int:
        return self.dim

    @property
    def reads(self) -> frozenset[Read]:
        return frozenset({"x", "u", "context"})

    def __call__(
        self, s: Scalar, x: Float[Array, "batch k"] | None, u: Float[Array, "batch *state"], z: Condition
    ) -> tuple[Float[Array, "batch k"], Float[Array, "batch *state"]]:
        assert x is not None
        assert z.context is not None
        return self.velocity(x, z.context, u), self.source(x, z.context, u)


class EquationRegressor(AbstractRegressor):
    """Learns a, c and u₀ of uₜ + a(x, t, u)·∇u = c(x, t, u), u(x, 0) = u₀(x), and solves that along characteristics.

    Data on a plane cannot tell a from c when both may depend on everything: c = uₜ + a·uₓ fits any a. So by default
    both read u only, as in a conservation law; let them read x or t where the medium is known to change.

    ```python
    import jax
    import jax.numpy as jnp
    from charax.models import EquationRegressor, Scaling

    model = EquationRegressor.build(Scaling.none(1, 1), width=8, key=jax.random.key(0))
    x, t = jnp.ones((3, 1)), jnp.full(3, 0.5)
    out = model(x, t)
    assert out.u.shape == (3, 1) and model.velocity(x, t, out.u).shape == (3, 1)
    ```
    """

    initial_network: Network
    field: EquationField
    scaling: Scaling = eqx.field(static=True)

    @classmethod
    def build(
        cls,
        scaling: Scaling,
        *,
        width: int,
        velocity_reads: Sequence[str] = ("u",),
        source_reads: Sequence[str] = ("u",),
        key: PRNGKeyArray,
    ) -> "EquationRegressor":
        """Two hidden layers for u₀, one for each coefficient."""
        keys = jax.random.split(key, 3)
        d, n = scaling.dim, scaling.values
        field = EquationField(
            Coefficient.build(velocity_reads, scaling, d, width=width, key=keys[0]),
            Coefficient.build(source_reads, scaling, n, width=width, key=keys[1]),
            d,
        )
        initial = mlp([d, width, width, n], key=keys[2])
        return cls(initial_network=initial, field=field, scaling=scaling)

    def __call__(
        self, x: Float[Array, "points d"], t: Float[Array, "points"], *, solver: Solver | None = None
    ) -> Regressed:
        # Foot points are differentiated both ways, which only this adjoint allows.
        solver = dataclasses.replace(solver or DEFAULT_SOLVER, adjoint="direct", per_sample=False)
        place, time = self.scaling.place(x), t[:, None] / self.scaling.time
        foot, found = find_roots(
            lambda foot, row, networks: _walk(networks, foot[None], row[1][None], solver).x[0] - row[0],  # pyright: ignore[reportOptionalSubscript]
            place,
            (place, time),
            (self.initial_network, self.field),
        )
        solution = _walk((self.initial_network, self.field), foot, time, solver)
        u, foot = self.scaling.value_back(solution.u), self.scaling.place_back(foot)
        return Regressed(u, foot, jnp.ones_like(t), found & good_rows(solution), solution)

    def velocity(
        self, x: Float[Array, "batch d"], t: Float[Array, "batch"], u: Float[Array, "batch n"]
    ) -> Float[Array, "batch d"]:
        """The learned a(x, t, u), in the units of the data."""
        unit = jnp.asarray(self.scaling.place_spread, x.dtype) / self.scaling.time
        return unit * self.field.velocity(*self._see(x, t, u))

    def source(
        self, x: Float[Array, "batch d"], t: Float[Array, "batch"], u: Float[Array, "batch n"]
    ) -> Float[Array, "batch n"]:
        """The learned c(x, t, u), in the units of the data."""
        unit = jnp.asarray(self.scaling.value_spread, x.dtype) / self.scaling.time
        return unit * self.field.source(*self._see(x, t, u))

    def initial(self, x: Float[Array, "batch d"]) -> Float[Array, "batch n"]:
        """The learned u₀(x), in the units of the data."""
        return self.scaling.value_back(self.initial_network(self.scaling.place(x)))

    def paths(self, starts: Float[Array, "starts d"], times: Float[Array, "times"]) -> Float[Array, "times starts d"]:
        """The characteristics of the learned equation."""
        foot = self.scaling.place(starts)
        end = times.max()
        walk = _walk(
            (self.initial_network, self.field),
            foot,
            jnp.full((len(foot), 1), end / self.scaling.time),
            Solver("midpoint", steps=32),
            at=times / jnp.where(end > 0, end, 1),
        )
        assert walk.characteristic is not None
        return self.scaling.place_back(walk.characteristic)

    def _see(self, x: Array, t: Array, u: Array) -> tuple[Array, Array, Array]:
        return self.scaling.place(x), t[:, None] / self.scaling.time, self.scaling.value(u)


def _walk(networks: tuple[Network, EquationField], foot: Array, time: Array, solver: Solver, at: Array | None = None):
    initial, field = networks
    return solver.solve(Timed(field), initial(foot), x0=foot, context=time, at=at)
