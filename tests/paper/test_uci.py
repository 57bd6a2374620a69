"""Conditional densities of the UCI data: the splits, and the competitors of the flow."""

import json

import numpy as np
import pytest
import scipy.stats
from sklearn.metrics import mean_pinball_loss

from charax.data import UCI, DataError, UCISplit, load_uci
from charax.paper import uci
from charax.train import Sweep
from tests.paper.cases import write_uci


@pytest.fixture
def folder(tmp_path, monkeypatch):
    write_uci(tmp_path / "uci" / "yacht.npz")
    monkeypatch.setenv("CHARAX_DATA", str(tmp_path))
    return tmp_path


def test_a_split_has_its_test_rows_and_all_others_without_the_padding(folder):
    with np.load(folder / "uci" / "yacht.npz") as file:
        x, y = file["x"], file["y"]
    first, second = load_uci("yacht", 0), load_uci("yacht", 1)
    np.testing.assert_array_equal(first.test_y, y[:8])
    np.testing.assert_array_equal(first.train_x, x[8:])
    np.testing.assert_array_equal(second.test_y, y[8:15])
    assert len(second.train_y) == 73


def test_what_is_missing_is_named(folder, monkeypatch):
    with pytest.raises(DataError, match="unknown data set 'iris'; choose from boston"):
        load_uci("iris", 0)
    with pytest.raises(DataError, match=r"boston.npz was not found in .*uci: put it there, with features x"):
        load_uci("boston", 0)
    with pytest.raises(DataError, match="has 2 splits, from 0 on; there is no split 2"):
        load_uci("yacht", 2)
    monkeypatch.delenv("CHARAX_DATA")
    with pytest.raises(DataError, match=r"not found in \$CHARAX_DATA/uci"):
        load_uci("yacht", 0)


def test_linear_gaussian_is_that_of_least_squares(folder):
    split = load_uci("yacht", 0)
    design = np.column_stack([split.train_x, np.ones(72)])
    weights = np.linalg.solve(design.T @ design, design.T @ split.train_y)
    deviation = np.sqrt(np.square(split.train_y - design @ weights).sum() / (72 - 7))
    mean = np.column_stack([split.test_x, np.ones(8)]) @ weights
    expected = scipy.stats.norm(mean, deviation).logpdf(split.test_y).mean()
    assert uci.linear_log_likelihood(split) == pytest.approx(expected)


def test_pinball_loss_is_scikit_learns():
    y, quantiles = np.random.default_rng(0).normal(size=(7,)), np.random.default_rng(1).normal(size=(7, 19))
    each = [mean_pinball_loss(y, quantiles[:, i], alpha=(i + 1) / 20) for i in range(19)]
    assert uci.pinball_loss(quantiles, y) == pytest.approx(np.mean(each))


def test_forest_quantiles_are_those_of_the_noise():
    """The targets do not depend on the features, so that the quantiles are about those of all targets."""
    random = np.random.default_rng(0)
    x, y = random.normal(size=(400, 2)), random.normal(size=400)
    quantiles = uci.forest_quantiles(UCISplit(x, y, x[:100] + 0.01, y[:100]), (0.1, 0.5, 0.9), trees=50)
    assert quantiles.shape == (100, 3)
    assert (np.diff(quantiles, axis=1) >= 0).all()
    np.testing.assert_allclose(quantiles.mean(0), scipy.stats.norm.ppf([0.1, 0.5, 0.9]), atol=0.35)


def test_every_data_set_has_a_published_number():
    assert set(uci.MC_DROPOUT) == set(UCI)


def test_more_splits_than_there_are_published_are_refused_before_any_is_computed(tmp_path):
    with pytest.raises(ValueError, match="splits must be at most 20, the number of published ones, got 25"):
        uci.UCI(splits=25).run(tmp_path, Sweep())
    assert not list(tmp_path.iterdir())


def test_a_result_of_other_defaults_is_refused(tmp_path):
    (job,) = uci.UCI(splits=1)._jobs("yacht", tmp_path)
    former = {**job.settings, "parameters": {**job.settings["parameters"], "width": 7}}
    job.place.parent.mkdir()
    job.place.write_text(json.dumps({"settings": former, "result": {}}))
    with pytest.raises(ValueError, match=r"other settings: parameters \(.*'width': 7"):
        job.is_finished()
