"""Table 2, the toy flow and the kinetic energy: what is compared, and with what."""

from dataclasses import replace

import numpy as np
import pytest

from charax.data import DATASETS
from charax.models.flows import PAPER_FLOWS
from charax.paper import table2
from charax.paper.kinetic import Kinetic
from charax.paper.table2 import Table2
from charax.paper.toy_flow import ToyFlow
from charax.tasks import DensityConfig
from charax.train import Sweep, load_run


def count(config: DensityConfig) -> int:
    height, width, channels = DATASETS[config.data].shape
    shape = (height // config.shrink, width // config.shrink, channels)
    return config.design(shape, 256)[0].count(shape)


def test_the_full_budget_matches_flows_of_equal_size_on_whole_images():
    configs = Table2(budget="full").configs()
    assert {(one.data, one.method) for one in configs} == {(d, m) for d in PAPER_FLOWS for m in table2.METHODS}
    assert {(one.objective, one.shrink) for one in configs} == {("matching", 1)}
    for plain, characteristic in zip(configs[::2], configs[1::2], strict=True):
        assert 0.9 < count(plain) / count(characteristic) <= 1
        assert count(characteristic) < 340_000


def test_small_flows_have_equal_sizes():
    configs = Table2(budget="cpu").configs()
    counts = {(config.data, config.method): count(config) for config in configs}
    for data in {config.data for config in configs}:
        assert 0.9 * counts[data, "c-node"] <= counts[data, "node"] <= counts[data, "c-node"]


def test_the_papers_budget_has_all_of_its_rows():
    configs = Table2(budget="paper").configs()
    assert {(one.data, one.method) for one in configs} == {(d, m) for d in PAPER_FLOWS for m in table2.METHODS}
    assert {(one.preset, one.optimizer.learning_rate, one.optimizer.schedule) for one in configs} == {
        ("paper", 1e-3, "warmup")
    }


def test_published_rows_of_other_flows_are_those_of_the_data_at_hand():
    assert {row["method"] for row in table2.quote(["mnist"])} == {
        "FFJORD",
        "Real NVP",
        "Glow",
        "Residual Flow",
        "CP-Flow",
    }
    assert len(table2.quote(["mnist", "cifar10", "svhn"])) == 11
    assert table2.quote(["digits"]) == []


@pytest.mark.parametrize("iterations", [1, 7, 10, 1_000])
def test_toy_flow_makes_the_iterations_that_were_asked_for(iterations):
    config = ToyFlow(iterations=iterations).config("c-node")
    assert config.loop.batch_size is not None
    assert config.loop.epochs is not None
    assert config.points // config.loop.batch_size * config.loop.epochs == iterations


@pytest.mark.parametrize(
    ("recipe", "expected"),
    [
        ("paper", [2_136, 5_034]),
        ("sharp", [2_136, 5_034]),
        ("timed", [2_152, 4_546]),
        ("matching", [13_412, 9_262]),
    ],
)
def test_toy_flows_have_the_sizes_that_are_told(recipe, expected):
    designs = [ToyFlow(recipe).config(method).design((2,), None)[0] for method in ("c-node", "node")]
    assert [design.count((2,)) for design in designs] == expected
    assert {design.sharpness for design in designs} == {8.0 if recipe == "sharp" else 1.0}


def test_flows_that_are_compared_have_folders_of_their_own():
    plain = DensityConfig(data="checkerboard")
    others = [replace(plain, sharpness=8.0), replace(plain, sharpness=16.0), replace(plain, kinetic_penalty=1.0)]
    assert len({config.label for config in [plain, *others]}) == 4


@pytest.mark.slow
def test_a_large_weight_of_the_kinetic_energy_keeps_a_flow_from_moving(tmp_path):
    np.savez(tmp_path / "rows.npz", x=np.random.default_rng(0).normal(size=(80, 2)) ** 3)
    experiment = Kinetic(data=str(tmp_path / "rows.npz"), sharpness=2.0, weight=100.0, seeds=1)
    plain, regularized = experiment.run(tmp_path / "runs", Sweep()).answer["rows"]
    assert (plain["kinetic"], plain["nll_ratio"], plain["nfe_ratio"]) == (0, 1, 1)
    assert regularized["nll_mean"] > plain["nll_mean"]
    runs = [load_run(folder) for folder in (tmp_path / "runs").iterdir()]
    assert [run.trained.task.design.sharpness for run in runs] == [2.0, 2.0]
