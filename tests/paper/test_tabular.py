"""Densities of tables: the splits, and the competitors of the flow."""

import numpy as np
import pytest

from charax.paper import tabular


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
