"""The trace of ∂f/∂u along a flow: exact, or estimated from a few products.

Every product is a Jacobian-vector product of the whole batch; several of them are one `vmap` over directions, so that
no weight is ever copied per sample.
"""

from abc import abstractmethod
from collections.abc import Callable
from typing import Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

Probes = tuple[Float[Array, "probes batch *state"], ...] | None
Distribution = Literal["rademacher", "gaussian"]


class Divergence(NamedTuple):
    """A field f, and the trace and the norm of A = ∂f/∂u, at one state of every sample."""

    value: Float[Array, "batch *state"]
    trace: Float[Array, "batch"]
    squared_norm: Float[Array, "batch"]
    """The squared Frobenius norm of A, exact or estimated from the same products."""


class AbstractTrace(eqx.Module):
    """A method to compute the trace of a field's Jacobian.

    ```python
    import jax
    import jax.numpy as jnp
    from charax.models.flows import AbstractTrace, HutchPlusPlus

    trace: AbstractTrace = HutchPlusPlus(products=3)
    probes = trace.draw(jax.random.key(0), jnp.ones((2, 4)))
    assert trace(lambda u: u**3, jnp.ones((2, 4)), probes).trace.shape == (2,)
    ```
    """

    @abstractmethod
    def draw(self, key: PRNGKeyArray | None, u: Float[Array, "batch *state"]) -> Probes:
        """Draw the random directions of one solve: once, so that the solver sees a smooth field.

        Args:
            key: Random key; only an estimated trace needs one.
            u: The initial state.

        Returns:
            The directions, or None.

        Raises:
            ValueError: If the key is missing, or the method does not suit the size of the state.
        """

    @abstractmethod
    def __call__(self, f: Callable[[Array], Array], u: Float[Array, "batch *state"], probes: Probes) -> Divergence:
        """Compute the trace at a state, together with the field, which is evaluated anyway.

        Args:
            f: The field as a function of the state.
            u: The state.
            probes: The directions from `draw`.

        Returns:
            The `value` of f, the `trace` of its Jacobian, and the Jacobian's `squared_norm`.
        """


_UNROLLED = 4
"""Maximum number of products that are unrolled: on a CPU the gradient of a `vmap` over few directions, with its sums
over them, takes two to three times as long."""


def _each(
    product: Callable[[Array], Array], directions: Float[Array, "probes batch *state"]
) -> Float[Array, "probes batch *state"]:
    """A·v for each direction v."""
    if len(directions) > _UNROLLED:
        return jax.vmap(product)(directions)
    return jnp.stack([product(direction) for direction in directions])


def _dot(a: Float[Array, "*_"], b: Float[Array, "*_"], kept: int) -> Array:
    return jnp.sum(a * b, axis=tuple(range(kept, a.ndim)))


def _need(key: PRNGKeyArray | None) -> PRNGKeyArray:
    if key is None:
        raise ValueError("an estimated trace is random: pass key=jax.random.key(…), or trace=ExactTrace()")
    return key


class ExactTrace(AbstractTrace):
    """One product with every basis vector: for a state of up to some tens of numbers.

    ```python
    import jax.numpy as jnp
    from charax.models.flows import ExactTrace

    found = ExactTrace()(lambda u: u**2, jnp.array([[1.0, 2.0]]), None)
    assert found.trace[0] == 2 * 1.0 + 2 * 2.0
    ```
    """

    def draw(self, key: PRNGKeyArray | None, u: Float[Array, "batch *state"]) -> Probes:
        return None

    def __call__(self, f: Callable[[Array], Array], u: Float[Array, "batch *state"], probes: Probes) -> Divergence:
        size = u[0].size
        basis = jnp.eye(size, dtype=u.dtype).reshape(size, 1, *u.shape[1:])
        value, product = jax.linearize(f, u)
        directions = jnp.broadcast_to(basis, (size, *u.shape))
        if size > _UNROLLED:
            columns = jax.vmap(product)(directions).reshape(size, -1, size)
            return Divergence(value, jnp.einsum("ibi->b", columns), jnp.sum(columns**2, axis=(0, 2)))
        columns = [product(direction).reshape(-1, size) for direction in directions]
        zero = jnp.zeros(u.shape[:1], u.dtype)
        trace = sum((column[:, i] for i, column in enumerate(columns)), zero)
        return Divergence(value, trace, sum((jnp.sum(column**2, axis=1) for column in columns), zero))


