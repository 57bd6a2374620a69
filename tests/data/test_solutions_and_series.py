"""Files of solutions and of series, and what is wrong with them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from charax.data import (
    BOXES,
    DataError,
    load_series,
    load_solution,
    read_forecast_times,
    read_points,
    sample_paper_series,
    sample_problem,
)
from charax.pde import PROBLEMS


def write(path, text):
    path.write_text(text)
    return str(path)


def test_every_built_in_problem_is_sampled_before_its_crossing():
    assert set(BOXES) == set(PROBLEMS)
    for name in ("burgers-sine", "burgers-2d"):
        assert np.isfinite(sample_problem(name, 20, seed=[0]).u).all()


def test_parts_of_a_built_in_problem_are_disjoint_and_depend_on_the_seed():
    one, other = load_solution("paper"), load_solution("paper", seed=1)
    assert not set(one.test.t.tolist()) & set(one.seen.t.tolist())
    assert one.train.t[0] != other.train.t[0]


def test_archive_and_table_of_the_same_samples_agree(tmp_path):
    x, t, u = sample_problem("burgers-2d", 20, seed=[0])
    np.savez(tmp_path / "a.npz", x=x, t=t, u=u)
    rows = [",".join(map(repr, map(float, row))) for row in np.concatenate([x, t[:, None], u], axis=1)]
    table = load_solution(write(tmp_path / "a.csv", "\n".join(["x1,x2,t,u1,u2", *rows])))
    archive = load_solution(str(tmp_path / "a.npz"))
    np.testing.assert_allclose(table.train.u, archive.train.u, rtol=1e-6)
    assert archive.position_columns == ("x1", "x2")


BAD_SOLUTIONS = {
    "time before the start": ("x,t,u\n1,0,1\n1,-0.5,1\n", "row 3: t = -0.5 lies before"),
    "missing value": ("x,t,u\n1,0,1\n1,,1\n", "row 3: column 't' has nothing"),
    "no places": ("y,t,u\n1,0,1\n", "no column 'x' and no x1"),
    "too few": ("x,t,u\n1,0,1\n", "at least 10"),
}


@pytest.mark.parametrize("name", BAD_SOLUTIONS)
def test_wrong_row_of_a_solution_is_named(name, tmp_path):
    text, message = BAD_SOLUTIONS[name]
    with pytest.raises(DataError, match=message):
        load_solution(write(tmp_path / "bad.csv", text))


def test_points_to_predict_need_no_values(tmp_path):
    columns = read_points(write(tmp_path / "new.csv", "t,x\n0.5,1\n"), ("x",))
    assert columns.values.tolist() == [[1.0, 0.5]]


START = "series,time,u\na,0,1\na,1,2\na,2,3\na,3,4\n"
BAD_SERIES = {
    "unsorted": (START + "a,2.5,1\n", "row 6: series 'a' goes back in time from 3 to 2.5"),
    "repeated": (START + "a,3,1\n", "row 6: series 'a' repeats the time 3"),
    "missing value": (START + "a,4,\n", "row 6: column 'u' has nothing"),
    "missing name": (START + ",4,1\n", "row 6: column 'series' is empty: fill it in, or remove the row"),
    "too short": (START + "b,4,1\n", "row 6: series 'b' has 1 rows"),
    "no time": ("series,u\na,1\n", "no column 'time'"),
}


@pytest.mark.parametrize("name", BAD_SERIES)
def test_wrong_row_of_a_series_is_named(name, tmp_path):
    text, message = BAD_SERIES[name]
    with pytest.raises(DataError, match=message):
        load_series(write(tmp_path / "bad.csv", text))


def test_series_are_split_in_time_and_start_from_their_first_row(tmp_path):
    rows = [f"{name},{5 + time},{time * 10},7" for name in "ab" for time in range(11)]
    data = load_series(write(tmp_path / "s.csv", "\n".join(["series,time,u,size", *rows])), context=("size",))
    assert data.origins == (5.0, 5.0)
    assert data.test.t.tolist() == [9.0, 10.0] * 2
    assert data.train.t.max() < data.validation.t.min() <= data.validation.t.max() < data.test.t.min()
    assert (data.train.context == 7).all()
    assert (data.train.start == 0).all()


@given(lengths=st.lists(st.integers(4, 20), min_size=1, max_size=4), seed=st.integers(0, 2**32))
def test_every_later_row_of_a_series_is_in_one_split_whatever_the_order_of_the_series(tmp_path_factory, lengths, seed):
    random = np.random.default_rng(seed)
    names = random.permutation(np.repeat(np.arange(len(lengths)), lengths))
    times = np.cumsum(random.uniform(0.1, 1, len(names)))
    path = tmp_path_factory.mktemp("series") / "mixed.npz"
    np.savez(path, series=names, time=times, u=times**2)
    data = load_series(str(path))
    splits = [data.train, data.validation, data.test]
    for number, name in enumerate(data.names):
        mine = [split.take(split.series == number) for split in splits]
        elapsed = np.concatenate([split.t for split in mine])
        own = times[names == int(name)]
        np.testing.assert_allclose(elapsed, own[1:] - own[0], atol=1e-5)
        assert all(len(split.t) for split in mine[1:])
        assert data.origins[number] == own[0]


def test_unknown_names_are_told_those_there_are():
    with pytest.raises(ValueError, match="unknown problem 'heat'; choose from advection, "):
        sample_problem("heat", 10, seed=[0])
    with pytest.raises(DataError, match="heat does not exist, and is not one of advection, "):
        load_solution("heat")
    with pytest.raises(DataError, match="stocks does not exist, and is not one of paper"):
        load_series("stocks")


def test_forecasts_need_only_the_starting_value(tmp_path):
    columns = load_series("paper").columns
    request = read_forecast_times(write(tmp_path / "new.csv", "series,time,u\na,0,1\na,2,\n"), columns)
    assert request.observations.t.tolist() == [0.0, 2.0]
    with pytest.raises(DataError, match="no column 'u'; it has series, time: the training data have it; add it"):
        read_forecast_times(write(tmp_path / "no_u.csv", "series,time\na,0\n"), columns)
    with pytest.raises(DataError, match="row 2: column 'u' has nothing"):
        read_forecast_times(write(tmp_path / "none.csv", "series,time,u\na,0,\n"), columns)


def test_best_constant_multiple_reaches_the_floor_of_the_hidden_series():
    seen = sample_paper_series(20_000, (0.0, 6.0), seed=[0])
    g = 2 * np.exp(seen.t) / (2 * np.exp(seen.t) + 1)
    deviation = np.abs(np.sqrt(2) * g - seen.value[:, 0]) / seen.value[:, 0]
    assert abs(deviation.mean() - (3 - 2 * np.sqrt(2))) < 0.003
