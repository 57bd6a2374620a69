"""How well equations can be known from noisy samples: `python -m benchmarks.information`.

The Cramér–Rao bound for every equation of `charax reproduce equations`, with the right terms given: 800 samples (1,000
without the test split), noise of 5% of the range of u, five seeds. The initial value is known, or is a cubic spline
with 8 or 16 unknown coefficients. No unbiased estimate has smaller standard errors of its coefficients. Next to them:
the probability that all coefficients lie within 5% of the truth, and the mean error of u of an estimate that attains
the bound, inside and beyond the data's times, in percent of the mean |u| as in the table of errors. Writes
docs/results/equations/information.json.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from scipy.interpolate import BSpline

from charax.paper import equations
from charax.paper._closed_forms import FLOWS
from charax.paper._coverage import parse_terms

OUTPUT = Path(__file__).parents[1] / "docs" / "results" / "equations" / "information.json"
SAMPLES, NOISE, SEEDS, CLOSE = 800, 0.05, 5, 0.05
SPLINES = (0, 8, 16)
PARTS = {"inside": (0.0, 1.0), "beyond": (1.0, 1.6)}
"""Of the time, relative to the last time of the data."""
_STEPS, _DRAWS = 40, 100_000


def main() -> None:
    jax.config.update("jax_enable_x64", True)
    rows = [row for problem in equations.EQUATIONS for row in measure(problem)]
    for row in rows:
        print(json.dumps(row))
    OUTPUT.write_text(json.dumps({"samples": SAMPLES, "noise": NOISE, "seeds": SEEDS, "rows": rows}, indent=2) + "\n")


def measure(problem: str) -> list[dict[str, Any]]:
    """One row per description of the initial value: relative standard errors, the probability, errors of u."""
    truth = equations.EQUATIONS[problem].coefficients
    values = np.array(list(truth.values()))
    seeds = [(sample(problem, seed), *(sample(problem, seed, part) for part in PARTS)) for seed in range(SEEDS)]
    rows = []
    for splines in SPLINES:
        errors, chances, of_solution = [], [], {part: [] for part in PARTS}
        for data, *asked in seeds:
            jacobian = data.jacobian(splines)
            information = jacobian.T @ jacobian / (NOISE * np.ptp(data.u)) ** 2
            covariance = np.linalg.pinv(information, hermitian=True)
            relative = covariance[: len(values), : len(values)] / np.outer(values, values)
            errors.append(100 * np.sqrt(np.diag(relative)))
            drawn = np.random.default_rng(0).multivariate_normal(np.zeros(len(values)), relative, _DRAWS)
            chances.append((np.abs(drawn).max(axis=1) <= CLOSE).mean())
            for part, points in zip(PARTS, asked, strict=True):
                jacobian = points.jacobian(splines)
                deviation = np.sqrt(np.einsum("ij,jk,ik->i", jacobian, covariance, jacobian))
                # The mean of |e| of a normal e is √(2/π) of its standard deviation.
                of_solution[part].append(100 * np.sqrt(2 / np.pi) * deviation.mean() / np.abs(points.u).mean())
        rows.append(
            {
                "problem": problem,
                "spline_coefficients": splines,
                "standard_error_percent": dict(zip(truth, np.mean(errors, axis=0).round(2).tolist(), strict=True)),
                "within_5_percent": round(float(np.mean(chances)), 3),
                **{f"error_{part}_percent": round(float(np.mean(of_solution[part])), 2) for part in PARTS},
            }
        )
    return rows


class Points(NamedTuple):
    """Points (x, t), and how the solution there depends on what is unknown."""

    problem: str
    u: np.ndarray
    by_coefficient: np.ndarray
    """∂u/∂coefficient, at a fixed position."""
    by_initial: np.ndarray
    """∂u/∂u₀(foot point), at a fixed position."""
    foot: np.ndarray

    def jacobian(self, splines: int) -> np.ndarray:
        """The derivatives by the coefficients of the equation, and by those of a spline of the initial value."""
        if not splines:
            return self.by_coefficient
        basis = _basis(self.problem, self.foot, splines)
        return np.concatenate([self.by_coefficient, self.by_initial[:, None] * basis], axis=1)


def sample(problem: str, seed: int, part: str | None = None) -> Points:
    """The samples of a seed, or points of a part of the time at which the solution is asked for."""
    equation = equations.EQUATIONS[problem]
    count, between = (SAMPLES, (0.0, 1.0)) if part is None else (400, PARTS[part])
    random = np.random.default_rng([seed] if part is None else [seed, 2, list(PARTS).index(part)])
    foot = random.uniform(*equation.feet, count)
    t = equation.end_time * random.uniform(*between, count)
    initial = lambda foot: FLOWS[problem](foot, np.zeros_like(foot))[1]
    slope = (initial(foot + 1e-5) - initial(foot - 1e-5)) / 2e-5
    end = _end_point(tuple(equation.coefficients))
    theta = jnp.array(list(equation.coefficients.values()))
    derivative = jax.jit(jax.vmap(jax.jacfwd(end, argnums=(0, 1, 2)), in_axes=(0, 0, None, 0)))
    points = jnp.asarray(foot), jnp.asarray(initial(foot)), theta, jnp.asarray(t)
    (x_foot, x_start, x_theta), (u_foot, u_start, u_theta) = jax.tree.map(np.asarray, derivative(*points))
    exact = FLOWS[problem](foot, t)
    found = jax.vmap(end, in_axes=(0, 0, None, 0))(*points)
    np.testing.assert_allclose(found, exact, rtol=1e-5, atol=1e-6)
    # At a fixed position the foot point moves with the coefficients and with the initial value.
    ratio = (u_foot + u_start * slope) / (x_foot + x_start * slope)
    return Points(problem, exact[1], u_theta - ratio[:, None] * x_theta, u_start - ratio * x_start, foot)


def _end_point(names: tuple[str, ...]) -> Callable[[Array, Array, Array, Array], tuple[Array, Array]]:
    """From foot point, initial value, coefficients and time to position and value, by Runge and Kutta's method."""
    terms = [(term.part == "velocity", term.evaluate) for term in parse_terms(dict.fromkeys(names, 1.0))]

    def rate(state: Array, theta: Array) -> Array:
        values = {"x": state[0], "u": state[1]}
        parts = [(moves, weight * term(values)) for weight, (moves, term) in zip(theta, terms, strict=True)]
        add = lambda kind: sum((part for moves, part in parts if moves == kind), jnp.zeros(()))
        # On the left-hand side a velocity, on the right-hand side a source.
        return jnp.stack([add(True), add(False)])

    def end(foot: Array, start: Array, theta: Array, t: Array) -> tuple[Array, Array]:
        h = t / _STEPS

        def step(state: Array, _: None) -> tuple[Array, None]:
            a = rate(state, theta)
            b = rate(state + h / 2 * a, theta)
            c = rate(state + h / 2 * b, theta)
            return state + h / 6 * (a + 2 * b + 2 * c + rate(state + h * c, theta)), None

        x, u = jax.lax.scan(step, jnp.stack([foot, start]), length=_STEPS)[0]
        return x, u

    return end


def _basis(problem: str, feet: np.ndarray, count: int) -> np.ndarray:
    """Cubic B-splines over the foot points."""
    low, high = equations.EQUATIONS[problem].feet
    knots = np.concatenate([[low] * 3, np.linspace(low, high, count - 2), [high] * 3])
    return BSpline.design_matrix(feet, knots, 3).toarray()


if __name__ == "__main__":
    main()
