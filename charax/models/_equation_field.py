"""A learned equation uₜ + a·∇u = c as a field along its characteristics."""

import itertools
import math
from collections.abc import Sequence
from typing import get_args

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from charax.fields import AbstractField, Condition, Read, Time
from charax.models._known import KnownSource
from charax.models._names import Dependence, FluxShape
from charax.models._regressor import zero_mlp
from charax.models._scaling import Scaling
from charax.models._terms import parse_term
from charax.nn import Chain, Network, mlp


def check_dependence(reads: Sequence[str]) -> tuple[Dependence, ...]:
    """Check what a coefficient depends on, and put it into the order x, t, u."""
    if not reads or set(reads) - set(get_args(Dependence)):
        raise ValueError(f"a coefficient reads one or more of x, t and u, got {', '.join(reads) or 'nothing'}")
    return tuple(name for name in get_args(Dependence) if name in reads)


def name_variables(reads: Sequence[str], scaling: Scaling) -> tuple[str, ...]:
    """The names of the numbers that a coefficient reads: x, or x1, x2 … if there are several."""
    number = lambda letter, size: [letter] if size == 1 else [f"{letter}{i + 1}" for i in range(size)]
    sizes = {"x": scaling.dim, "t": 1, "u": scaling.values}
    return tuple(itertools.chain.from_iterable(number(name, sizes[name]) for name in check_dependence(reads)))


class Formula(eqx.Module):
    """Σ weight·term/scale of terms in the units of the data: the symbolic part of a coefficient, in scaled units.

    The scale of a term is its typical size, so that the weights of all terms are comparable.
    """

    weights: Float[Array, "terms outputs"]
    terms: tuple[str, ...] = eqx.field(static=True)
    reads: tuple[Dependence, ...] = eqx.field(static=True)
    scaling: Scaling = eqx.field(static=True)
    scales: tuple[float, ...] = eqx.field(static=True)
    """The root mean square of every term over the range of the data, as a power of two."""
    of_flux: bool = eqx.field(static=True, default=False)
    """Whether the terms are those of a flux f(u), whose derivative by u is what is evaluated."""

    @classmethod
    def build(
        cls, terms: Sequence[str], reads: Sequence[str], scaling: Scaling, outputs: int, *, of_flux: bool = False
    ) -> "Formula":
        """Build a formula whose weights are zero."""
        reads = check_dependence(reads)
        scales = _typical_sizes(terms, reads, scaling, of_flux=of_flux)
        return cls(jnp.zeros((len(terms), outputs)), tuple(terms), reads, scaling, scales, of_flux)

    def evaluate(
        self, x: Float[Array, "batch d"], t: Float[Array, "batch 1"], u: Float[Array, "batch n"]
    ) -> Float[Array, "batch terms"]:
        """Every term, divided by its scale, at scaled positions, times and values."""
        available = {
            "x": self.scaling.unscale_position(x),
            "t": t * self.scaling.time,
            "u": self.scaling.unscale_value(u),
        }
        rows = jnp.concatenate([available[name] for name in self.reads], axis=1)
        names = name_variables(self.reads, self.scaling)
        values = {name: rows[:, i] for i, name in enumerate(names)}

        def column(term: str) -> Array:
            evaluate = lambda values: jnp.broadcast_to(parse_term(term, names)(values), rows.shape[:1]).astype(
                rows.dtype
            )
            if not self.of_flux:
                return evaluate(values)
            return jax.jvp(lambda u: evaluate({"u": u}), (values["u"],), (jnp.ones_like(values["u"]),))[1]

        columns = [column(term) for term in self.terms]
        return jnp.stack(columns, axis=1) / jnp.asarray(self.scales, rows.dtype)


def _typical_sizes(
    terms: Sequence[str], reads: Sequence[Dependence], scaling: Scaling, *, of_flux: bool
) -> tuple[float, ...]:
    grid = np.linspace(-1.5, 1.5, 13)

    def spread(centers: Sequence[float], scales: Sequence[float]) -> list[np.ndarray]:
        # Shifted against each other, so that no product of two is a square.
        return [c + s * np.roll(grid, 3 * i) for i, (c, s) in enumerate(zip(centers, scales, strict=True))]

    columns = {
        "x": spread(scaling.position_center, scaling.position_scale),
        "t": [scaling.time * (grid / 3 + 0.5)],
        "u": spread(scaling.value_center, scaling.value_scale),
    }
    names = name_variables(reads, scaling)
    values = dict(zip(names, itertools.chain.from_iterable(columns[name] for name in reads), strict=True))
    with np.errstate(all="ignore"):
        evaluated = [np.asarray(parse_term(term, names)(values), float) for term in terms]
        if of_flux:
            evaluated = [np.gradient(np.broadcast_to(value, grid.shape), values["u"]) for value in evaluated]
        sizes = [float(np.sqrt(np.mean(np.square(value[np.isfinite(value)])))) for value in evaluated]
    return tuple(2.0 ** round(math.log2(size)) if 0 < size < math.inf else 1.0 for size in sizes)


