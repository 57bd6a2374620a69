"""Table 2, the toy flow and the densities of tables: what is compared, and with what."""

from dataclasses import replace

import numpy as np
import pytest

from charax.data import DATASETS
from charax.models.flows import PAPER_FLOWS
from charax.paper import kinetic, table2, tabular, toy_flow
from charax.tasks.density import DensityConfig
from charax.train import Silent


def test_small_flows_have_equal_sizes():
    rows = table2.plan_rows("cpu")
    counts = {(row.data, row.method): _count(row) for row in rows}
    for data in {row.data for row in rows}:
        assert 0.9 * counts[data, "c-node"] <= counts[data, "node"] <= counts[data, "c-node"]


def test_the_papers_budget_has_all_of_its_rows():
    rows = table2.plan_rows("paper")
    assert {(row.data, row.method) for row in rows} == {(d, m) for d in PAPER_FLOWS for m in table2.METHODS}
    assert {(row.preset, row.optimizer.learning_rate, row.optimizer.schedule) for row in rows} == {
        ("paper", 1e-3, "warmup")
    }


def _count(settings):
    height, width, channels = DATASETS[settings.data].shape
    shape = (height // settings.shrink, width // settings.shrink, channels)
    return settings.design(shape, 256)[0].count(shape)


def test_the_rows_that_the_paper_quotes_are_those_of_the_data_at_hand():
    assert {row["method"] for row in table2.quote(["mnist"])} == {"Real NVP", "Glow", "Residual Flow", "CP-Flow"}
    assert len(table2.quote(["mnist", "cifar10", "svhn"])) == 9
    assert table2.quote(["digits"]) == []


def test_unknown_data_set_lists_the_known_ones():
    with pytest.raises(ValueError, match="choose from digits, mnist"):
        table2.plan_rows("cpu", datasets=["imagenet"])


def test_toy_flow_makes_the_iterations_that_were_asked_for():
    settings = toy_flow.settings("c-node", iterations=1_000)
    assert settings.points // settings.loop.batch_size * settings.loop.epochs == 1_000


@pytest.mark.parametrize(
    ("recipe", "expected"), [("paper", [2_136, 5_034]), ("sharp", [2_136, 5_034]), ("timed", [2_152, 4_546])]
)
def test_toy_flows_have_the_sizes_that_are_told(recipe, expected):
    designs = [toy_flow.settings(method, recipe).design((2,), None)[0] for method in ("c-node", "node")]
    assert [design.count((2,)) for design in designs] == expected


@pytest.mark.parametrize("name", tabular.TABLES)
def test_parts_of_a_table_are_scaled_by_the_training_rows_alone(name):
    train, validation, test = tabular.load_table(name, seed=0)
    np.testing.assert_allclose(train.mean(0), 0, atol=1e-5)
    np.testing.assert_allclose(train.std(0), 1, atol=1e-2)
    assert 2 <= train.shape[1] <= 8
    assert len(test) == 2 * len(validation) or abs(len(test) - 2 * len(validation)) == 1
    assert np.abs(test.mean(0)).max() > 1e-3
    other = tabular.load_table(name, seed=1)[2]
    assert not np.array_equal(test, other)


def test_gaussian_is_scipys():
    from scipy.stats import multivariate_normal

    rows = np.random.default_rng(0).normal(size=(50, 3)) @ np.array([[1.0, 0.5, 0], [0, 2, 0.1], [0, 0, 0.3]])
    expected = multivariate_normal(rows.mean(0), np.cov(rows.T)).logpdf(rows[:5])
    np.testing.assert_allclose(tabular._gaussian(rows, rows[:5]), expected, rtol=1e-6)


def test_kernels_take_the_bandwidth_that_suits_the_data():
    from sklearn.neighbors import KernelDensity

    random = np.random.default_rng(0)
    train, test = random.normal(size=(300, 2)), random.normal(size=(100, 2))
    tuned = tabular._kernels(train, test, seed=0).mean()
    for bandwidth in (0.05, 2.0):
        assert tuned > KernelDensity(bandwidth=bandwidth).fit(train).score_samples(test).mean()


@pytest.mark.slow
def test_a_flow_of_iris_is_measured_in_the_units_of_its_competitors():
    held = tabular.evaluate("iris", seed=0)
    # A flow that is at rest is the Gaussian: were the whitening's volume forgotten, it would be nats away.
    assert abs(held.flow - held.gaussian) < 1.5


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"weight": 0.0}, "weight must be above 0"),
        ({"sharpness": -1.0}, "sharpness must be above 0"),
        ({"data": "digits"}, "has images"),
        ({"seeds": 0}, "at least 1"),
    ],
)
def test_a_price_that_cannot_be_compared_is_refused_before_any_training(wrong, words, tmp_path):
    with pytest.raises(ValueError, match=words):
        kinetic.run(**wrong, folder=tmp_path / "runs", progress=Silent())
    assert not (tmp_path / "runs").exists()


def test_flows_that_are_compared_have_folders_of_their_own():
    free = DensityConfig(data="checkerboard")
    others = [replace(free, sharpness=8.0), replace(free, sharpness=16.0), replace(free, kinetic=1.0)]
    assert len({settings.label for settings in [free, *others]}) == 4


def test_no_split_is_refused():
    with pytest.raises(ValueError, match="seeds must be at least 1"):
        tabular.run(seeds=0)


@pytest.mark.slow
def test_a_high_price_on_kinetic_energy_keeps_a_flow_from_moving(tmp_path):
    rows = np.random.default_rng(0).normal(size=(80, 2)) ** 3
    np.savez(tmp_path / "rows.npz", x=rows)
    result = kinetic.run(
        data=str(tmp_path / "rows.npz"),
        sharpness=2.0,
        weight=100.0,
        seeds=1,
        folder=tmp_path / "runs",
        progress=Silent(),
    )
    assert {one.runs[0].trained.task.design.sharpness for one in (result.free, result.priced)} == {2.0}
    free, priced = result.rows()
    assert (free["kinetic"], free["nll_ratio"], free["nfe_ratio"]) == (0, 1, 1)
    assert priced["nll_mean"] > free["nll_mean"]
    assert len({run.folder for one in (result.free, result.priced) for run in one.runs}) == 2
