"""Known parts of an equation: a source or an initial value that is given, and not learned."""

from collections.abc import Callable, Sequence

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from charax.models._scaling import Scaling
from charax.models._terms import parse_term

Given = tuple[str, ...] | Callable[..., Array]
"""A formula per value, such as ("-0.2*u",), or a function of arrays with a batch axis, in the units of the data."""


def check_given(
    given: Sequence[str] | Callable[..., Array], names: tuple[str, ...], scaling: Scaling, part: str
) -> Given:
    """Check that there is a formula per value, and that each can be read."""
    if callable(given):
        return given
    if len(given) != scaling.values:
        raise ValueError(
            f"the {part} has {scaling.values} values, so give a formula for each of them, got {len(given)}"
        )
    for text in given:
        parse_term(text, names)
    return tuple(given)


def _evaluate(
    formulas: tuple[str, ...], names: tuple[str, ...], rows: Float[Array, "batch names"]
) -> Float[Array, "batch n"]:
    values = {name: rows[:, i] for i, name in enumerate(names)}
    return jnp.stack([jnp.broadcast_to(parse_term(text, names)(values), rows.shape[:1]) for text in formulas], axis=1)


class KnownSource(eqx.Module):
    """c(x, t, u) as it is given, between scaled units."""

    given: Given = eqx.field(static=True)
    names: tuple[str, ...] = eqx.field(static=True)
    """The variables of formulas: those of x, t, and those of u."""
    scaling: Scaling = eqx.field(static=True)

    def __call__(
        self, x: Float[Array, "batch d"], t: Float[Array, "batch 1"], u: Float[Array, "batch n"]
    ) -> Float[Array, "batch n"]:
        scaling = self.scaling
        x, t, u = scaling.unscale_position(x), t * scaling.time, scaling.unscale_value(u)
        if callable(self.given):
            source = self.given(x, t[:, 0], u)
        else:
            source = _evaluate(self.given, self.names, jnp.concatenate([x, t, u], axis=1))
        return source * scaling.time / jnp.asarray(scaling.value_scale, u.dtype)


class KnownInitial(eqx.Module):
    """u₀(x) as it is given, between scaled units."""

    given: Given = eqx.field(static=True)
    names: tuple[str, ...] = eqx.field(static=True)
    """The variables of formulas: those of x."""
    scaling: Scaling = eqx.field(static=True)

    def __call__(self, x: Float[Array, "batch d"]) -> Float[Array, "batch n"]:
        position = self.scaling.unscale_position(x)
        value = self.given(position) if callable(self.given) else _evaluate(self.given, self.names, position)
        return self.scaling.scale_value(value)
