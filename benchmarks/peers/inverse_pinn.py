"""DeepXDE's inverse PINN on burgers_shock.mat: `.venv-peers/bin/python -m benchmarks.peers.inverse_pinn [SEED …]`.

It sees the 1,000 nodes with t < 0.3 that `benchmarks.shocks` gives to charax, and is told the form of the equation,
uₜ + λ u uₓ = ν uₓₓ, and that u is zero at both ends; λ and ν are learned. The residual is asked to vanish at 2,000
points of the whole strip until t = 1, where it then is a prediction. Network, points and learning rate are those of
DeepXDE's own example of Burgers' equation; Adam for two thirds of the time, then L-BFGS. Each seed gets the CPU time of
a fit of charax, and seed 0 five times as much. Writes docs/results/shocks/inverse-pinn.json.
"""

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

os.environ["DDE_BACKEND"] = "pytorch"

import deepxde as dde
import numpy as np
import torch
from scipy.io import loadmat

RESULT = Path(__file__).parents[2] / "docs" / "results" / "shocks" / "inverse-pinn.json"
SEEN, SHOCK, FRONT = 0.3, 1 / np.pi, 0.05
SECONDS = 50.0
"""CPU time of a fit of charax to the same nodes, with compilation."""
LONGER = 5


def main() -> None:
    torch.set_num_threads(1)
    seeds = [int(word) for word in sys.argv[1:]] or [0, 1, 2]
    rows = [learn(seed, SECONDS) for seed in seeds]
    rows.append(learn(0, LONGER * SECONDS))
    answer = {"rows": rows, "deepxde": dde.__version__, "torch": torch.__version__}
    RESULT.write_text(json.dumps(answer, indent=2) + "\n")


def learn(seed: int, seconds: float) -> dict[str, Any]:
    """Learn λ, ν and u from the nodes of one seed, and measure u on the whole grid."""
    dde.config.set_default_float("float64")
    dde.config.set_random_seed(seed)
    file = loadmat(Path(os.environ["CHARAX_DATA"]) / "pde" / "burgers_shock.mat")
    x, t, u = file["x"].reshape(-1), file["t"].reshape(-1), np.real(file["usol"])
    grid = np.stack([axis.reshape(-1) for axis in np.meshgrid(x, t, indexing="ij")], axis=1)
    early = np.flatnonzero(grid[:, 1] < SEEN)
    nodes = np.random.default_rng([seed]).choice(early, 1000, replace=False)
    speed, viscosity = dde.Variable(0.5), dde.Variable(0.05)

    def residual(points, values):
        by_x, by_t = (dde.grad.jacobian(values, points, i=0, j=j) for j in (0, 1))
        return by_t + speed * values * by_x - viscosity * dde.grad.hessian(values, points, i=0, j=0)

    strip = dde.geometry.GeometryXTime(dde.geometry.Interval(-1, 1), dde.geometry.TimeDomain(0, 1))
    at_ends = dde.icbc.DirichletBC(strip, lambda _: 0, lambda _, on_boundary: on_boundary)
    observed = dde.icbc.PointSetBC(grid[nodes], u.reshape(-1, 1)[nodes])
    data = dde.data.TimePDE(strip, residual, [at_ends, observed], num_domain=2000, num_boundary=80)
    model = dde.Model(data, dde.nn.FNN([2, 20, 20, 20, 1], "tanh", "Glorot normal"))
    started = time.process_time()
    learned: dict[str, Any] = {"external_trainable_variables": [speed, viscosity]}
    model.compile("adam", lr=1e-3, **learned)
    quiet = {"display_every": 10**9, "verbose": 0}
    model.train(iterations=10**9, callbacks=[dde.callbacks.Timer(seconds / 60 * 2 / 3)], **quiet)
    dde.optimizers.set_LBFGS_options(maxiter=10**6)
    dde.optimizers.config.LBFGS_options["iter_per_step"] = 50  # how often the clock is looked at
    model.compile("L-BFGS", **learned)
    left = seconds - (time.process_time() - started)
    model.train(callbacks=[dde.callbacks.Timer(left / 60)], **quiet)
    error = np.abs(model.predict(grid)[:, 0] - u.reshape(-1))
    percent = lambda part: 100 * float(error[part].mean() / np.abs(u.reshape(-1)[part]).mean())
    row = {
        "seed": seed,
        "speed": speed.item(),
        "viscosity": viscosity.item(),
        "error_before_percent": percent(grid[:, 1] < SEEN),
        "error_after_percent": percent((grid[:, 1] > SHOCK) & (np.abs(grid[:, 0]) > FRONT)),
        "iterations": int(model.train_state.iteration),
        "cpu_seconds": time.process_time() - started,
    }
    print(json.dumps(row), flush=True)
    return row


if __name__ == "__main__":
    main()
