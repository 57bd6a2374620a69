"""Front tracking: the shocks of uₜ + a(x, t, u)·uₓ = c(x, t, u), from their formation on.

A shock moves by the Rankine–Hugoniot condition, with the values that the characteristics bring from both sides,

    ds/dt = [f]/[u] = mean of a(s, t, u) over the values of u between the left and the right state,

and absorbs every characteristic that it meets. The condition is integrated by the classical Runge–Kutta method. Shocks
form at discontinuities of the initial value that compress, and where the curve X(t; σ) folds, first at the position of
equal areas. Two shocks that meet become one.
"""

from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from charax.pde._entropy_curve import Curve, CurvePoints, Level, area, invert_level
from charax.pde._entropy_graph import Graph, gauss_legendre, pad_rows
from charax.pde._entropy_paths import Paths, Piece, Tracks
from charax.pde._problem import AbstractProblem

_STEPS = 128
_HALVINGS = 5
"""How often a step is halved in which the speed of a shock has a kink, or in which shocks form or meet."""
TIMES = 2 * _STEPS + 1
"""Times at which the characteristics are tabulated."""
_TOLERANCE = 1e-7
_ROWS = 32
_BISECTIONS = 60


class Fronts(NamedTuple):
    """All shocks at one time, from left to right."""

    x: Float[np.ndarray, "fronts"]
    speed: Float[np.ndarray, "fronts"]
    left: Int[np.ndarray, "fronts"]
    """The interval of the curve that meets the shock from the left. What lies between it and `right` is absorbed."""
    right: Int[np.ndarray, "fronts"]
    u_left: Float[np.ndarray, "fronts"]
    u_right: Float[np.ndarray, "fronts"]

    def take(self, index: np.ndarray) -> "Fronts":
        """Some of the shocks, by index or mask."""
        return Fronts(*(values[index] for values in self))

    def join(self, other: "Fronts") -> "Fronts":
        """These shocks and others, in order."""
        both = Fronts(*(np.concatenate(pair) for pair in zip(self, other, strict=True)))
        return both.take(np.argsort(both.left, kind="stable"))


@eqx.filter_jit
def _velocities(problem: AbstractProblem, rows: Float[Array, "4 fronts"]) -> tuple[Array, Array]:
    """The mean velocity over the values between two states, and velocities from the left state to the right one."""
    x, t, left, right = rows
    points, weights = (jnp.asarray(values, x.dtype) for values in gauss_legendre(8))
    u = left[:, None] + points * (right - left)[:, None]
    repeat = lambda values: jnp.repeat(values, points.size)
    a = problem.velocity(repeat(x)[:, None], repeat(t), u.reshape(-1)).reshape(u.shape)
    return a @ weights, a


