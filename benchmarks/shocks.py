"""`python -m benchmarks.shocks`: from samples before the shock to the solution after it.

Two conservation laws whose entropy solution `charax.pde.solve` knows, and the viscous Burgers equation of the PINN
papers (burgers_shock.mat under $CHARAX_DATA/pde, ν = 0.01/π, samples with t < 0.3). Every method sees 1,000 samples, a
fifth of them for its own test. Results are stored one by one in docs/results/shocks/records, so that an interrupted run
resumes; `python -m benchmarks.shocks --seeds 1` runs one seed. The table has every record.
"""

import argparse
import itertools
import json
import os
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np

from charax import train
from charax.models import AbstractRegressor, PDEMethod
from charax.paper import equations
from charax.paper._comparison import average
from charax.paper._records import RecordJob
from charax.paper._report import Column, Report
from charax.pde import AbstractProblem, Burgers, Sine, Traffic, solve
from charax.tasks import PDEConfig
from charax.tasks.pde import PDETask

FOLDER = Path(__file__).parents[1] / "docs" / "results" / "shocks"
METHODS: tuple[PDEMethod, ...] = ("equation", "c-node", "node-fair", "mlp")
SHOCK_TIMES = {"burgers": 1.0, "traffic": float(np.exp(0.5) / 1.2)}
"""1/max(-du₀/dx) for u₀ = 2 + sin x, and for the density 0.2 + 0.6 exp(-x²/2) with the speed 1 - 2u."""
SEEN = 0.8
"""The last time of the data, relative to that of the shock."""
LATEST = 1.8
"""The last time of the solution after the shock, relative to that of the shock."""
VISCOUS = "burgers-viscous"
VISCOUS_SHOCK = 1 / np.pi
VISCOUS_SEEN = 0.3
FRONT = 0.05
"""The viscous front at x = 0 is left out up to this distance: the entropy solution has a jump instead."""


def main() -> None:
    """Run what is missing, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--problem", nargs="*", default=[*SHOCK_TIMES, VISCOUS])
    parser.add_argument("--method", nargs="*", default=METHODS)
    parser.add_argument("--noise", type=float, nargs="*", default=[0.0])
    chosen = parser.parse_args()
    for seed, problem, noise, method in itertools.product(
        range(chosen.seeds), chosen.problem, chosen.noise, chosen.method
    ):
        label = f"{problem}-{100 * noise:g}percent-{method}-seed{seed}"
        settings = {"problem": problem, "noise": noise, "method": method, "seed": seed}
        compute = lambda progress, settings=settings: learn(**settings)
        (result,) = train.Sweep().run([RecordJob(FOLDER / "records" / f"{label}.json", settings, compute)])
        print(label, {name: value for name, value in result.items() if name != "terms"}, flush=True)
    stored = [json.loads(path.read_text()) for path in sorted((FOLDER / "records").glob("*.json"))]
    cases = {(one["settings"]["problem"], one["settings"]["noise"], one["settings"]["method"]) for one in stored}
    order = lambda case: ([*SHOCK_TIMES, VISCOUS].index(case[0]), case[1], METHODS.index(case[2]))
    rows = [_row(*case, _of_case(case, stored)) for case in sorted(cases, key=order)]
    columns = (
        Column("problem", "problem"),
        Column("noise", "noise", ".2f"),
        Column("method", "method"),
        Column("seeds", "seeds"),
        Column("shock time off by, %", "shock_time_error_percent", ".2f", "shock_time_error_percent_sd"),
        Column("before the shock, %", "error_before_percent", ".3f", "error_before_percent_sd"),
        Column("after it, %", "error_after_percent", ".3f", "error_after_percent_sd"),
        Column("CPU s", "cpu_seconds", ".0f"),
    )
    title = "Trained before the shock, asked after it: mean error in % of the mean |u|"
    Report(name="shocks", title=title, columns=columns, answer={"rows": rows}).write(FOLDER)


def _of_case(case: tuple[str, float, str], stored: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    settings = dict(zip(("problem", "noise", "method"), case, strict=True))
    return [one["result"] for one in stored if one["settings"].items() >= settings.items()]


def learn(*, problem: str, noise: float, method: PDEMethod, seed: int) -> dict[str, Any]:
    """Train one model on samples before the shock, and measure it before and after."""
    started = time.process_time()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "samples.npz"
        points, values = _write_samples(path, problem, noise, seed)
        run = train.train_or_load(_config(path, problem, method, seed), Path(folder) / "run")
        summary, task, model = run.summary(), run.trained.task, run.trained.model
        assert isinstance(task, PDETask)
        assert isinstance(model, AbstractRegressor)
        result = {name: summary.get(name) for name in ("parameters", "equation", "terms", "shock_time_sd")}
        shock = SHOCK_TIMES.get(problem, VISCOUS_SHOCK)
        found = summary.get("shock_time")
        if method == "c-node":
            found = _first_crossing(model, points[:, 0].min(), points[:, 0].max(), 4 * shock)
        result["shock_time"] = found
        result["shock_time_error_percent"] = None if found is None else 100 * abs(found - shock) / shock
        u, valid = task.evaluate_past_shocks(model, points)
        error = np.where(valid, np.abs(u[:, 0] - values), np.nan)
        seen = SEEN * shock if problem in SHOCK_TIMES else VISCOUS_SEEN
        late = points[:, 1] > shock
        for name, part in (("before", points[:, 1] <= seen), ("after", late)):
            result[f"error_{name}_percent"] = 100 * float(np.nanmean(error[part]) / np.abs(values[part]).mean())
            result[f"lost_{name}_percent"] = 100 * float(1 - valid[part].mean())
    return result | {"cpu_seconds": time.process_time() - started}


def _write_samples(path: Path, problem: str, noise: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Samples to learn from as a file; points (x, t) to ask for, and the values there."""
    random = np.random.default_rng([seed, 3])
    if problem == VISCOUS:
        x, t, u = read_viscous()
        grid = np.stack([axis.reshape(-1) for axis in np.meshgrid(x, t, indexing="ij")], axis=1)
        u = u.reshape(-1)
        early = np.flatnonzero(grid[:, 1] < VISCOUS_SEEN)
        rows = np.random.default_rng([seed]).choice(early, 1000, replace=False)
        asked = np.setdiff1d(np.flatnonzero((np.abs(grid[:, 0]) > FRONT) | (grid[:, 1] < VISCOUS_SEEN)), rows)
        asked = random.choice(asked, 4000, replace=False)
        data = {"x": grid[rows, 0], "t": grid[rows, 1], "u": u[rows]}
        points, values = grid[asked].astype(np.float32), u[asked]
    else:
        shock, end = SHOCK_TIMES[problem], equations.EQUATIONS[problem].end_time
        data = equations.sample_equation(problem, 1000, seed=[seed], between=(0, SEEN * shock / end))
        t = random.uniform(0, LATEST * shock, 1000)
        points = np.stack([_uniform_position(problem, t, random), t], axis=1).astype(np.float32)
        known = PROBLEMS[problem]
        values = np.asarray(solve(known, jnp.asarray(points[:, :1]), jnp.asarray(points[:, 1]), after_shock="entropy"))
    deviation = noise * np.ptp(data["u"]) * np.random.default_rng([seed, 1]).standard_normal(len(data["u"]))
    with path.open("wb") as file:
        np.savez(file, allow_pickle=False, **data | {"u": data["u"] + deviation})
    return points, values


