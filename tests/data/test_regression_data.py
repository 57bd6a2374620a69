"""Data for regression: tables with targets, arrays, three splits, and errors that name the row and the column."""

import numpy as np
import pytest

from charax.data import DataError, load_regression


def write_table(path, header: str = "size,kind,price,weight", rows: int = 20, **changed: str):
    """A table of numbers and texts; `changed` replaces the price in rows, as in r5="?"."""
    lines = [header]
    for i in range(rows):
        price = changed.get(f"r{i}", f"{3 * i + 0.5}")
        lines.append(f"{i},{'ab'[i % 2]},{price},{i * i}")
    path.write_text("\n".join(lines))
    return str(path)


@pytest.fixture
def table(tmp_path):
    return lambda **options: write_table(tmp_path / "table.csv", **options)


@pytest.fixture
def archive(tmp_path):
    def write(**arrays):
        np.savez(tmp_path / "data.npz", **arrays)
        return str(tmp_path / "data.npz")

    return write


def test_a_table_is_split_70_10_20_and_standardized_by_the_training_split(table):
    data = load_regression(table(), target=("price",))
    assert [len(split.inputs) for split in (data.train, data.validation, data.test)] == [14, 2, 4]
    assert data.encoder.feature_names == ("size", "kind=a", "kind=b", "weight")
    np.testing.assert_allclose(data.train.targets.mean(0), 0, atol=1e-6)
    np.testing.assert_allclose(data.train.targets.std(0), 1, rtol=1e-6)
    parts = (data.train, data.validation, data.test)
    prices = np.concatenate([data.target_standardizer.inverse(part.targets) for part in parts])
    sizes = np.concatenate([data.standardizer.inverse(part.inputs)[:, :1] for part in parts])
    np.testing.assert_allclose(prices, 3 * sizes + 0.5, atol=1e-4)  # rows stay together
    np.testing.assert_allclose(np.sort(sizes[:, 0]), np.arange(20), atol=1e-5)


def test_the_seed_chooses_the_splits(table):
    path = table()
    first, again, other = (load_regression(path, target=("price",), seed=seed).test.targets for seed in (0, 0, 1))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_several_targets_are_no_features(table):
    data = load_regression(table(), target=("weight", "price"))
    assert data.targets == ("weight", "price")
    assert data.train.targets.shape == (14, 2)
    assert data.encoder.columns == ("size", "kind")


def test_the_target_is_the_column_of_that_name_by_default(table):
    assert load_regression(table(header="size,kind,target,weight")).targets == ("target",)


@pytest.mark.parametrize(("columns", "names"), [((), ("y",)), ((1,), ("y",)), ((2,), ("y1", "y2"))])
def test_arrays(archive, columns, names):
    y = np.random.default_rng(0).normal(size=(30, *columns))
    data = load_regression(archive(x=np.arange(60).reshape(30, 2), y=y))
    assert data.targets == names
    assert data.train.inputs.shape == (21, 2)
    assert data.encoder is None


def test_a_target_far_from_zero_keeps_its_digits(archive):
    y = 1.7e9 + np.arange(30)
    data = load_regression(archive(x=np.ones((30, 1)), y=y))
    parts = (data.train, data.validation, data.test)
    found = np.concatenate([data.target_standardizer.inverse(part.targets)[:, 0] for part in parts])
    np.testing.assert_allclose(np.sort(found), y, rtol=0, atol=1e-4)


@pytest.mark.parametrize(
    ("options", "target", "words"),
    [
        ({"r5": ""}, ("price",), r"table\.csv, row 7: column 'price' has nothing, not a finite number"),
        ({"r5": "n/a"}, ("price",), "row 7: column 'price' has nothing"),
        ({"r5": "inf"}, ("price",), "row 7: column 'price' has 'inf', not a finite number"),
        ({"r5": "cheap"}, ("price",), "row 7: column 'price' has 'cheap', not a finite number"),
        ({f"r{i}": "10" for i in range(20)}, ("price",), "the target 'price' is 10 in all training rows"),
        ({}, ("kind",), "row 2: the target 'kind' has 'a' and looks like classes: use train classify"),
        ({f"r{i}": str(i < 9) for i in range(20)}, ("price",), "looks like classes: use train classify"),
        ({f"r{i}": f"2020-01-{i + 1:02}" for i in range(20)}, ("price",), "'price' has '2020-01-01'"),
        ({}, ("cost",), "has no column 'cost'; it has size, kind, price, weight: name the columns to predict"),
        ({}, (), "has no column 'target'"),
        ({}, ("price", "price"), "give each once"),
        ({}, ("size", "price", "weight", "kind"), "looks like classes"),
        ({"rows": 9}, ("price",), "has 9 rows: give at least 10"),
    ],
)
def test_a_bad_table_is_a_sentence(table, options, target, words):
    with pytest.raises(DataError, match=words):
        load_regression(table(**options), target=target)


def test_a_table_of_targets_only_is_refused(tmp_path):
    (tmp_path / "t.csv").write_text("a,b\n" + "\n".join(f"{i},{i * i}" for i in range(12)))
    with pytest.raises(DataError, match="has no column but the targets a, b: add columns"):
        load_regression(str(tmp_path / "t.csv"), target=("a", "b"))


X, Y = np.zeros((12, 2)), np.arange(12.0)


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        ({"x": X}, "has no array 'y'"),
        ({"x": X, "y": Y[:5]}, r"y of shape \(5,\) where x has 12 samples"),
        ({"x": X[:, 0], "y": Y}, r"x of shape \(12,\): give one row of features per sample"),
        ({"x": np.zeros((12, 4, 4)), "y": Y}, "give one row of features"),
        ({"x": X, "y": np.where(Y == 3, np.nan, Y)}, "nan in row 3, column 0 of y"),
        ({"x": np.where(X == 0, np.inf, X), "y": Y}, "inf in row 0, column 0 of x"),
        ({"x": X, "y": Y > 3}, "y of type bool, which looks like classes: use train classify"),
        ({"x": X, "y": Y.astype(str)}, "looks like classes: use train classify"),
        ({"x": X, "y": Y.astype(complex)}, "y of type complex128: give numbers"),
        ({"x": X, "y": np.ones(12)}, "the target 'y' is 1 in all training rows"),
    ],
)
def test_bad_arrays_are_a_sentence(archive, arrays, words):
    with pytest.raises(DataError, match=words):
        load_regression(archive(**arrays))


def test_arrays_have_no_columns_to_name(archive):
    with pytest.raises(DataError, match="whose target is y: leave out the target"):
        load_regression(archive(x=X, y=Y), target=("price",))


def test_a_file_that_is_not_there_lists_the_names(tmp_path):
    with pytest.raises(DataError, match="does not exist, and is not one of diabetes"):
        load_regression("nowhere.csv")
    with pytest.raises(DataError, match="not a kind of file that can be read here"):
        load_regression(str(tmp_path))