class Tracker:
    """Tracks all shocks of one problem along a curve of characteristics."""

    def __init__(self, problem: AbstractProblem, curve: Curve, graph: Graph, dtype: jnp.dtype, tolerance: float):
        """Start at t = 0.

        Args:
            problem: The problem.
            curve: Its characteristics.
            graph: The initial value, where they start.
            dtype: The precision of the problem's functions.
            tolerance: The accuracy of the characteristics.
        """
        self.problem, self.curve, self.graph, self.dtype = problem, curve, graph, dtype
        scale = 1 + max(abs(end) for end in problem.domain[0])
        self.noise = 100 * tolerance * scale
        self.tolerance = max(_TOLERANCE, 10 * tolerance) * scale
        self.first, self.last = 0, graph.foot.size - 1
        self.steps: list[list[Piece]] = []
        self.bounds: list[tuple[float, int, int]] = []

    def run(self) -> Tracks:
        """Track all shocks until the end of the curve."""
        fronts = self._initial()
        begin, *levels = (self.curve.at(t) for t in np.linspace(0, self.curve.end, _STEPS + 1))
        for end in levels:
            fronts = self._step(fronts, begin, end, _HALVINGS)
            begin = end
        bounds = (np.array(values) for values in zip(*self.bounds, strict=True))
        return Tracks(self.curve, Paths.from_pieces(self.steps), *bounds)

    def _step(self, fronts: Fronts, begin: Level, end: Level, halvings: int) -> Fronts:
        """Advance all shocks by a time step, or by two of half the size if it is not smooth."""
        middle = self.curve.at((begin.t + end.t) / 2)
        moved, error = self._advance(fronts, begin, middle, end)
        smooth = error <= self.tolerance and not (np.diff(moved.x) <= 0).any()
        bounds = self.first, self.last
        if smooth or not halvings:
            moved, pieces = self._merge(fronts, moved, begin.t, end)
            moved = self._bound(moved, end)
            folds = self._folds(moved, end)
            if not (folds and halvings):
                new = self._form(folds, end)
                pieces += [_first_piece(new, i, begin.t, end.t) for i in range(new.x.size)]
                self.steps.append(pieces)
                self.bounds.append((begin.t, *bounds))
                return moved.join(new)
            self.first, self.last = bounds
        fronts = self._step(fronts, begin, middle, halvings - 1)
        return self._step(fronts, middle, end, halvings - 1)

    def _initial(self) -> Fronts:
        """Discontinuities of the initial value that compress are shocks from the start."""
        level, speed = self.curve.at(0.0), self.curve.dx[0]
        left, right = [], []
        for first, last in self.graph.jumps:
            between = speed[first : last + 1]
            slack = 1e-6 * (1 + np.abs(between).max())
            if (np.diff(between) <= slack).all() and speed[first] > speed[last]:
                left.append(max(first - 1, 0))
                right.append(min(last, speed.size - 2))
            elif (np.diff(between) < -slack).any():
                raise _not_convex(level.x[first], 0.0, level.u[first], level.u[last])
        left, right = np.array(left, int), np.array(right, int)
        fronts = Fronts(level.x[left + 1], np.zeros(left.size), left, right, level.u[left + 1], level.u[right])
        return self._with_speed(level, fronts)

    def _with_speed(self, level: Level, fronts: Fronts) -> Fronts:
        """The shocks with the speed of the Rankine–Hugoniot condition."""
        count = fronts.x.size
        if not count:
            return fronts
        rows = np.stack([fronts.x, np.full(count, level.t), fronts.u_left, fronts.u_right], axis=1)
        rows = jnp.asarray(pad_rows(rows, _ROWS).T, self.dtype)
        mean, a = (np.asarray(value, float)[:count] for value in _velocities(self.problem, rows))
        slack = 1e-6 * (1 + np.abs(a).max()) + 100 * self.noise
        wrong = (np.diff(a, axis=1) > slack).any(axis=1)
        if wrong.any():
            i = int(np.argmax(wrong))
            raise _not_convex(fronts.x[i], level.t, fronts.u_left[i], fronts.u_right[i])
        return fronts._replace(speed=mean)

    def _at(self, level: Level, x: np.ndarray, fronts: Fronts) -> Fronts:
        """The shocks at positions x, with their states and speeds there. `fronts` says what they have absorbed."""
        if not x.size:
            return fronts
        interval = np.arange(level.x.size - 1)
        first = np.concatenate([[self.first], fronts.right[:-1]])
        last = np.concatenate([fronts.left[1:], [self.last - 1]])
        over = (level.x[:-1] <= x[:, None]) & (x[:, None] < level.x[1:])
        from_left = over & (interval >= first[:, None]) & (interval <= fronts.left[:, None])
        from_right = over & (interval >= fronts.right[:, None]) & (interval <= last[:, None])
        # Where no interval lies over a shock, it has not left the last one yet, or is past its neighbor.
        nearest = interval.size - 1 - np.argmax(from_left[:, ::-1], axis=1)
        otherwise = np.where(x >= level.x[fronts.left + 1], fronts.left, np.minimum(first, fronts.left))
        left = np.where(from_left.any(axis=1), nearest, otherwise)
        nearest = np.argmax(from_right, axis=1)
        otherwise = np.where(x <= level.x[fronts.right], fronts.right, np.maximum(last, fronts.right))
        right = np.where(from_right.any(axis=1), nearest, otherwise)
        u = invert_level(level, np.tile(x, 2), np.concatenate([left, right])).u
        return self._with_speed(level, Fronts(x, fronts.speed, left, right, *u.reshape(2, -1)))

    def _advance(self, fronts: Fronts, begin: Level, middle: Level, end: Level) -> tuple[Fronts, float]:
        """One step of the classical Runge–Kutta method, and an estimate of its error."""
        if not fronts.x.size:
            return fronts, 0.0
        dt = end.t - begin.t
        k1 = fronts.speed
        k2 = self._at(middle, fronts.x + dt / 2 * k1, fronts).speed
        k3 = self._at(middle, fronts.x + dt / 2 * k2, fronts).speed
        k4 = self._at(end, fronts.x + dt * k3, fronts).speed
        moved = self._at(end, fronts.x + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4), fronts)
        return moved, float(dt / 6 * np.abs(k1 - k2 - k3 + k4).max())

    def _merge(self, before: Fronts, after: Fronts, t: float, end: Level) -> tuple[Fronts, list[Piece]]:
        """Replace shocks that have passed each other in a step by one; also the paths of all shocks in the step."""
        starts = [
            Piece(t, x, speed, end.t, x, speed, int(left), int(right), False)
            for x, speed, left, right in zip(before.x, before.speed, before.left, before.right, strict=True)
        ]
        done: list[Piece] = []
        while (passed := np.flatnonzero(np.diff(after.x) <= 0)).size:
            i = int(passed[0])
            when, where = _meeting(starts[i], starts[i + 1], after.x[i], after.x[i + 1])
            done += [_straight(piece, when, where) for piece in starts[i : i + 2]]
            u_left, u_right = after.u_left[i], after.u_right[i + 1]
            middle = (after.u_right[i] + after.u_left[i + 1]) / 2
            # Conservation: the areas by which the two are too far to the right and to the left are equal.
            share = np.clip((u_left - middle) / (u_left - u_right), 0, 1) if u_left != u_right else 0.5
            x = share * after.x[i] + (1 - share) * after.x[i + 1]
            one = Fronts(*map(np.atleast_1d, (x, np.nan, after.left[i], after.right[i + 1], u_left, u_right)))
            after = after.take(np.delete(np.arange(after.x.size), [i, i + 1])).join(one)
            starts[i : i + 2] = [Piece(when, where, np.nan, end.t, x, 0.0, starts[i].left, starts[i + 1].right, False)]
        if done:
            after = self._at(end, after.x, after)
        for piece, x, speed in zip(starts, after.x, after.speed, strict=True):
            curved = piece._replace(x1=float(x), speed1=float(speed))
            done.append(_straight(piece, end.t, float(x)) if np.isnan(piece.speed0) else curved)
        return after, done

    def _remaining(self, fronts: Fronts) -> np.ndarray:
        """The nodes of the curve that no shock has absorbed."""
        absorbed = np.zeros(self.graph.foot.size + 1, int)
        np.add.at(absorbed, fronts.left + 1, 1)
        np.add.at(absorbed, fronts.right + 1, -1)
        node = np.arange(self.first, self.last + 1)
        return node[np.cumsum(absorbed)[node] == 0]

    def _bound(self, fronts: Fronts, level: Level) -> Fronts:
        """Drop what lies beyond the characteristics from the ends of the domain, where it determines nothing."""
        left, right = fronts.x < level.x[0], fronts.x > level.x[-1]
        self.first = int(fronts.right[left].max(initial=self.first))
        self.last = int((fronts.left[right] + 1).min(initial=self.last))
        fronts = fronts.take(~(left | right))
        node = self._remaining(fronts)
        self.first = int(node[level.x[node] <= level.x[0]].max(initial=self.first))
        self.last = int(node[level.x[node] >= level.x[-1]].min(initial=self.last))
        return fronts

    def _folds(self, fronts: Fronts, level: Level) -> list[tuple[int, int]]:
        """The first and the last node of every fold of the curve between the shocks."""
        node = self._remaining(fronts)
        x = level.x[node]
        overtaken = x < np.fmax.accumulate(x) - self.noise
        if not overtaken.any():
            return []
        folded = overtaken | (x > np.fmin.accumulate(x[::-1])[::-1] + self.noise)
        # A fold ends at a node that is in order, and at a shock.
        begins = np.concatenate([[True], ~(folded[1:] & folded[:-1]) | (np.diff(node) > 1)])
        label = np.cumsum(begins)
        groups = (node[folded & (label == number)] for number in np.unique(label[folded]))
        return [(int(group[0]), int(group[-1])) for group in groups if np.diff(level.x[group]).min(initial=0) < 0]

    def _form(self, folds: list[tuple[int, int]], level: Level) -> Fronts:
        """A shock in every fold."""
        points = [_equal_areas(level, *fold) for fold in folds]
        x = np.array([x for x, _ in points])
        sides = [np.array([at.interval[i] for _, at in points], int) for i in range(2)]
        states = [np.array([at.u[i] for _, at in points]) for i in range(2)]
        return self._with_speed(level, Fronts(x, np.zeros(x.size), *sides, *states))