class Hutchinson(AbstractTrace):
    """Hutchinson's estimator, the mean of vᵀAv over random directions: unbiased, with one product per direction.

    ```python
    import jax
    import jax.numpy as jnp
    from charax.models.flows import Hutchinson

    trace, u = Hutchinson(probes=4), jnp.ones((3, 8, 8, 1))
    found = trace(lambda u: 2 * u, u, trace.draw(jax.random.key(0), u))
    assert jnp.allclose(found.trace, 2 * 64)  # exact for a diagonal: vᵢ² is 1
    ```
    """

    probes: int = eqx.field(default=1, static=True)
    """The number of directions."""
    distribution: Distribution = eqx.field(default="rademacher", static=True)
    """The distribution of their components: "rademacher" (±1) or "gaussian"."""

    def __check_init__(self):
        if self.probes < 1:
            raise ValueError(f"probes must be at least 1, got {self.probes}")
        if self.distribution not in _DRAW:
            raise ValueError(f"unknown distribution {self.distribution!r}; choose from {', '.join(_DRAW)}")

    def draw(self, key: PRNGKeyArray | None, u: Float[Array, "batch *state"]) -> Probes:
        return (_DRAW[self.distribution](_need(key), (self.probes, *u.shape), u.dtype),)

    def __call__(self, f: Callable[[Array], Array], u: Float[Array, "batch *state"], probes: Probes) -> Divergence:
        assert probes is not None
        (v,) = probes
        value, product = jax.linearize(f, u)
        products = _each(product, v)
        return Divergence(value, _dot(v, products, 2).mean(0), _dot(products, products, 2).mean(0))


class HutchPlusPlus(AbstractTrace):
    """Hutch++ (Meyer, Musco, Musco, Woodruff): the exact trace on the range of a sketch, and Hutchinson's estimator for
    the rest.

    The range is held fixed in derivatives: the estimate is unbiased for any range that does not depend on the remaining
    directions, and so is its derivative.

    ```python
    import jax
    import jax.numpy as jnp
    from charax.models.flows import HutchPlusPlus

    trace, u = HutchPlusPlus(products=6), jnp.ones((3, 5))
    found = trace(lambda u: u.sum(1, keepdims=True) * jnp.ones(5), u, trace.draw(jax.random.key(0), u))
    assert jnp.allclose(found.trace, 5.0, atol=1e-4)  # a Jacobian of rank one is found by the sketch
    ```
    """

    products: int = eqx.field(default=6, static=True)
    """The number of products; a third each for the sketch, the trace on its range, and the rest."""

    def __check_init__(self):
        if self.products < 3 or self.products % 3:
            raise ValueError(f"products must be 3, 6, 9, …: a third for each part of Hutch++; got {self.products}")

    def draw(self, key: PRNGKeyArray | None, u: Float[Array, "batch *state"]) -> Probes:
        part = self.products // 3
        if 2 * part > u[0].size:
            raise ValueError(
                f"{self.products} products are too many for a state of {u[0].size} numbers: use ExactTrace(), which "
                f"needs {u[0].size}"
            )
        sketch, rest = jax.random.split(_need(key))
        shape = (part, *u.shape)
        return jax.random.rademacher(sketch, shape, u.dtype), jax.random.rademacher(rest, shape, u.dtype)

    def __call__(self, f: Callable[[Array], Array], u: Float[Array, "batch *state"], probes: Probes) -> Divergence:
        assert probes is not None
        sketch, rest = probes
        value, product = jax.linearize(f, u)
        push = lambda directions: _each(product, directions)
        columns = lambda v: jnp.moveaxis(v.reshape(*v.shape[:2], -1), 0, -1)  # [probes, batch, …] to [batch, n, probes]
        directions = lambda v: jnp.moveaxis(v, -1, 0).reshape(-1, *u.shape)
        # A field that is zero somewhere has no range there; any orthonormal columns will do.
        floor = jnp.finfo(u.dtype).tiny ** 0.5 * columns(sketch)
        basis, _ = jnp.linalg.qr(jax.lax.stop_gradient(columns(push(sketch))) + floor)
        on_range = columns(push(directions(basis)))
        v = columns(rest)
        v = v - basis @ (jnp.swapaxes(basis, 1, 2) @ v)
        products = columns(push(directions(v)))
        trace = _dot(basis, on_range, 1) + _dot(v, products, 1) / v.shape[-1]
        # ‖A‖² = ‖AQ‖² + ‖A(1 − QQᵀ)‖², the second part in the mean.
        return Divergence(value, trace, _dot(on_range, on_range, 1) + _dot(products, products, 1) / v.shape[-1])


_DRAW: dict[str, Callable[..., Array]] = {"rademacher": jax.random.rademacher, "gaussian": jax.random.normal}
