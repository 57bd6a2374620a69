"""Table 1: the rows, the matched sizes, and going on where it was."""

from dataclasses import replace

import numpy as np
import pytest

from charax.models import METHOD_NAMES
from charax.models._paper_models import RECIPES
from charax.paper._comparison import compare, count_architecture, match_width
from charax.paper.table1 import PLANS, REPORTED, Table, plan_rows
from charax.tasks.classification import ClassificationConfig
from charax.train import LoopConfig, Silent


def test_smoke_gives_every_method_the_parameters_of_the_c_node():
    rows = plan_rows("smoke")
    assert [row.method for row in rows] == list(METHOD_NAMES)
    counts = {row.method: count_architecture(row, (8, 8, 1), 10) for row in rows}
    for method, count in counts.items():
        assert 0.9 * counts["c-node"] <= count <= counts["c-node"], method


def test_paper_is_the_papers_own_setting():
    rows = plan_rows("paper", datasets=["mnist"])
    assert {(row.preset, row.loop.epochs, row.loop.batch_size) for row in rows} == {("paper", 100, 256)}
    assert {(row.optimizer.learning_rate, row.optimizer.schedule) for row in rows} == {(1e-3, "paper")}
    assert PLANS["paper"].seeds == 5


def test_the_papers_numbers_are_there_for_all_24_rows():
    assert sum(len(methods) for methods in REPORTED.values()) == 24
    assert {dataset: set(methods) for dataset, methods in REPORTED.items()} == {
        dataset: set(RECIPES[dataset]) for dataset in ("svhn", "cifar10", "mnist")
    }


def test_unknown_data_set_lists_the_known_ones():
    with pytest.raises(ValueError, match="choose from digits"):
        plan_rows("smoke", datasets=["imagenet"])


def test_matched_width_is_the_largest_that_fits():
    settings = ClassificationConfig(method="node")
    matched = match_width(settings, (8, 8, 1), 10, target=20_093)
    assert count_architecture(matched, (8, 8, 1), 10) <= 20_093
    assert matched.width is not None
    assert count_architecture(replace(matched, width=matched.width + 1), (8, 8, 1), 10) > 20_093


def test_a_table_over_seeds_is_not_trained_twice(tmp_path):
    random = np.random.default_rng(0)
    y = np.arange(60) % 2
    np.savez(tmp_path / "two.npz", x=random.normal(size=(60, 3)) + 2 * y[:, None], y=y)
    settings = [
        ClassificationConfig(data=str(tmp_path / "two.npz"), method=method, width=4, loop=LoopConfig(epochs=2))
        for method in ("c-node",)
    ]
    first = Table("smoke", "", compare(settings, seeds=2, folder=tmp_path / "runs", progress=Silent()), {}).rows()
    made = {path: path.stat().st_mtime_ns for path in (tmp_path / "runs").rglob("metrics.jsonl")}
    assert len(made) == 2
    second = Table("smoke", "", compare(settings, seeds=2, folder=tmp_path / "runs", progress=Silent()), {}).rows()
    assert second == first
    assert {path: path.stat().st_mtime_ns for path in made} == made
    assert first[0]["accuracy_sd"] is not None
    assert first[0]["accuracy_paper"] is None