PROBLEMS: dict[str, AbstractProblem] = {
    "burgers": Burgers(profile=Sine(amplitude=1.0, mean=2.0), domain=((-3.0, 9.0),)),
    "traffic": Traffic(),
}


def _uniform_position(problem: str, t: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Between the characteristics that start a twentieth of the range inside the range of the data's foot points."""
    from charax.paper._closed_forms import FLOWS

    low, high = equations.EQUATIONS[problem].feet
    margin = (high - low) / 20
    ends = [FLOWS[problem](np.full_like(t, foot), t)[0] for foot in (low + margin, high - margin)]
    return random.uniform(*ends)


def read_viscous() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The arrays x, t and u[i, j] of burgers_shock.mat."""
    from scipy.io import loadmat

    folder = os.environ.get("CHARAX_DATA")
    if not folder:
        raise SystemExit("set CHARAX_DATA to a folder that has pde/burgers_shock.mat")
    file = loadmat(Path(folder) / "pde" / "burgers_shock.mat")
    return file["x"].reshape(-1), file["t"].reshape(-1), np.real(file["usol"])


def _config(path: Path, problem: str, method: PDEMethod, seed: int) -> PDEConfig:
    name = "burgers" if problem == VISCOUS else problem
    epochs = equations.EQUATION_EPOCHS if method == "equation" else equations.SETTINGS["cpu"].epochs
    return equations.make_config(path, name, method, epochs=epochs, seed=seed)


def _first_crossing(model: AbstractRegressor, left: float, right: float, horizon: float) -> float | None:
    """The first time at which neighboring characteristics change their order."""
    times = np.linspace(0, horizon, 401)
    curves = np.asarray(model.characteristics(jnp.linspace(left, right, 801)[:, None], jnp.asarray(times)))[..., 0]
    crossed = (np.diff(curves, axis=1) <= 0).any(axis=1)
    return float(times[np.argmax(crossed)]) if crossed.any() else None


def _row(problem: str, noise: float, method: str, results: Sequence[dict[str, Any]]) -> dict[str, Any]:
    row: dict[str, Any] = {"problem": problem, "noise": noise, "method": method, "seeds": len(results)}
    for name in ("shock_time_error_percent", "error_before_percent", "error_after_percent"):
        known = [result[name] for result in results if result[name] is not None]
        row[name], row[f"{name}_sd"] = average(known) if known else (None, None)
    row["equation"] = results[0]["equation"]
    row["cpu_seconds"] = max(result["cpu_seconds"] for result in results)
    return row


if __name__ == "__main__":
    main()
