"""Runs in double precision: trained, saved, resumed and used in float64, and without a trace afterwards."""

from dataclasses import replace
from pathlib import Path

import jax
import jax.export
import jax.numpy as jnp
import numpy as np
import pytest
from safetensors.numpy import load_file

from charax import (
    ClassificationConfig,
    DensityConfig,
    ForecastConfig,
    LoopConfig,
    PDEConfig,
    RegressionConfig,
    SeriesConfig,
    Solver,
    SolverConfig,
)
from charax.train import (
    AbstractConfig,
    Silent,
    TrainedModel,
    computing_in,
    evaluate,
    export_programs,
    load_model,
    predict,
    resume,
    train,
)


@pytest.fixture(scope="module")
def config(tmp_path_factory) -> AbstractConfig:
    folder = tmp_path_factory.mktemp("data")
    x = np.random.default_rng(0).normal(size=(60, 2))
    np.savez(folder / "rows.npz", x=x, y=np.sin(x[:, 0]) * x[:, 1])
    return RegressionConfig(
        data=str(folder / "rows.npz"),
        width=4,
        members=1,
        loop=LoopConfig(epochs=1, batch_size=16),
        solver=SolverConfig(solver="dopri5", rtol=1e-10, precision="float64"),
    )


def answers(trained: TrainedModel, solver: Solver) -> np.ndarray:
    """Answers of a model for two rows, with another solver."""
    task, model = trained
    with computing_in(model):
        return np.asarray(replace(task, solver=solver).values(model, np.asarray([[0.3, -1.0], [2.0, 0.5]]))[0])  # pyright: ignore[reportAttributeAccessIssue, reportArgumentType]


def weights(folder: Path) -> dict[str, np.ndarray]:
    return load_file(folder / "model.safetensors")


def test_a_run_in_float64_is_one_from_the_first_step_to_its_predictions(config, tmp_path):
    run = train(config, tmp_path / "run")
    assert jnp.ones(1).dtype == jnp.float32  # for whoever comes next
    assert {each.dtype for each in weights(tmp_path / "run").values()} == {np.dtype("float64")}
    assert evaluate(tmp_path / "run")["loss"] == pytest.approx(run.history[-1]["test_loss"], rel=1e-12)
    # Steps at 1e-10 agree with better ones to more digits than float32 has.
    trained = load_model(tmp_path / "run")
    fine = answers(trained, Solver("dopri5", rtol=1e-10, atol=1e-10))
    finer = answers(trained, Solver("dopri8", rtol=1e-13, atol=1e-13))
    assert 0 < np.abs(fine - finer).max() < 1e-9
    (tmp_path / "new.csv").write_text("a,b\n0.3,-1\n2,0.5\n")
    rows = predict(tmp_path / "run", tmp_path / "new.csv").rows
    assert [float(row[1]) for row in rows] == pytest.approx(np.ravel(fine).tolist(), rel=1e-5)
    program, _ = export_programs(trained, tmp_path / "programs", platforms=("cpu",))
    assert jax.export.deserialize(program.read_bytes()).out_avals[0].dtype == np.dtype("float64")


class Stopping(Silent):
    """Stops a run in the middle of its second epoch, as a crash would."""

    def step(self, epoch, step, metrics):
        if epoch == 1:
            raise ZeroDivisionError


@pytest.mark.slow
def test_a_run_in_float64_is_resumed_bit_for_bit(config, tmp_path):
    config = replace(config, loop=LoopConfig(epochs=3, batch_size=8, checkpoint_steps=1))
    train(config, tmp_path / "whole")
    with pytest.raises(ZeroDivisionError):
        train(config, tmp_path / "run", progress=Stopping())
    resume(tmp_path / "run")
    for name, array in weights(tmp_path / "whole").items():
        assert array.dtype == np.float64
        np.testing.assert_array_equal(weights(tmp_path / "run")[name], array)


@pytest.mark.slow
@pytest.mark.parametrize(
    "config",
    [
        ClassificationConfig(preset="dense", width=4, max_samples=200),
        ClassificationConfig(preset="small", width=4, max_samples=60),
        DensityConfig(data="moons", width=4, points=512),
        DensityConfig(data="moons", width=4, points=512, objective="matching"),
        PDEConfig(width=4, points=64),
        SeriesConfig(data="turns", width=4),
        SeriesConfig(data="turns", width=4, method="cde"),
        ForecastConfig(width=4),
        ForecastConfig(data="pendulum", history=5, width=4),
    ],
    ids=lambda config: config.label,
)
def test_every_task_has_runs_in_float64(config, tmp_path):
    loop, solver = replace(config.loop, epochs=1), replace(config.solver, precision="float64")
    run = train(replace(config, loop=loop, solver=solver), tmp_path / "run")
    assert {each.dtype for each in weights(tmp_path / "run").values()} == {np.dtype("float64")}
    assert evaluate(tmp_path / "run")["loss"] == pytest.approx(run.history[-1]["test_loss"], rel=1e-9)
    assert all(path.stat().st_size for path in run.plot())
    assert export_programs(run.trained, tmp_path / "programs", platforms=("cpu",))
