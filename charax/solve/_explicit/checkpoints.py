"""Checkpoints of the states between the steps, for the reverse pass over them."""

import math
from collections.abc import Callable
from typing import TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Int, PyTree

Carry = TypeVar("Carry")

_MAX_STATES = 32


class StateCheckpoints(eqx.Module):
    """The time and size of every step, and the state before every `stride`-th step.

    At first every state is kept; when the checkpoints are full, every other one is dropped and the stride doubles. The
    reverse pass recomputes the states between two checkpoints, so that every step is recomputed once at most.
    """

    states: PyTree[Float[Array, "slots ..."]]
    """One slot more than `slot` refers to, for states that are not kept."""
    slot: Int[Array, "kept"]
    """The slot of the n-th kept state."""
    stride: Int[Array, ""]
    times: Float[Array, "max_steps"]
    step_sizes: Float[Array, "max_steps"]
    num_steps: Int[Array, ""]

    @classmethod
    def allocate(cls, y: PyTree[Float[Array, "..."]], max_steps: int) -> "StateCheckpoints":
        """Empty checkpoints for a solve of up to `max_steps` steps."""
        kept = min(_MAX_STATES, max_steps + max_steps % 2)
        times = jnp.zeros(max_steps, jax.tree.leaves(y)[0].dtype)
        states = jax.tree.map(lambda leaf: jnp.zeros((kept + 1, *leaf.shape), leaf.dtype), y)
        return cls(states, jnp.arange(kept), jnp.array(1), times, times, jnp.array(0))

    def save(self, number: Int[Array, ""], y: PyTree, t: Float[Array, ""], h: Float[Array, ""]) -> "StateCheckpoints":
        """Save the state before a step. A second attempt at the same step overwrites the first."""
        kept = self.slot.shape[0]
        full = number >= kept * self.stride
        stride = jnp.where(full, 2 * self.stride, self.stride)
        slot = jnp.where(full, jnp.concatenate([self.slot[::2], self.slot[1::2]]), self.slot)
        index = jnp.where(number % stride == 0, slot[number // stride], kept)
        return StateCheckpoints(
            states=jax.tree.map(lambda states, leaf: states.at[index].set(leaf), self.states, y),
            slot=slot,
            stride=stride,
            times=self.times.at[number].set(t),
            step_sizes=self.step_sizes.at[number].set(h),
            num_steps=self.num_steps,
        )

    def finish(self, num_steps: Int[Array, ""]) -> "StateCheckpoints":
        """The checkpoints of a solve that made `num_steps` steps."""
        return eqx.tree_at(lambda it: it.num_steps, self, num_steps)

    def reverse(
        self, step: Callable[[PyTree, Array, Array], PyTree], pullback: Callable[..., Carry], carry: Carry
    ) -> Carry:
        """`carry = pullback(carry, y, t, h)` for all steps, the last one first; `step(y, t, h)` recomputes states."""
        longest = 1 << math.ceil(math.log2(max(self.times.shape[0] / self.slot.shape[0], 1)))
        buffer = jax.tree.map(lambda states: jnp.zeros((longest, *states.shape[1:]), states.dtype), self.states)
        put = lambda buffer, index, y: jax.tree.map(lambda states, leaf: states.at[index].set(leaf), buffer, y)
        get = lambda buffer, index: jax.tree.map(lambda states: states[index], buffer)

        def segment(i: Array, now: tuple[Carry, PyTree]) -> tuple[Carry, PyTree]:
            """All steps from one checkpoint to the next; only one, and nothing recomputed, if every state is kept."""
            carry, buffer = now
            first = ((self.num_steps - 1) // self.stride - i) * self.stride
            last = jnp.minimum(self.stride, self.num_steps - first) - 1

            def recompute(j: Array, now: tuple[PyTree, PyTree]) -> tuple[PyTree, PyTree]:
                y, buffer = now
                return step(y, self.times[first + j], self.step_sizes[first + j]), put(buffer, j, y)

            def back(j: Array, carry: Carry) -> Carry:
                index = last - j
                return pullback(carry, get(buffer, index), self.times[first + index], self.step_sizes[first + index])

            start = get(self.states, self.slot[first // self.stride])
            y, buffer = lax.fori_loop(0, last, recompute, (start, buffer))
            buffer = put(buffer, last, y)
            return lax.fori_loop(0, last + 1, back, carry), buffer

        segments = -(-self.num_steps // self.stride)
        return lax.fori_loop(0, segments, segment, (carry, buffer))[0]