def _not_convex(x: float, t: float, left: float, right: float) -> ValueError:
    return ValueError(
        "with a source, or a velocity that depends on x or t, after_shock='entropy' needs a flux that is convex or "
        f"concave in u. Between u={left:.6g} and u={right:.6g}, which meet at x={x:.6g} and t={t:.6g}, the velocity is "
        "not monotone in u: ask for earlier times, or narrow the range of the initial value"
    )


def _first_piece(fronts: Fronts, i: int, begin: float, end: float) -> Piece:
    """The path of a new shock in the step in which it forms."""
    x, speed = float(fronts.x[i]), float(fronts.speed[i])
    back = x - speed * (end - begin)
    return Piece(begin, back, speed, end, x, speed, int(fronts.left[i]), int(fronts.right[i]), True)


def _straight(piece: Piece, t: float, x: float) -> Piece:
    """The piece ended at (t, x), as a straight line."""
    speed = (x - piece.x0) / (t - piece.t0) if t > piece.t0 else 0.0
    return piece._replace(t1=t, x1=x, speed0=speed, speed1=speed)


def _meeting(one: Piece, other: Piece, x_one: float, x_other: float) -> tuple[float, float]:
    """When and where two shocks meet that are at these positions at the end of the step."""
    start, end = max(one.t0, other.t0), one.t1
    path = lambda piece, x, t: piece.x0 + (x - piece.x0) * (t - piece.t0) / max(end - piece.t0, 1e-300)
    gap = path(other, x_other, start) - path(one, x_one, start)
    excess = x_one - x_other
    share = float(np.clip(gap / (gap + excess), 0, 1)) if gap + excess > 0 else 0.0
    when = start + share * (end - start)
    return when, float(path(one, x_one, when))


def _equal_areas(level: Level, first: int, last: int) -> tuple[float, CurvePoints]:
    """The shock that cuts off equal areas of a fold between two nodes: its position, and the curve on both sides."""
    start, stop = max(first - 1, 0), min(last, level.x.size - 2)
    inner = level.x[first : last + 1]
    lower, upper = float(inner.min()), float(inner.max())
    begins, ends = level.x[start : stop + 1], level.x[start + 1 : stop + 2]

    def sides(x: float) -> CurvePoints:
        over = (begins <= x) & (x < ends)
        index = [np.argmax(over), over.size - 1 - np.argmax(over[::-1])] if over.any() else [0, over.size - 1]
        return invert_level(level, np.full(2, x), start + np.array(index))

    for _ in range(_BISECTIONS):
        x = (lower + upper) / 2
        at = sides(x)
        excess = area(level, at) * (at.u[0] - at.u[1])
        lower, upper = (x, upper) if excess > 0 else (lower, x)
    x = (lower + upper) / 2
    return x, sides(x)
