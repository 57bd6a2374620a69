"""Shocks on a curve of characteristics: the entropy solution between and on them, at any points."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from charax.pde._entropy_curve import Curve, CurvePoints, hermite


class Piece(NamedTuple):
    """The path of a shock in one time step, or in a part of it if it meets another."""

    t0: float
    x0: float
    speed0: float
    t1: float
    x1: float
    speed1: float
    left: int
    """The interval of the curve that meets the shock from the left at the beginning."""
    right: int
    """The interval of the curve that meets the shock from the right at the beginning."""
    new: bool
    """Whether the shock forms in this step. Then the intervals are those at its end."""


_ABSENT = Piece(np.inf, 0.0, 0.0, np.inf, 0.0, 0.0, 0, 0, False)


class Paths(NamedTuple):
    """The pieces of all time steps, one row per step, padded with pieces that are never present."""

    t0: Float[np.ndarray, "steps pieces"]
    x0: Float[np.ndarray, "steps pieces"]
    speed0: Float[np.ndarray, "steps pieces"]
    t1: Float[np.ndarray, "steps pieces"]
    x1: Float[np.ndarray, "steps pieces"]
    speed1: Float[np.ndarray, "steps pieces"]
    left: Int[np.ndarray, "steps pieces"]
    right: Int[np.ndarray, "steps pieces"]
    new: Bool[np.ndarray, "steps pieces"]

    @staticmethod
    def from_pieces(steps: list[list[Piece]]) -> "Paths":
        """The table of the pieces of every step."""
        width = max(1, *(len(row) for row in steps))
        table = [row + [_ABSENT] * (width - len(row)) for row in steps]
        return Paths(*(np.array([[piece[i] for piece in row] for row in table]) for i in range(len(_ABSENT))))

    def rows(self, step: Int[np.ndarray, "points"]) -> "Paths":
        """The rows of the given steps."""
        return Paths(*(values[step] for values in self))

    def positions(self, t: Float[np.ndarray, "steps"]) -> tuple[np.ndarray, np.ndarray]:
        """The positions of the pieces, each row at its own time, and which of them are present."""
        t = t[:, None]
        present = (t >= self.t0) & (t <= self.t1)
        begin, end = np.where(present, self.t0, 0.0), np.where(present, self.t1, 1.0)
        width = np.where(end > begin, end - begin, 1.0)
        share = np.clip((t - begin) / width, 0, 1)
        return hermite(share, self.x0, self.x1, width * self.speed0, width * self.speed1), present


class Tracks(NamedTuple):
    """The curve and the shocks on it: the entropy solution until the end of the curve."""

    curve: Curve
    paths: Paths
    starts: Float[np.ndarray, "steps"]
    """The times at which the steps begin."""
    first: Int[np.ndarray, "steps"]
    """The first node of the curve that is part of the solution."""
    last: Int[np.ndarray, "steps"]
    """The last node of the curve that is part of the solution."""

    def shocks(self, t: Float[np.ndarray, "times"]) -> tuple[Int[np.ndarray, "shocks"], Float[np.ndarray, "shocks"]]:
        """All shocks at some times: the index of the time, and the position."""
        x, present = self.paths.rows(self._step(t)).positions(t)
        row, piece = np.nonzero(present)
        return row, x[row, piece]

    def evaluate(
        self, x: Float[np.ndarray, "points"], t: Float[np.ndarray, "points"], *, from_right: bool = False
    ) -> tuple[CurvePoints, Bool[np.ndarray, "points"]]:
        """The point of the curve that reaches each point, and whether there is one; on a shock, from one side of it."""
        step = self._step(t)
        paths = self.paths.rows(step)
        shock, present = paths.positions(t)
        on_left = present & ((shock <= x[:, None]) if from_right else (shock < x[:, None]))
        on_right = present & ~on_left
        left, right = on_left.any(axis=1), on_right.any(axis=1)
        left_piece = np.argmax(np.where(on_left, shock, -np.inf), axis=1)
        right_piece = np.argmin(np.where(on_right, shock, np.inf), axis=1)
        pick = lambda values, piece: np.take_along_axis(values, piece[:, None], axis=1)[:, 0]
        lower = np.where(left, pick(paths.right, left_piece), self.first[step])
        upper = np.where(right, pick(paths.left, right_piece) + 1, self.last[step])
        # What a new shock absorbs before the end of its first step may not have been absorbed yet.
        early = left & pick(paths.new, left_piece) & (self.curve.position(t, lower) > x)
        lower = np.where(early, pick(paths.left, left_piece), lower)
        early = right & pick(paths.new, right_piece) & (self.curve.position(t, upper) <= x)
        upper = np.where(early, pick(paths.right, right_piece) + 1, upper)
        interval = self._bracket(x, t, lower, np.maximum(upper, lower + 1))
        return self.curve.invert(x, t, interval), self._is_reached(x, t)

    def _bracket(self, x: np.ndarray, t: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
        """The interval of the curve over each point, by bisection of the nodes between two shocks."""
        nodes = self.curve.x.shape[1]
        for _ in range(int(np.ceil(np.log2(nodes))) + 1):
            middle = (lower + upper) // 2
            below = self.curve.position(t, middle) <= x
            wide = upper - lower > 1
            lower, upper = np.where(wide & below, middle, lower), np.where(wide & ~below, middle, upper)
        return np.minimum(lower, nodes - 2)

    def _is_reached(self, x: np.ndarray, t: np.ndarray) -> np.ndarray:
        slack = 1e4 * np.finfo(float).eps * (1 + np.abs(x))
        end = lambda node: self.curve.position(t, np.full(x.shape, node))
        return (x >= end(0) - slack) & (x <= end(self.curve.x.shape[1] - 1) + slack)

    def _step(self, t: np.ndarray) -> np.ndarray:
        return np.maximum(np.searchsorted(self.starts, t, side="right") - 1, 0)
