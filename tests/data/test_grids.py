"""Solutions on a grid as samples."""

import numpy as np
import pytest
from scipy.io import savemat

from charax.data import DataError, load_solution

X, T = np.linspace(-1, 1, 7), np.linspace(0, 2, 5)
U = X[:, None] + 10 * T  # u[i, j] at x[i], t[j]


@pytest.fixture(params=["columns.npz", "rows.npz", "paper.mat"])
def path(request, tmp_path):
    path = tmp_path / request.param
    match request.param:
        case "columns.npz":
            np.savez(path, x=X, t=T, u=U)
        case "rows.npz":
            np.savez(path, x=X, t=T, u=U.T)
        case _:
            savemat(path, {"x": X, "t": T, "usol": U})
    return path


def test_every_node_is_a_sample(path):
    data = load_solution(str(path), points=100)
    everything = [np.concatenate([split.x[:, 0], split.t, split.u[:, 0]]) for split in (data.seen, data.test)]
    assert sum(map(len, everything)) == 3 * 35
    for split in (data.seen, data.test):
        np.testing.assert_allclose(split.u[:, 0], split.x[:, 0] + 10 * split.t, rtol=1e-5, atol=1e-6)
    assert (data.position_columns, data.value_columns) == (("x",), ("u",))


def test_some_nodes_are_drawn_and_only_early_ones(path):
    data = load_solution(str(path), points=16, until=1.0)
    assert len(data.seen.t) == 16
    assert len(data.test.t) == 4
    assert max(data.seen.t.max(), data.test.t.max()) <= 1


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        ({"x": X, "t": T, "usol": U[:3]}, r"shape \(3, 5\)"),
        ({"x": X, "t": T}, "no array 'u'"),
        ({"x": X, "t": T - 1, "u": U}, "before the initial time"),
        ({"x": X, "t": T, "u": np.where(U > 5, np.nan, U)}, "not finite"),
        ({"x": X, "t": T, "u": U[:, 0]}, "give x"),
    ],
)
def test_a_bad_grid_is_named(arrays, words, tmp_path):
    savemat(tmp_path / "bad.mat", arrays)
    with pytest.raises(DataError, match=words):
        load_solution(str(tmp_path / "bad.mat"))


def test_a_table_of_several_values_is_no_grid(tmp_path):
    np.savez(tmp_path / "table.npz", x=np.arange(20.0), t=np.arange(20.0), u=np.ones((20, 2)))
    assert load_solution(str(tmp_path / "table.npz")).value_columns == ("u1", "u2")


def test_no_samples_before_a_time_are_too_few(path):
    with pytest.raises(DataError, match=r"7 rows until t = 0\.1"):
        load_solution(str(path), until=0.1)
