"""Table 1 as ODEs: rows and differences are built from records, and records of other settings are refused."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

from charax.fields import PlainField
from charax.models import Classifier, NeuralODE
from charax.paper._comparison import count_parameters
from charax.paper._ode_table import Record, differences, measure_convergence, row, seed_jobs
from charax.paper.table1 import SETTINGS, Table1
from charax.solve import Solver
from charax.tasks import ClassificationConfig
from charax.train import LoopConfig, Sweep, to_json
from charax.train._checkpoints import write_json

LOOP = LoopConfig(epochs=20, batch_size=128)
CONFIG = ClassificationConfig(data="svhn", preset="ode", shrink=2, max_samples=10_000, loop=LOOP)


def make_record(accuracy: float, seed: int, validation: tuple[float, ...] = (0.5, 0.7)) -> Record:
    metrics: dict[str, Any] = {
        "accuracy": accuracy,
        "parameters": 1_000,
        "nfe": 20.0,
        "seconds": 3.0,
        "training_tolerance": 1e-2,
        "accuracy_at_training_tolerance": accuracy,
        "tolerance": 1e-3,
        "accuracy_at_tenth_tolerance": accuracy,
        "logit_change_percent": 0.1,
    }
    epochs = [
        {"epoch": i, "step": 70 * i, "nfe": 20.0 + i, "validation_nfe": 20.0, "validation_accuracy": value}
        for i, value in enumerate(validation, start=1)
    ]
    return Record(replace(CONFIG, loop=replace(LOOP, seed=seed)), metrics, epochs)


def test_a_row_averages_the_seeds_and_counts_the_steps_to_an_accuracy():
    built = row("svhn", "c-node", [make_record(0.7, 0), make_record(0.8, 1)], reach=0.6)
    assert built["accuracy_mean"] == pytest.approx(0.75)
    assert built["accuracy_sd"] == pytest.approx(0.1 / 2**0.5)
    assert (built["steps_to_accuracy"], built["nfe_training"], built["seconds"]) == (140, 22, 6)


def test_steps_are_not_counted_if_one_seed_never_gets_there():
    records = [make_record(0.7, 0), make_record(0.7, 1, validation=(0.1, 0.2))]
    assert row("svhn", "c-node", records, reach=0.6)["steps_to_accuracy"] is None


def test_differences_are_taken_seed_by_seed():
    results = {
        ("svhn", "node"): [make_record(0.5, 0), make_record(0.7, 1)],
        ("svhn", "c-node"): [make_record(0.6, 0), make_record(0.9, 1), make_record(0.1, 2)],  # one without counterpart
        ("svhn", "anode"): [make_record(0.9, 0)],
    }
    (found,) = differences(results, {"svhn": {"node": 75.28, "c-node": 82.19}})
    assert found["difference"] == pytest.approx(0.15)
    assert found["standard_error"] == pytest.approx(0.05)
    assert found["difference_paper"] == pytest.approx(0.0691)
    assert (found["dataset"], found["pair"], found["seeds"]) == ("svhn", "node", 2)


def test_a_record_stands_for_its_run_and_only_for_that(tmp_path):
    record = make_record(0.7, 0)
    path = tmp_path / "records" / f"{CONFIG.label}-seed0.json"
    path.parent.mkdir()
    write_json(path, {"config": to_json(record.config), "metrics": record.metrics, "epochs": record.epochs})
    assert Sweep().run(seed_jobs(CONFIG, tmp_path, [0])) == [record]
    with pytest.raises(ValueError, match=r"other settings: .*epochs \(20 there, 3 here\)"):
        Sweep().run(seed_jobs(replace(CONFIG, loop=replace(LOOP, epochs=3)), tmp_path, [0]))


def test_a_table_of_what_is_finished_trains_nothing(tmp_path):
    """One seed of one method is there: it is the table."""
    table = Table1(budget="exact", seeds=3, finished_only=True)
    node, _ = table.configs()
    job = seed_jobs(node, tmp_path, range(3))[1]
    record = make_record(0.7, 1)
    job.place.parent.mkdir()
    write_json(job.place, {"config": to_json(job.config), "metrics": record.metrics, "epochs": record.epochs})
    answer = table.run(tmp_path, Sweep()).answer
    assert [(row["method"], row["seeds"], row["accuracy_mean"]) for row in answer["rows"]] == [("node", 1, 0.7)]
    assert answer["differences"] == []
    assert [path.name for path in tmp_path.iterdir()] == ["records"]


def test_the_exact_models_have_the_papers_parameters():
    counts = {one.method: count_parameters(one, (28, 28, 1), 10) for one in Table1(budget="exact").configs()}
    assert counts == {"node": 85_468, "c-node": 83_041}


def test_figure_methods_get_more_seeds_than_the_others():
    setting = SETTINGS["ode"]
    assert setting.fewer_seeds is not None
    assert setting.fewer_seeds < setting.seeds


def test_convergence_finds_a_tolerance_that_a_tenth_does_not_change():
    """A rotation by many turns: its logits are the exact ones at the reported tolerance, and not at the first."""
    omega, end = 40.0, np.random.default_rng(0).normal(size=(20, 2)).astype(np.float32)
    field = PlainField(lambda u: omega * jnp.stack([-u[:, 1], u[:, 0]], axis=1), reads=("u",))
    model = Classifier(NeuralODE(field), lambda u: u)
    turn = np.array([[np.cos(omega), np.sin(omega)], [-np.sin(omega), np.cos(omega)]])
    exact = end @ turn
    targets = exact.argmax(1)
    task = SimpleNamespace(solver=Solver("bosh3", rtol=1e-1, atol=1e-1))
    run: Any = SimpleNamespace(trained=(task, model), splits=SimpleNamespace(test=(end, targets)))
    found = measure_convergence(run, batch_size=8)
    assert found["training_tolerance"] == 1e-1
    assert found["tolerance"] < 1e-1
    assert found["accuracy_at_training_tolerance"] < found["accuracy"]
    assert found["accuracy"] == pytest.approx(1.0, abs=0.051)
    assert found["logit_change_percent"] <= 1
    assert found["nfe"] > 100
