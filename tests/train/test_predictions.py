"""Tables of predictions: rows without an answer are marked, or refused with `--strict`."""

import csv

import numpy as np
import pytest

from charax.solve import Solver
from charax.train import Predictions, mark_failures, padded_batches, repeat_rows, solve_in_batches


@pytest.fixture
def far(tmp_path):
    """Three points, the second of which has no answer."""
    np.savez(tmp_path / "new.npz", x=np.array([[0.0, 0.0], [1e3, 0.0], [1.0, 1.0]], np.float32))
    return tmp_path / "new.npz"


def test_failed_rows_are_empty_with_a_status_and_the_others_are_answered(trained, ask, far, tmp_path):
    answer = ask("predict", trained, far, "--output", tmp_path / "out.csv")
    assert (answer["predictions"], answer["failed"]) == (3, 1)
    with (tmp_path / "out.csv").open() as file:
        header, first, second, third = csv.reader(file)
    assert header == ["input", "height", "status"]
    assert second == ["1", "", "the solve failed: too far away"]
    assert [first[2], third[2]] == ["ok", "ok"]
    assert float(first[1]) != float(third[1])


def test_strict_is_status_1_names_the_row_and_writes_nothing(trained, refuse, far, tmp_path):
    reason = refuse("predict", trained, far, "--strict", "--output", tmp_path / "out.csv", status=1)
    assert f"{far}, input 1: the solve failed: too far away" in reason
    assert not (tmp_path / "out.csv").exists()


def test_without_failures_there_is_no_status(trained, ask, tmp_path):
    np.savez(tmp_path / "near.npz", x=np.zeros((2, 2), np.float32))
    answer = ask("predict", trained, tmp_path / "near.npz", "--strict", "--output", tmp_path / "out.csv")
    assert answer.get("failed", 0) == 0
    assert (tmp_path / "out.csv").read_text().splitlines()[0] == "input,height"


def test_a_class_needs_a_conditional_model(trained, refuse, far):
    assert "this model is not conditional: leave --class out" in refuse("predict", trained, far, "--class", "a")


def test_all_rows_may_fail():
    table = Predictions(["x", "y"], [["1", "2"], ["3", "4"]])
    marked = mark_failures(table, np.array([True, True]), inputs=1, names=["a", "b"], reason="why", strict=False)
    assert marked.rows == [["1", "", "why"], ["3", "", "why"]]
    assert marked.failed == 2


def test_an_old_table_is_replaced_only_by_a_complete_one(tmp_path):
    path = tmp_path / "new folder" / "out.csv"
    Predictions(["x"], [["1"]]).write(path)
    with pytest.raises(csv.Error):
        Predictions(["x"], [["2"], 3]).write(path)
    assert path.read_text().split() == ["x", "1"]


@pytest.mark.parametrize(("count", "size"), [(1, 4), (4, 4), (5, 4), (3, 1)])
def test_batches_hold_every_row_once_and_are_filled_up_from_the_beginning(count, size):
    rows = padded_batches(count, size)
    assert rows.shape == (-(-count // size), size)
    assert rows.reshape(-1)[:count].tolist() == list(range(count))
    assert rows.max() < count


@pytest.mark.parametrize("bad", [(), (2,), (0, 4)])
def test_a_row_that_fails_takes_no_other_with_it(bad):
    """With one step size for a mini-batch, its solve fails as a whole; then every row has steps of its own."""
    solved = []

    def solve(rows, solver):
        solved.append((rows.tolist(), solver.per_sample))
        failed = np.isin(rows, bad)
        return np.where(failed if solver.per_sample else failed.any(), np.nan, rows.astype(float)), rows

    values, rows = solve_in_batches(solve, 5, Solver("euler", steps=1), batch_size=3)
    assert np.flatnonzero(np.isnan(values)).tolist() == list(bad)
    assert rows.tolist() == [0, 1, 2, 3, 4]
    assert sum(per_sample for _, per_sample in solved) == len({row // 3 for row in bad} | ({1} if 0 in bad else set()))


def test_few_rows_are_repeated_all_alike():
    rows = repeat_rows(7, at_least=50)
    assert len(rows) >= 50
    assert (np.bincount(rows) == 8).all()
