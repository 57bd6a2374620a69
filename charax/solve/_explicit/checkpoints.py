"""The states between the steps of a walk, for going back over them."""

import math
from collections.abc import Callable
from typing import TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Int, PyTree

Carry = TypeVar("Carry")

_KEPT = 32


class Tape(eqx.Module):
    """Every step's time and length, and the state before every `stride`-th step.

    It begins with every state; when it is full every other one is given up and the stride doubles. What lies between
    two kept states is walked again on the way back, so that no step is recomputed more than once for that.
    """

    kept: PyTree[Float[Array, "places ..."]]
    """One place more than is used, for what is not to be kept."""
    place: Int[Array, "kept"]
    """Where in `kept` the n-th kept state is."""
    stride: Int[Array, ""]
    times: Float[Array, "steps"]
    lengths: Float[Array, "steps"]
    written: Int[Array, ""]

    @classmethod
    def blank(cls, y: PyTree[Float[Array, "..."]], max_steps: int) -> "Tape":
        """A tape for a walk of so many steps at most."""
        some = min(_KEPT, max_steps + max_steps % 2)
        times = jnp.zeros(max_steps, jax.tree.leaves(y)[0].dtype)
        kept = jax.tree.map(lambda leaf: jnp.zeros((some + 1, *leaf.shape), leaf.dtype), y)
        return cls(kept, jnp.arange(some), jnp.array(1), times, times, jnp.array(0))

    def write(self, number: Int[Array, ""], y: PyTree, t: Float[Array, ""], h: Float[Array, ""]) -> "Tape":
        """Note the state before a step. A step that is tried again is noted again."""
        some = self.place.shape[0]
        full = number >= some * self.stride
        stride = jnp.where(full, 2 * self.stride, self.stride)
        place = jnp.where(full, jnp.concatenate([self.place[::2], self.place[1::2]]), self.place)
        here = jnp.where(number % stride == 0, place[number // stride], some)
        kept = jax.tree.map(lambda kept, leaf: kept.at[here].set(leaf), self.kept, y)
        return Tape(kept, place, stride, self.times.at[number].set(t), self.lengths.at[number].set(h), self.written)

    def end(self, written: Int[Array, ""]) -> "Tape":
        """The tape of a walk that has ended after so many steps."""
        return eqx.tree_at(lambda it: it.written, self, written)

    def unwind(self, step: Callable[[PyTree, Array, Array], PyTree], pull: Callable[..., Carry], carry: Carry) -> Carry:
        """`carry = pull(carry, y, t, h)` for all steps, the last one first."""
        one = lambda number, y, carry: pull(carry, y, self.times[number], self.lengths[number])
        load = lambda number: jax.tree.map(lambda kept: kept[self.place[number // self.stride]], self.kept)

        def every(carry: Carry) -> Carry:
            back = lambda i, carry: one(self.written - 1 - i, load(self.written - 1 - i), carry)
            return lax.fori_loop(0, self.written, back, carry)

        def some(carry: Carry) -> Carry:
            longest = 1 << math.ceil(math.log2(max(self.times.shape[0] / self.place.shape[0], 1)))
            blank = jax.tree.map(lambda kept: jnp.zeros((longest, *kept.shape[1:]), kept.dtype), self.kept)

            def part(i: Array, carry: Carry) -> Carry:
                first = ((self.written - 1) // self.stride - i) * self.stride
                length = jnp.minimum(self.stride, self.written - first)

                def again(j: Array, on: tuple[PyTree, PyTree]) -> tuple[PyTree, PyTree]:
                    y, between = on
                    between = jax.tree.map(lambda walked, leaf: walked.at[j].set(leaf), between, y)
                    return step(y, self.times[first + j], self.lengths[first + j]), between

                _, between = lax.fori_loop(0, length, again, (load(first), blank))
                state = lambda j: jax.tree.map(lambda walked: walked[j], between)
                back = lambda j, carry: one(first + length - 1 - j, state(length - 1 - j), carry)
                return lax.fori_loop(0, length, back, carry)

            return lax.fori_loop(0, -(-self.written // self.stride), part, carry)

        return lax.cond(self.stride == 1, every, some, carry)
