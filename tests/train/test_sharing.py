"""What the first of several processes hands to the others."""

import jax
import numpy as np
import pytest

from charax.train._sharing import CopiedRows, Loaded, _read, _write, read_whole
from tests.train.line_task import LineConfig


@pytest.fixture
def loaded() -> Loaded:
    config = LineConfig()
    return Loaded(config, config.load_data())


def test_a_config_and_its_data_come_back_with_arrays_that_are_read_by_rows(loaded, tmp_path):
    config, data = _read(tmp_path / "data", _write(tmp_path / "data", loaded))
    assert (config, data.spec, data.notes) == (loaded.config, loaded.data.spec, loaded.data.notes)
    for copied, array in zip(jax.tree.leaves(data.splits), jax.tree.leaves(loaded.data.splits), strict=True):
        assert isinstance(copied, CopiedRows)
        assert (len(copied), copied.ndim, copied.dtype) == (len(array), array.ndim, array.dtype)
        rows = np.random.default_rng(0).permutation(len(array))[:5]
        np.testing.assert_array_equal(copied[rows], array[rows])
        np.testing.assert_array_equal(read_whole(copied), array)


def test_what_another_program_has_changed_is_not_unpickled(loaded, tmp_path):
    digest = _write(tmp_path / "data", loaded)
    tree = tmp_path / "data" / "tree.pickle"
    tree.write_bytes(tree.read_bytes() + b".")
    with pytest.raises(ValueError, match="was changed by another program"):
        _read(tmp_path / "data", digest)
