"""Columns of numbers, dates, booleans and texts become features, as the training split says."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from charax.data import ColumnEncoder, DataError, LeftOut, TableEncoder, load_dataset, load_density_data, read_inputs
from charax.data._encoder_fitting import fit_encoder
from charax.data.files._dispatch import read_table
from charax.data.files._table import TableRequest
from charax.train._json import from_json, to_json

HEADER = "weight,color,born,alive,city,same,name,target"
ROWS = 40


def row(i: int) -> str:
    weight = "" if i % 4 == 3 else f"{i}.5"
    city = ("", "Rome", "Oslo")[i % 3]
    return (
        f"{weight},{('red', 'blue', 'red', 'green')[i % 4]},2020-01-{1 + i % 28:02d},{i % 3 == 0},{city},7,n{i},{i % 2}"
    )


@pytest.fixture
def mixed(tmp_path) -> Path:
    path = tmp_path / "mixed.csv"
    path.write_text("\n".join([f"Unnamed: 0,{HEADER}", *(f"{i},{row(i)}" for i in range(ROWS))]) + "\n")
    return path


def fit(path: Path, content: str) -> TableEncoder:
    path.write_text(content)
    return fit_encoder(read_table(path, TableRequest()))


def test_each_column_is_encoded_by_its_kind(mixed):
    data = load_dataset(str(mixed))
    encoder = data.encoder
    assert data.columns == encoder.columns == ("weight", "color", "born", "alive", "city")
    assert [each.kind for each in encoder.encoders] == ["number", "text", "date", "boolean", "text"]
    assert encoder.feature_names == (
        *("weight", "weight is missing", "color=blue", "color=green", "color=red", "born", "alive"),
        *("city=Oslo", "city=Rome", "city is missing"),
    )
    assert data.input_shape == (10,)
    assert all(np.isfinite(split.inputs).all() for split in (data.train, data.validation, data.test))


def test_what_was_done_is_said_in_a_line_for_each_treatment(mixed):
    weight, city = (each.missing for each in load_dataset(str(mixed)).encoder.encoders if each.missing)
    assert load_dataset(str(mixed)).notes == (
        f"missing values replaced by the median, and marked in a column of their own: weight ({weight} missing), "
        f"city ({city} missing)",
        "texts as one column of 0 and 1 per category: color (3 categories), city (2 categories)",
        "dates as days since 1970: born",
        "booleans as 0 and 1: alive",
        "left out: a column without a name, same (constant), name (28 different texts in 28 rows)",
    )


def test_the_median_is_that_of_the_training_split(mixed):
    data = load_dataset(str(mixed))
    frame = pd.read_csv(mixed)
    raw = data.standardizer.inverse(data.train.inputs)
    chosen = {round(float(value), 1) for value in raw[raw[:, 1] < 0.5, 0]}
    expected = frame.loc[frame.weight.isin(chosen), "weight"].median()
    assert data.encoder.encoders[0].fill == expected
    np.testing.assert_allclose(raw[raw[:, 1] > 0.5, 0], expected, rtol=1e-5)


def test_new_inputs_are_encoded_as_the_training_data_in_any_order_of_columns(mixed, tmp_path):
    data = load_dataset(str(mixed))
    frame = pd.read_csv(mixed)
    raw, _ = read_inputs(mixed, shape=data.input_shape, encoder=data.encoder)
    everything = np.concatenate([split.inputs for split in (data.train, data.validation, data.test)])
    again = data.standardizer.apply(raw)
    np.testing.assert_array_equal(np.sort(again, axis=0), np.sort(everything, axis=0))
    shuffled = tmp_path / "shuffled.csv"
    frame[frame.columns[::-1]].to_csv(shuffled, index=False, sep=";", decimal=",")
    other, names = read_inputs(shuffled, shape=data.input_shape, encoder=data.encoder)
    np.testing.assert_array_equal(other, raw)
    assert names == [str(i + 2) for i in range(ROWS)]


def test_a_new_category_is_zero_everywhere_and_a_missing_value_is_filled(mixed, tmp_path):
    encoder = load_dataset(str(mixed)).encoder
    new = tmp_path / "new.csv"
    new.write_text("weight,color,born,alive,city\n,violet,,,\n1.5,red,2020-01-02,True,Rome\n")
    raw, _ = read_inputs(new, shape=(10,), encoder=encoder)
    fill = {each.name: each.fill for each in encoder.encoders}
    assert raw[0].tolist() == [fill["weight"], 1, 0, 0, 0, fill["born"], fill["alive"], 0, 0, 1]
    assert raw[1].tolist() == [1.5, 0, 0, 0, 1, 18263, 1, 0, 1, 0]


def test_categories_that_look_like_numbers_stay_texts(tmp_path):
    rows = "".join(f"{('2', '4', '5more', '1.0')[i % 4]},{i % 2}\n" for i in range(40))
    (tmp_path / "cars.csv").write_text("doors,target\n" + rows)
    encoder = load_dataset(str(tmp_path / "cars.csv")).encoder
    assert encoder.feature_names == ("doors=1.0", "doors=2", "doors=4", "doors=5more")
    (tmp_path / "new.csv").write_text("doors\n2\n1.0\n1\n")
    raw, _ = read_inputs(tmp_path / "new.csv", shape=(4,), encoder=encoder)
    assert raw.tolist() == [[0, 1, 0, 0], [1, 0, 0, 0], [0, 0, 0, 0]]


WRONG_INPUTS = {
    "text for a number": ("heavy,red,2020-01-01,True,Rome", "row 2: column 'weight' has 'heavy', not a finite number"),
    "an infinite number": ("inf,red,2020-01-01,True,Rome", "row 2: column 'weight' has 'inf', not a finite number"),
    "text for a boolean": ("1,red,2020-01-01,maybe,Rome", "row 2: column 'alive' has 'maybe', not true or false"),
    "a number for a boolean": ("1,red,2020-01-01,2,Rome", "row 2: column 'alive' has '2', not true or false"),
    "another format of dates": (
        "1,red,01.01.2020,True,Rome",
        r"row 2: column 'born' has '01\.01\.2020', not a date as",
    ),
    "a number for a date": ("1,red,2020,True,Rome", "row 2: column 'born' has '2020', not a date as"),
}


@pytest.mark.parametrize("case", WRONG_INPUTS)
def test_a_cell_of_another_kind_is_named(mixed, tmp_path, case):
    cells, message = WRONG_INPUTS[case]
    encoder = load_dataset(str(mixed)).encoder
    (tmp_path / "new.csv").write_text(f"weight,color,born,alive,city\n{cells}\n")
    with pytest.raises(DataError, match=message):
        read_inputs(tmp_path / "new.csv", shape=(10,), encoder=encoder)


def test_a_column_that_the_model_reads_must_be_there(mixed, tmp_path):
    encoder = load_dataset(str(mixed)).encoder
    (tmp_path / "new.csv").write_text("weight,color,born,alive\n1,red,2020-01-01,True\n")
    with pytest.raises(DataError, match=r"new\.csv has no column 'city'; it has .*: add it, the model was trained"):
        read_inputs(tmp_path / "new.csv", shape=(10,), encoder=encoder)


def test_numbers_stay_exactly_as_they_are(tmp_path):
    values = np.random.default_rng(0).normal(size=(60, 3))
    frame = pd.DataFrame(values, columns=list("abc")).assign(target=np.arange(60) % 3)
    frame.to_csv(tmp_path / "t.csv", index=False)
    np.savez(tmp_path / "t.npz", x=values, y=np.arange(60) % 3)
    table, archive = load_dataset(str(tmp_path / "t.csv"), seed=1), load_dataset(str(tmp_path / "t.npz"), seed=1)
    assert table.standardizer == archive.standardizer
    assert table.notes == archive.notes == ()
    for split in ("train", "validation", "test"):
        np.testing.assert_array_equal(getattr(table, split).inputs, getattr(archive, split).inputs)
        np.testing.assert_array_equal(getattr(table, split).targets, getattr(archive, split).targets)


def test_dates_and_booleans_are_the_same_in_every_kind_of_file(tmp_path):
    pytest.importorskip("pyarrow", reason="the extra charax[parquet] is not installed")
    pytest.importorskip("openpyxl", reason="the extra charax[excel] is not installed")
    days = pd.date_range("2020-02-01 06:00", periods=30, freq="36h")
    frame = pd.DataFrame({"when": days, "on": np.arange(30) % 3 == 0, "target": list("xy") * 15})
    frame.loc[4, "when"] = pd.NaT
    frame.to_csv(tmp_path / "t.csv", index=False)
    frame.to_parquet(tmp_path / "t.parquet")
    frame.to_excel(tmp_path / "t.xlsx", index=False)
    whole = [load_dataset(str(tmp_path / f"t.{kind}")) for kind in ("csv", "parquet", "xlsx")]
    assert [each.kind for each in whole[0].encoder.encoders] == ["date", "boolean"]
    for data in whole[1:]:
        np.testing.assert_array_equal(data.train.inputs, whole[0].train.inputs)
        raw, _ = read_inputs(tmp_path / "t.csv", shape=data.input_shape, encoder=data.encoder)
        np.testing.assert_array_equal(
            raw, read_inputs(tmp_path / "t.parquet", shape=data.input_shape, encoder=whole[0].encoder)[0]
        )


def test_too_many_texts_are_names_and_left_out(tmp_path):
    many = "".join(f"{i % 51:02d}x,{i % 7}\n" for i in range(200))
    assert fit(tmp_path / "t.csv", "a,b\n" + many).left_out == (LeftOut("a", "51 different texts in 200 rows"),)
    few = "".join(f"{i % 50:02d}x,{i % 7}\n" for i in range(200))
    assert len(fit(tmp_path / "t.csv", "a,b\n" + few).encoders[0].categories) == 50


def test_a_boolean_with_missing_values_is_a_boolean(tmp_path):
    encoder = fit(tmp_path / "t.csv", "a,b\nTRUE,1\nfalse,2\n,3\nTrue,4\n")
    assert encoder.encoders[0] == ColumnEncoder("a", "boolean", fill=1.0, missing=1)


def test_a_date_that_can_be_read_in_two_ways_is_named(tmp_path):
    with pytest.raises(
        DataError, match=r"row 3: column 'a' has the date '01/02/2020', with the day or the month first"
    ):
        fit(tmp_path / "t.csv", "a,b\n03/03/2020,1\n01/02/2020,2\n")


texts = st.text(max_size=8)
fills = st.none() | st.floats(allow_nan=False, allow_infinity=False)
columns = st.tuples(
    texts,
    st.sampled_from(["number", "boolean", "date", "text"]),
    fills,
    st.integers(0, 100),
    st.lists(texts, max_size=3).map(tuple),
    st.none() | texts,
)


@settings(max_examples=50)
@given(st.lists(columns, max_size=3), st.lists(st.tuples(texts, texts), max_size=2))
def test_an_encoder_is_stored_as_json(columns, left_out):
    encoder = TableEncoder(
        tuple(ColumnEncoder(*column) for column in columns), tuple(LeftOut(*column) for column in left_out)
    )
    assert from_json(TableEncoder, json.loads(json.dumps(to_json(encoder)))) == encoder
    hash(encoder)


def test_long_notes_are_shortened():
    encoder = TableEncoder(tuple(ColumnEncoder(f"c{i}", "date") for i in range(20)))
    assert encoder.notes == ("dates as days since 1970: c0, c1, c2, c3, c4, c5, c6, c7 and 12 more",)


# ---- densities and targets --------------------------------------------------------------------------

NO_DENSITY = {
    "text": ("x{0}", r"row 2: column 'b' has 'x0', not a finite number: write numbers instead, or remove the column"),
    "a date": ("2020-01-{0:02d}", "row 2: column 'b' has '2020-01-00', not a finite number"),
    "a boolean": ("True", "column 'b' has booleans, which have no density: remove it"),
    "missing": ("", "row 2: column 'b' has nothing, not a finite number: fill it, or remove such rows"),
    "constant": ("7", r"column 'b' is constant, .*, and as context it tells nothing: remove it"),
}


@pytest.mark.parametrize("labelled", [False, True])
@pytest.mark.parametrize("case", NO_DENSITY)
def test_only_numbers_have_a_density(tmp_path, case, labelled):
    cell, message = NO_DENSITY[case]
    path = tmp_path / "t.csv"
    path.write_text("a,b,target\n" + "".join(f"{i},{cell.format(i)},{'xy'[i % 2]}\n" for i in range(30)))
    with pytest.raises(DataError, match=message):
        load_density_data(str(path), labelled=labelled)


def test_the_density_of_a_table_leaves_its_index_out(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(";a;b\n" + "".join(f"{i};{i},5;{i * i}\n" for i in range(30)))
    data = load_density_data(str(path))
    assert data.columns == ("a", "b")
    assert data.notes == ("left out: a column without a name",)
    raw, _ = read_inputs(path, shape=(2,), encoder=data.encoder)
    assert raw[1].tolist() == [1.5, 1.0]


TARGETS = {
    "measured": (lambda i: f"{i / 7:.3f}", True),
    "measured, with commas": (lambda i: f'"{i}{i % 10},5"', True),
    "counted": (lambda i: str(i % 60), True),
    "integers": (lambda i: str(i % 20), False),
    "halves": (lambda i: str(i % 4 / 2), False),
    "words": (lambda i: f"{i % 60} cm", False),
}


@pytest.mark.parametrize("case", TARGETS)
def test_a_target_that_is_measured_is_not_one_of_classes(tmp_path, case):
    spell, refused = TARGETS[case]
    path = tmp_path / "t.csv"
    path.write_text("a,target\n" + "".join(f"{i},{spell(i)}\n" for i in range(300)))
    if refused:
        with pytest.raises(DataError, match=r"the target 'target' looks numeric, .*: use train regress"):
            load_dataset(str(path))
    else:
        assert len(load_dataset(str(path)).classes) > 1
