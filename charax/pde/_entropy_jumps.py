"""The shocks of a conservation law at given times, by least action: where the solution changes its branch."""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float, Int

from charax.pde._entropy_action import Branch, branches, in_chunks, least_action, move_inside, search
from charax.pde._entropy_graph import Graph
from charax.pde._entropy_law import Law

_STRIDE = 8
_CORRECTIONS = 4
_ROUNDS = 12
_ROUNDING = 1e3


class Jumps(NamedTuple):
    """Shocks in any order."""

    row: Int[np.ndarray, "shocks"]
    """The index of the time."""
    x: Float[np.ndarray, "shocks"]
    left: Float[np.ndarray, "shocks"]
    right: Float[np.ndarray, "shocks"]


def find_jumps(law: Law, graph: Graph, t: Float[np.ndarray, "times"]) -> Jumps:
    """All shocks at each of the times, between nodes of the curve that are part of the solution."""
    if not t.size:
        return Jumps(np.zeros(0, int), *np.zeros((3, 0)))
    count = graph.foot.size
    position = np.asarray(law.foot, float)[:count] + t[:, None] * np.asarray(law.speed, float)[:count]
    row, node = np.nonzero(_kept(law, position, t))
    gap = (row[1:] == row[:-1]) & (node[1:] > node[:-1] + 1)
    row, left, right = row[:-1][gap], node[:-1][gap], node[1:][gap]
    pairs = _Pairs(row, left, right - 1, position[row, left], position[row, right])
    done = [Jumps(row[:0], *np.zeros((3, 0)))]
    for _ in range(_ROUNDS):
        if not pairs.row.size:
            break
        x, one, other = _balance(law, pairs, t)
        least = least_action(law, x, t[pairs.row])[0]
        slack = _ROUNDING * float(jnp.finfo(law.foot.dtype).eps) * (1 + np.abs(one.potential))
        found = np.abs(one.potential - other.potential) <= slack
        found &= law.sign * (one.potential - least.potential) <= slack
        states = (np.asarray(branch.value)[found] for branch in (one, other))
        done.append(Jumps(pairs.row[found], x[found], *states))
        pairs = pairs.narrow(x, np.asarray(least.interval)).take(np.tile(~found, 2))
    return Jumps(*(np.concatenate(values) for values in zip(*done, strict=True)))


class _Pairs(NamedTuple):
    """Intervals of the curve at the ends of a range of x in which there is a shock."""

    row: np.ndarray
    left: np.ndarray
    right: np.ndarray
    lower: np.ndarray
    upper: np.ndarray

    def take(self, index: np.ndarray) -> "_Pairs":
        """Some of the pairs that are not the same interval twice."""
        index = index & (self.left < self.right)
        return _Pairs(*(values[index] for values in self))

    def narrow(self, x: np.ndarray, interval: np.ndarray) -> "_Pairs":
        """The pairs to the left and to the right of x, where the solution comes from an interval.

        It is a third one if two shocks are about to merge and no node is left between them.
        """
        middle = np.clip(interval, self.left, self.right)
        return _Pairs(
            np.tile(self.row, 2),
            np.append(self.left, middle),
            np.append(middle, self.right),
            np.append(self.lower, x),
            np.append(x, self.upper),
        )


def _kept(
    law: Law, position: Float[np.ndarray, "times nodes"], t: Float[np.ndarray, "times"]
) -> Bool[np.ndarray, "times nodes"]:
    """Which nodes of the curve are part of the solution: those that least action finds at their own positions.

    At a fixed time the foot of the solution increases with x. So it is enough to look at every `_STRIDE`-th node, and
    then at those between two of them that are in order, unless the curve is in order there.
    """
    count = position.shape[1]
    kept = np.zeros(position.shape, bool)

    def look(row: np.ndarray, node: np.ndarray) -> None:
        x, inside = move_inside(law, position[row, node], t[row])
        found = in_chunks(search, law, x, t[row])
        kept[row, node] = inside & found.reached & ((found.best == node) | (found.best == node - 1))

    some = np.unique(np.append(np.arange(0, count, _STRIDE), count - 1))
    row, node = np.meshgrid(np.arange(t.size), some, indexing="ij")
    look(row.ravel(), node.ravel())
    backward = np.add.reduceat(np.diff(position, axis=1) <= 0, some[:-1], axis=1) > 0
    smooth = np.repeat(kept[:, some[:-1]] & kept[:, some[1:]] & ~backward, np.diff(some), axis=1)
    smooth = np.append(smooth, np.zeros((t.size, 1), bool), axis=1)
    before = np.maximum.accumulate(np.where(kept, position, -np.inf), axis=1)
    after = np.minimum.accumulate(np.where(kept, position, np.inf)[:, ::-1], axis=1)[:, ::-1]
    between = ~np.isin(np.arange(count), some)
    kept |= smooth & between
    row, node = np.nonzero(~smooth & between & (position >= before) & (position <= after))
    if row.size:
        look(row, node)
    return kept


def _balance(law: Law, pairs: _Pairs, t: np.ndarray) -> tuple[np.ndarray, Branch, Branch]:
    """Where the characteristics from pairs of intervals have the same potential, and these characteristics."""
    x = (pairs.lower + pairs.upper) / 2
    one, other = branches(law, pairs.left, pairs.right, x, t[pairs.row])
    for _ in range(_CORRECTIONS):
        # ∂U/∂x = u, and both potentials are nearly straight in the width of an interval.
        jump = one.value - other.value
        change = np.where(jump != 0, (other.potential - one.potential) / np.where(jump != 0, jump, 1), 0)
        x = np.clip(x + change, pairs.lower, pairs.upper)
        one, other = branches(law, pairs.left, pairs.right, x, t[pairs.row])
    return x, one, other
