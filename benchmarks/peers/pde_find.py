"""PDE-FIND (pysindy) on the grid of burgers_shock.mat: `.venv-peers/bin/python -m benchmarks.peers.pde_find`.

It sees all nodes with t < 0.3 (256 x 30; clean, and with noise of 1% and 5% of the range), where charax sees 1,000
scattered samples of them; strong form with finite differences, and weak form. The found equation is integrated from the
first profile by the method of lines. Writes docs/results/shocks/pde-find.json.
"""

import itertools
import json
import os
import time
from pathlib import Path

import numpy as np
import pysindy
from scipy.integrate import solve_ivp
from scipy.interpolate import CubicSpline
from scipy.io import loadmat

RESULT = Path(__file__).parents[2] / "docs" / "results" / "shocks" / "pde-find.json"
SEEN, SHOCK, FRONT = 0.3, 1 / np.pi, 0.05
_FINER = 4


def main() -> None:
    file = loadmat(Path(os.environ["CHARAX_DATA"]) / "pde" / "burgers_shock.mat")
    x, t, u = file["x"].reshape(-1), file["t"].reshape(-1), np.real(file["usol"])
    early, started = t < SEEN, time.process_time()
    grid = np.stack(np.meshgrid(x, t[early], indexing="ij"), axis=-1)
    polynomials = pysindy.PolynomialLibrary(degree=2, include_bias=False)
    order = {"function_library": polynomials, "derivative_order": 2, "include_bias": True}
    libraries = {
        "strong": pysindy.PDELibrary(spatial_grid=x, **order),
        "weak": pysindy.WeakPDELibrary(spatiotemporal_grid=grid, K=1000, **order),
    }
    rows = []
    for form, noise, threshold in itertools.product(libraries, (0.0, 0.01, 0.05), (0.001, 0.01, 0.1)):
        np.random.seed(0)  # noqa: NPY002 - the weak form draws its domains with it
        noisy = u + noise * np.ptp(u) * np.random.default_rng(0).standard_normal(u.shape)
        model = pysindy.SINDy(
            feature_library=libraries[form],
            optimizer=pysindy.STLSQ(threshold=threshold, alpha=1e-5, normalize_columns=False),
            differentiation_method=pysindy.FiniteDifference(axis=-2),
        )
        model.fit(noisy[:, early, None], t=t[early], feature_names=["u"])
        names, weights = model.get_feature_names(), model.coefficients()[0]
        found = {name: float(weight) for name, weight in zip(names, weights, strict=True) if weight}
        rows.append({"form": form, "noise": noise, "threshold": threshold, "terms": found, **_errors(found, x, t, u)})
    answer = {"rows": rows, "cpu_seconds": time.process_time() - started, "pysindy": pysindy.__version__}
    RESULT.parent.mkdir(parents=True, exist_ok=True)
    RESULT.write_text(json.dumps(answer, indent=2) + "\n")
    print(json.dumps(answer, indent=2))


def _errors(terms: dict[str, float], x: np.ndarray, t: np.ndarray, u: np.ndarray) -> dict[str, float | None]:
    """The mean error in percent of the mean |u|, before the front forms and after, away from it."""
    fine = np.linspace(x[0], x[-1], _FINER * (len(x) - 1) + 1)  # central differences need several nodes in the front
    width = fine[1] - fine[0]

    def rate(_: float, values: np.ndarray) -> np.ndarray:
        padded = np.concatenate([[0.0], values, [0.0]])
        first = (padded[2:] - padded[:-2]) / (2 * width)
        second = (padded[2:] - 2 * values + padded[:-2]) / width**2
        parts = {"1": 1.0, "u": values, "u^2": values**2, "u_1": first, "u_11": second}
        for power in ("u", "u^2"):
            parts |= {f"{power}u_1": parts[power] * first, f"{power}u_11": parts[power] * second}
        return sum((weight * parts[name] for name, weight in terms.items()), np.zeros_like(values))

    blow_up = lambda _, values: 3.0 - np.abs(values).max()
    blow_up.terminal = True
    solved = solve_ivp(
        rate,
        (t[0], t[-1]),
        CubicSpline(x, u[:, 0])(fine),
        t_eval=t,
        method="RK23",
        rtol=1e-4,
        atol=1e-5,
        events=blow_up,
        max_step=1e-2,
    )
    if solved.y.shape[1] != len(t):  # an equation that is not well-posed
        return {"error_before_percent": None, "error_after_percent": None}
    error, away = np.abs(solved.y[::_FINER] - u), np.abs(x) > FRONT
    percent = lambda part: 100 * float(error[part].mean() / np.abs(u[part]).mean())
    return {
        "error_before_percent": percent(np.ix_(np.full(len(x), True), t < SEEN)),
        "error_after_percent": percent(np.ix_(away, t > SHOCK)),
    }


if __name__ == "__main__":
    main()
