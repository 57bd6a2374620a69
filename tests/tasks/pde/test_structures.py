"""Equations with more structure than one value on a line: several values and dimensions, a flux of known shape."""

import numpy as np
import pytest

from charax.paper.equations import sample_equation
from charax.tasks import PDEConfig
from charax.train import LoopConfig, train


def learn(tmp_path, data, **structure):
    with (tmp_path / "samples.npz").open("wb") as file:
        np.savez(file, allow_pickle=False, **data)
    loop = LoopConfig(epochs=4, batch_size=160)
    config = PDEConfig(data=str(tmp_path / "samples.npz"), method="equation", loop=loop, **structure)
    summary = train(config, tmp_path / "run").summary()
    return {term["name"]: term["coefficient"] for term in summary["terms"]}, summary


@pytest.mark.slow
def test_the_equation_of_two_values_in_the_plane_is_found(tmp_path):
    random = np.random.default_rng(0)
    x, t = random.uniform(-1, 1, (500, 2)), random.uniform(0, 0.5, 500)
    foot = x - t[:, None] * [1.0, 0.5]
    u = np.stack([np.sin(2 * foot[:, 0]) + foot[:, 1], np.cos(2 * foot[:, 1])], axis=1) * np.exp(-t)[:, None]
    terms, summary = learn(tmp_path, {"x1": x[:, 0], "x2": x[:, 1], "t": t, "u1": u[:, 0], "u2": u[:, 1]})
    assert terms == pytest.approx({"u_x1": 1.0, "u_x2": 0.5, "u1: u1": -1.0, "u2: u2": -1.0}, rel=5e-3)
    assert summary["validation_error_percent"] < 0.1


@pytest.mark.slow
def test_a_convex_flux_is_found_to_the_accuracy_of_its_samples(tmp_path):
    data = sample_equation("burgers", 300, seed=[5], between=(0, 1))
    terms, summary = learn(tmp_path, data, flux="convex")
    assert terms == pytest.approx({"(u^2)_x": 0.5}, rel=1e-3)
    assert summary["error_percent"] < 0.05
