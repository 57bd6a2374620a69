"""Table 1: the rows, the matched sizes, and averages over seeds."""

from dataclasses import replace

import numpy as np
import pytest

from charax.models import METHOD_NAMES
from charax.models._paper_models import RECIPES
from charax.paper._comparison import compare, count_parameters, match_width
from charax.paper.table1 import REPORTED, SETTINGS, Table1, _paper
from charax.tasks import ClassificationConfig
from charax.train import LoopConfig, Sweep


def test_smoke_gives_every_method_the_parameters_of_the_c_node():
    configs = Table1().configs()
    assert [config.method for config in configs] == list(METHOD_NAMES)
    counts = {config.method: count_parameters(config, (8, 8, 1), 10) for config in configs}
    for method, count in counts.items():
        assert 0.9 * counts["c-node"] <= count <= counts["c-node"], method


def test_paper_is_the_papers_own_setting():
    configs = Table1(budget="paper", dataset=("mnist",)).configs()
    assert {(one.preset, one.loop.epochs, one.loop.batch_size) for one in configs} == {("paper", 100, 256)}
    assert {(one.optimizer.learning_rate, one.optimizer.schedule) for one in configs} == {(1e-3, "paper")}
    assert SETTINGS["paper"].seeds == 5


def test_the_papers_numbers_are_there_for_all_24_rows():
    assert sum(len(methods) for methods in REPORTED.values()) == 24
    assert {dataset: set(methods) for dataset, methods in REPORTED.items()} == {
        dataset: set(RECIPES[dataset]) for dataset in ("svhn", "cifar10", "mnist")
    }


def test_the_papers_numbers_stand_next_to_ours():
    assert _paper("svhn", "c-node") == {"parameters_paper": 113_851, "accuracy_paper": 0.8219, "nfe_paper": 124}
    assert set(_paper("digits", "c-node").values()) == {None}


def test_matched_width_is_the_largest_that_fits():
    matched = match_width(ClassificationConfig(method="node"), (8, 8, 1), 10, target=20_093)
    assert count_parameters(matched, (8, 8, 1), 10) <= 20_093
    assert matched.width is not None
    assert count_parameters(replace(matched, width=matched.width + 1), (8, 8, 1), 10) > 20_093


def test_a_table_over_seeds_is_not_trained_twice(tmp_path):
    random = np.random.default_rng(0)
    y = np.arange(60) % 2
    np.savez(tmp_path / "two.npz", x=random.normal(size=(60, 3)) + 2 * y[:, None], y=y)
    config = ClassificationConfig(data=str(tmp_path / "two.npz"), width=4, loop=LoopConfig(epochs=2))
    (first,) = compare([(config, tmp_path / "runs")], seeds=2, sweep=Sweep())
    made = {path: path.stat().st_mtime_ns for path in (tmp_path / "runs").rglob("metrics.jsonl")}
    assert len(made) == 2
    (second,) = compare([(config, tmp_path / "runs")], seeds=2, sweep=Sweep())
    assert second.row() == first.row()
    assert {path: path.stat().st_mtime_ns for path in made} == made
    accuracies = [run.summary()["accuracy"] for run in first.runs]
    assert first.row()["accuracy_mean"] == np.mean(accuracies)
    assert first.row()["accuracy_sd"] == pytest.approx(np.std(accuracies, ddof=1))
    assert [len(curve) for curve in first.learning_curves()] == [2, 2]
