import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from charax.data import DataError, Standardizer


@given(raw=hnp.arrays(np.float64, st.tuples(st.integers(2, 8), st.integers(1, 4)), elements=st.floats(-1e6, 1e6)))
def test_normalisation_survives_json_exactly(raw):
    standardizer = Standardizer.standardise(raw)
    loaded = Standardizer.from_json(json.loads(json.dumps(standardizer.to_json())))
    assert loaded == standardizer
    np.testing.assert_array_equal(loaded.apply(raw), standardizer.apply(raw))
    assert np.isfinite(standardizer.apply(raw)).all()


def test_raw_inputs_are_left_as_they_were():
    raw = np.array([[1.0, 2.0], [3.0, 6.0]])
    out = Standardizer.standardise(raw).apply(raw)
    np.testing.assert_array_equal(out, [[-1, -1], [1, 1]])
    np.testing.assert_array_equal(raw, [[1, 2], [3, 6]])


def test_another_number_of_columns_is_an_error():
    with pytest.raises(DataError, match="3 columns or channels where 2"):
        Standardizer((0.0, 0.0), (1.0, 1.0)).apply(np.ones((5, 3)))
