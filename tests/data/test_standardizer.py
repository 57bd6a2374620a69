"""The one standardizer, of data sets and of estimators."""

import json
import pickle
from dataclasses import asdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from charax.data import DataError, Standardizer

ROWS = hnp.arrays(np.float64, st.tuples(st.integers(2, 8), st.integers(1, 4)), elements=st.floats(-1e6, 1e6))


@given(raw=ROWS)
def test_it_survives_json_and_pickle_exactly(raw):
    standardizer = Standardizer.fit(raw)
    stored = json.loads(json.dumps(asdict(standardizer)))
    loaded = Standardizer(tuple(stored["mean"]), tuple(stored["std"]), stored["max_value"])
    assert loaded == standardizer == pickle.loads(pickle.dumps(standardizer))
    assert hash(loaded) == hash(standardizer)
    np.testing.assert_array_equal(loaded.apply(raw), standardizer.apply(raw))
    assert np.isfinite(standardizer.apply(raw)).all()


def test_its_fields_are_plain_numbers():
    fields = asdict(Standardizer.fit(np.ones((3, 2), np.float32), weights=np.ones(3), max_value=255.0))
    assert {type(value) for value in (*fields["mean"], *fields["std"], fields["max_value"])} == {float}


@given(raw=ROWS)
def test_the_inverse_undoes_it_to_single_precision(raw):
    standardizer = Standardizer.fit(raw)
    back = standardizer.inverse(standardizer.apply(raw))
    np.testing.assert_allclose(back, raw, rtol=0, atol=1e-6 * (1 + np.abs(raw).max()))


@given(raw=ROWS, data=st.data())
def test_a_weight_of_two_is_a_row_that_is_there_twice(raw, data):
    weights = np.array(data.draw(st.lists(st.integers(1, 3), min_size=len(raw), max_size=len(raw))))
    weighted = Standardizer.fit(raw, weights=weights.astype(float))
    repeated = Standardizer.fit(np.repeat(raw, weights, axis=0))
    scale = 1e-9 * (1 + np.abs(raw).max())
    np.testing.assert_allclose(weighted.mean, repeated.mean, rtol=0, atol=scale)
    varied = np.ptp(raw, axis=0) > scale
    np.testing.assert_allclose(np.array(weighted.std)[varied], np.array(repeated.std)[varied], rtol=1e-6)


@given(raw=ROWS, data=st.data())
def test_with_weights_it_has_every_bit_of_the_plain_formulas(raw, data):
    """Estimators that were fitted before there was one standardizer give the same numbers."""
    weights = np.array(data.draw(st.lists(st.floats(0.1, 3), min_size=len(raw), max_size=len(raw))))
    mean = np.average(raw, axis=0, weights=weights)
    std = np.sqrt(np.average((raw - mean) ** 2, axis=0, weights=weights))
    std = np.where(std > 1e-12 * np.abs(mean), std, 1.0)
    standardizer = Standardizer.fit(raw, weights=weights)
    assert standardizer == Standardizer(tuple(mean.tolist()), tuple(std.tolist()))
    np.testing.assert_array_equal(standardizer.apply(raw), ((raw - mean) / std).astype(np.float32))
    seen = standardizer.apply(raw)
    np.testing.assert_array_equal(standardizer.inverse(seen), mean + std * seen)


def test_weights_count_whole_images():
    images = np.random.default_rng(0).normal(size=(4, 3, 2, 2))
    weighted = Standardizer.fit(images, weights=np.array([1.0, 2.0, 1.0, 1.0]))
    repeated = Standardizer.fit(images[[0, 1, 1, 2, 3]])
    np.testing.assert_allclose(weighted.mean + weighted.std, repeated.mean + repeated.std)


@pytest.mark.parametrize("weights", [None, np.ones(4)], ids=["plain", "weighted"])
def test_a_constant_column_keeps_its_unit_and_a_tiny_one_is_scaled(weights):
    raw = np.stack([np.full(4, 1e9), np.arange(4) * 1e-19], axis=1)
    standardizer = Standardizer.fit(raw, weights=weights)
    assert standardizer.std[0] == 1
    np.testing.assert_array_equal(standardizer.apply(raw)[:, 0], 0)
    np.testing.assert_allclose(standardizer.apply(raw)[:, 1].std(), 1, rtol=1e-6)


def test_raw_inputs_are_left_as_they_were():
    raw = np.array([[1.0, 2.0], [3.0, 6.0]])
    out = Standardizer.fit(raw).apply(raw)
    np.testing.assert_array_equal(out, [[-1, -1], [1, 1]])
    np.testing.assert_array_equal(raw, [[1, 2], [3, 6]])


@pytest.mark.parametrize("method", ["apply", "inverse"])
def test_another_number_of_columns_is_an_error(method):
    with pytest.raises(DataError, match="3 columns or channels where 2"):
        getattr(Standardizer((0.0, 0.0), (1.0, 1.0)), method)(np.ones((5, 3)))