class Periodic(eqx.Module):
    """A network that reads the sine and the cosine of positions on a circle instead of the positions themselves."""

    network: Network
    periods: tuple[float, ...] = eqx.field(static=True)
    """Of the first inputs, in scaled units."""

    def __call__(self, inputs: Float[Array, "batch inputs"]) -> Float[Array, "batch outputs"]:
        size = len(self.periods)
        angle = inputs[:, :size] * (2 * np.pi / np.asarray(self.periods, np.float32))
        return self.network(jnp.concatenate([jnp.sin(angle), jnp.cos(angle), inputs[:, size:]], axis=1))


def scale_periods(period: Sequence[float], scaling: Scaling) -> tuple[float, ...]:
    """Check that there is a period per space dimension, or none at all, and convert them to scaled units."""
    if not period:
        return ()
    if len(period) != scaling.dim:
        raise ValueError(
            f"positions have {scaling.dim} dimensions, so give a period for each of them, got {len(period)}"
        )
    if not all(0 < length < math.inf for length in period):
        raise ValueError(f"a period must be a number above 0, got {', '.join(map(str, period))}")
    return tuple(length / scale for length, scale in zip(period, scaling.position_scale, strict=True))


class Coefficient(eqx.Module):
    """A linear map plus a network, of those of x, t and u that it depends on; plus a formula, if it has one.

    Most media are nearly linear; the linear map has that right at once, also where there is little data.
    """

    line: Network
    network: Network
    reads: tuple[Dependence, ...] = eqx.field(static=True)
    formula: Formula | None = None
    flux: FluxShape | None = eqx.field(static=True, default=None)
    """If this is the derivative of a flux f(u): what is known about f."""

    @classmethod
    def build(
        cls,
        reads: Sequence[str],
        scaling: Scaling,
        outputs: int,
        *,
        width: int,
        terms: Sequence[str] = (),
        period: Sequence[float] = (),
        flux: FluxShape | None = None,
        key: PRNGKeyArray,
    ) -> "Coefficient":
        """Build a coefficient with one hidden layer; it is zero before training, so that no characteristics cross."""
        reads = check_dependence(reads)
        if flux is not None and (reads != ("u",) or scaling.values != 1):
            raise ValueError("a flux f(u) needs a velocity that reads u only, and a single value u: leave flux out")
        if flux not in (None, "any") and outputs != 1:
            raise ValueError(f"a flux that is {flux} is for one space dimension, got {outputs}: choose any")
        sizes = {"x": scaling.dim, "t": 1, "u": scaling.values}
        inputs = sum(sizes[name] for name in reads)
        periods = scale_periods(period, scaling) if "x" in reads else ()
        # The slope of a square or of a size is zero at zero, from where nothing would be learned.
        build = zero_mlp if flux in (None, "any") else mlp
        parts = [build([inputs + len(periods), *hidden, outputs], key=key) for hidden in ([], [width])]
        line, network = (Periodic(part, periods) for part in parts) if periods else parts
        formula = Formula.build(terms, reads, scaling, outputs, of_flux=flux is not None) if terms else None
        return cls(line, network, reads, formula, flux)

    def __call__(
        self, x: Float[Array, "batch d"], t: Float[Array, "batch 1"], u: Float[Array, "batch n"]
    ) -> Float[Array, "batch outputs"]:
        available = {"x": x, "t": t, "u": u}
        inputs = jnp.concatenate([available[name] for name in self.reads], axis=1)
        match self.flux:
            case "increasing" | "decreasing":
                learned = jnp.square(self.line(inputs) + self.network(inputs))
            case "convex" | "concave":
                learned = _increase(self.line)(inputs) + _increase(self.network)(inputs)
            case _:
                learned = self.line(inputs) + self.network(inputs)
        if self.flux in ("decreasing", "concave"):
            learned = -learned
        return learned if self.formula is None else learned + self.formula.evaluate(x, t, u) @ self.formula.weights


def _increase(network: Network) -> Network:
    """The network with positive weights, and so an increasing function of each input; biases are free."""
    assert isinstance(network, Chain)
    size = lambda leaf: jnp.abs(leaf) if eqx.is_inexact_array(leaf) and leaf.ndim == 2 else leaf
    return jax.tree.map(size, network)


class EquationField(AbstractField):
    """dx/dt = a(x, t, u) and du/dt = c(x, t, u); the time is the context."""

    velocity: Coefficient
    source: Coefficient | KnownSource
    dim: int = eqx.field(static=True)

    @property
    def characteristic_dim(self) -> int:
        return self.dim

    @property
    def learned(self) -> dict[str, Coefficient]:
        """The coefficients that are learned, by their names."""
        source = {"source": self.source} if isinstance(self.source, Coefficient) else {}
        return {"velocity": self.velocity, **source}

    @property
    def reads(self) -> frozenset[Read]:
        return frozenset({"x", "u", "context"})

    def __call__(
        self, s: Time, x: Float[Array, "batch k"] | None, u: Float[Array, "batch *state"], z: Condition
    ) -> tuple[Float[Array, "batch k"], Float[Array, "batch *state"]]:
        assert x is not None
        assert z.context is not None
        return self.velocity(x, z.context, u), self.source(x, z.context, u)
