"""Files of whole series: three kinds, the same content, and what is refused."""

import gzip
import os
from pathlib import Path

import numpy as np
import pytest

from charax.data import DataError, SeriesScaling, Standardizer, load_series_dataset, read_series
from charax.data.files._dispatch import read_raw_series
from charax.data.files._series import SeriesRequest

NAN = np.nan
TABLE = "series,time,a,b,label\nx,0,1,2,up\nx,2,,3,up\ny,5,4,,down\nx,3,7,8,up\n"
TS = """#comment
@problemName Two
@timeStamps false
@missing true
@univariate false
@classLabel true up down
@data
1,?,7:2,3,8:up
4:?:down
"""
STAMPED = """@timestamps true
@classlabel true up down
@data
(0,1),(3,7):(0,2),(2,3),(3,8):up
(5,4)::down
"""
REQUEST = SeriesRequest(target="label")


def arrays_of(folder: Path) -> Path:
    x = np.full((2, 4, 2), NAN)
    x[0, :3], x[1, 0] = [[1, 2], [NAN, 3], [7, 8]], [4, NAN]
    np.savez(folder / "two.npz", x=x, t=np.array([[0, 2, 3, 0], [5, 6, 7, 8.0]]), y=np.array(["up", "down"]))
    return folder / "two.npz"


def file_of(kind: str, folder: Path) -> Path:
    if kind == "npz":
        return arrays_of(folder)
    text, name = {"csv": (TABLE, "two.csv"), "ts": (TS, "two.ts"), "stamped": (STAMPED, "two.ts.gz")}[kind]
    (folder / name).write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    return folder / name


@pytest.mark.parametrize("kind", ["csv", "ts", "stamped", "npz"])
def test_the_same_series_in_every_kind_of_file(kind, tmp_path):
    raw = read_raw_series(file_of(kind, tmp_path), REQUEST)
    np.testing.assert_array_equal(raw.values[0], [[1, 2], [NAN, 3], [7, 8]])
    np.testing.assert_array_equal(raw.values[1], [[4, NAN]])
    times = [0, 1, 2] if kind == "ts" else [0, 2, 3]
    assert raw.times[0].tolist() == times
    assert raw.labels == ["up", "down"]


def changed(old: str, new: str, text: str = TABLE) -> str:
    assert old in text
    return text.replace(old, new)


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("a.csv", changed("x,2,,3", "x,0,,3"), "row 3: series 'x' repeats the time 0"),
        ("a.csv", changed("x,3,7", "x,1,7"), "row 5: series 'x' goes back in time from 2 to 1"),
        (
            "a.csv",
            changed("x,3,7,8,up", "x,3,7,8,down"),
            "row 5: the target 'label' changes within a series, from 'up'",
        ),
        (
            "a.csv",
            changed("x,2,,3", "x,,,3"),
            "row 3: series 'x' has no finite time there: fill it in, or remove the row",
        ),
        ("a.csv", changed("x,2,,3,up", "x,2,,3,"), "row 3: column 'label' is empty: fill it in, or remove the row"),
        ("a.csv", changed("x,2,,3", ",2,,3"), "row 3: column 'series' is empty: fill it in, or remove the row"),
        (
            "a.csv",
            changed("label", "way"),
            "no column 'label'; it has series, time, a, b, way: every row needs the target",
        ),
        ("a.csv", changed("y,5,4", "y,5,four"), "row 4: column 'a' has 'four', not a finite number or an empty cell"),
        ("a.csv", "series,time,label\nx,0,up\n", "no columns of channels"),
        ("a.csv", "time,a,label\n0,1,up\n", "no column 'series'; it has time, a, label: every row needs its series"),
        ("a.ts", changed("8:up", "8:left", TS), "row 8: has the class 'left', which is not one of up, down"),
        ("a.ts", changed("2,3,8", "2,3", TS), "row 8: has channels of different lengths: 2, 3"),
        ("a.ts", changed("4:?", "4", TS), "row 9: has 1 channels where the first series has 2"),
        ("a.ts", changed("1,?", "one,?", TS), "row 8: has something else than numbers and ?"),
        ("a.ts", changed("@data\n", "", TS), "row 7: there are data before the line '@data'"),
        ("a.ts", changed("(2,3),(3,8)", "(3,8),(2,3)", STAMPED), "row 4: series '1' goes back in time from 3 to 2"),
        ("a.ts", changed("true up down", "false", TS), "has no labels"),
    ],
)
def test_bad_series_are_named_with_their_row(name, text, words, tmp_path):
    (tmp_path / name).write_text(text)
    with pytest.raises(DataError) as refusal:
        read_raw_series(tmp_path / name, REQUEST)
    assert str(refusal.value).startswith(str(tmp_path / name))
    assert words in str(refusal.value)


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        ({"y": np.zeros(2)}, "has no array 'x'"),
        ({"x": np.zeros((2, 3))}, "has no array 'y'"),
        ({"x": np.zeros((2, 3)), "y": np.zeros(3)}, "one class or number per series"),
        ({"x": np.zeros((2, 3)), "y": np.zeros(2), "t": np.zeros(4)}, r"give \[length\] or \[n, length\]"),
        ({"x": np.zeros((2, 3)), "y": np.zeros(2), "lengths": np.array([3, 4])}, "has the length 4 in row 1"),
        ({"x": np.full((2, 3), np.inf), "y": np.zeros(2)}, "row 0 of x .* has an infinite value"),
    ],
)
def test_bad_arrays_are_named(arrays, words, tmp_path):
    np.savez(tmp_path / "a.npz", **arrays)
    with pytest.raises(DataError, match=words):
        read_raw_series(tmp_path / "a.npz", REQUEST)


@pytest.fixture(scope="module")
def waves(tmp_path_factory) -> Path:
    generator = np.random.default_rng(0)
    x, y = generator.normal(5, 3, size=(40, 6, 2)), np.arange(40) % 2
    x[generator.uniform(size=x.shape) < 0.2] = NAN
    path = tmp_path_factory.mktemp("data") / "waves.npz"
    np.savez(path, x=x, y=y, t=np.arange(6) * 0.5, lengths=generator.integers(2, 7, 40))
    return path


def test_splits_are_by_series_and_standardized_over_what_was_observed(waves):
    data = load_series_dataset(str(waves))
    assert [len(split.lengths) for split in (data.train, data.validation, data.test)] == [26, 6, 8]
    values, lengths = data.train.values, data.train.lengths
    np.testing.assert_allclose(np.nanmean(values, axis=(0, 1)), 0, atol=1e-6)
    np.testing.assert_allclose(np.nanstd(values, axis=(0, 1)), 1, atol=1e-6)
    assert np.isnan(values[np.arange(6) >= lengths[:, None]]).all()
    assert (np.diff(data.train.times, axis=1) > 0).all()
    last = data.train.times[np.arange(26), lengths - 1]
    assert last.mean() == pytest.approx(1)  # the unit of time is the mean duration


def test_observations_are_dropped_by_the_seed_in_every_split(waves):
    share = lambda split: np.isfinite(split.values).sum() / (split.lengths.sum() * 2)
    complete, half, again = (
        load_series_dataset(str(waves), dropped_percent=percent, seed=seed)
        for percent, seed in ((0.0, 0), (50.0, 0), (50.0, 1))
    )
    for name in ("train", "validation", "test"):
        assert share(getattr(half, name)) == pytest.approx(share(getattr(complete, name)) / 2, abs=0.2)
    assert not np.array_equal(half.test.values, again.test.values, equal_nan=True)


def test_a_file_of_test_series_is_the_test_split(waves, tmp_path):
    np.savez(tmp_path / "more.npz", x=np.ones((3, 9, 2)), y=np.array([1, 0, 1]))
    data = load_series_dataset(str(waves), test=str(tmp_path / "more.npz"))
    assert data.test.targets.tolist() == [1, 0, 1]
    assert data.train.values.shape[1:] == data.test.values.shape[1:] == (9, 2)  # one shape for all splits
    np.savez(tmp_path / "other.npz", x=np.ones((1, 9, 2)), y=np.array([7]))
    with pytest.raises(DataError, match=r"other\.npz, row 0 .* has the class '7', which no training series has"):
        load_series_dataset(str(waves), test=str(tmp_path / "other.npz"))
    np.savez(tmp_path / "wide.npz", x=np.ones((1, 9, 3)), y=np.array([1]))
    with pytest.raises(DataError, match="3 channels where 2 are expected: give the channels of the training data"):
        load_series_dataset(str(waves), test=str(tmp_path / "wide.npz"))


def test_targets_that_are_numbers_need_to_be_asked_for(tmp_path):
    generator = np.random.default_rng(1)
    x, y = generator.normal(size=(20, 4, 2)), generator.normal(100, 5, 20)
    np.savez(tmp_path / "a.npz", x=x, y=y)
    with pytest.raises(DataError, match="20 different values in 20 series: add --regression"):
        load_series_dataset(str(tmp_path / "a.npz"))
    data = load_series_dataset(str(tmp_path / "a.npz"), regression=True)
    assert data.classes == ()
    assert data.train.targets.std() == pytest.approx(1, abs=1e-5)
    np.savez(tmp_path / "b.npz", x=x, y=np.array(["a", "b"] * 10))
    with pytest.raises(DataError, match=r"row 0 .* is 'a', not a finite number"):
        load_series_dataset(str(tmp_path / "b.npz"), regression=True)


def test_a_channel_without_any_value_and_times_that_are_too_close_are_refused(tmp_path):
    x = np.random.default_rng(0).normal(size=(20, 3, 2))
    x[:, :, 1] = NAN
    np.savez(tmp_path / "a.npz", x=x, y=np.arange(20) % 2)
    with pytest.raises(DataError, match="channel 'channel2' has no value in any of the 12 training series"):
        load_series_dataset(str(tmp_path / "a.npz"))
    np.savez(tmp_path / "b.npz", x=x[:, :, :1], y=np.arange(20) % 2, t=np.array([0, 1, 1 + 1e-12]))
    with pytest.raises(DataError, match="two times that are too close"):
        load_series_dataset(str(tmp_path / "b.npz"))


def test_new_series_are_scaled_as_those_trained_on_and_may_be_longer(tmp_path):
    scaling = SeriesScaling(("b", "a"), Standardizer((1.0, 0.0), (2.0, 1.0)), duration=3.0, length=2.0)
    (tmp_path / "new.csv").write_text("series,time,a,b\nn,1,5,3\nn,4,,1\nn,7,6,\n")
    new = read_series(tmp_path / "new.csv", scaling)
    np.testing.assert_allclose(new.split.values[0], [[1, 5], [0, NAN], [NAN, 6]])
    np.testing.assert_allclose(new.split.times[0], [0, 1, 2])


@pytest.mark.parametrize("name", ["a.csv", "a.tsv"])
def test_a_new_file_is_separated_as_its_columns_say(name, tmp_path):
    """And not as its name does: the columns that a model reads are known, and need no --separator as in training."""
    rows = [f"s{i};{t},5;{i + t};{'up' if i % 2 else 'down'}" for i in range(20) for t in range(3)]
    (tmp_path / name).write_text("\n".join(["series;time;u;label", *rows]))
    scaling = load_series_dataset(str(tmp_path / name), separator=";").scaling
    new = read_series(tmp_path / name, scaling)
    assert new.names == [f"s{i}" for i in range(20)]
    np.testing.assert_allclose(scaling.standardizer.inverse(new.split.values)[3, :, 0], [3, 4, 5], rtol=1e-5)


def test_a_single_observation_is_noted(tmp_path):
    np.savez(
        tmp_path / "a.npz", x=np.random.default_rng(0).normal(size=(20, 3)), y=np.arange(20) % 2, lengths=[1] + [3] * 19
    )
    assert load_series_dataset(str(tmp_path / "a.npz")).notes[0].startswith("1 series have a single observation")


JAPANESE_VOWELS = Path(os.environ.get("CHARAX_DATA", ".")) / "uea" / "JapaneseVowels_TRAIN.ts.gz"


@pytest.mark.skipif(not JAPANESE_VOWELS.exists(), reason="needs JapaneseVowels under $CHARAX_DATA/uea")
def test_a_data_set_of_the_uea_archive():
    data = load_series_dataset(str(JAPANESE_VOWELS), test=str(JAPANESE_VOWELS).replace("TRAIN", "TEST"))
    assert (len(data.classes), len(data.scaling.channels), len(data.test.lengths)) == (9, 12, 370)
    assert {data.train.lengths.min(), data.test.lengths.min()} <= {7, 8, 9}


@pytest.mark.parametrize(("name", "text"), [("a.ts.gz", TS), ("a.csv.gz", TABLE)])
@pytest.mark.parametrize("damage", [lambda content: content[:-12], lambda content: b"x" + content])
def test_a_damaged_archive_is_a_sentence_that_says_what_to_do(name, text, damage, tmp_path):
    (tmp_path / name).write_bytes(damage(gzip.compress(text.encode())))
    with pytest.raises(DataError, match=r"cannot be read: .*: it is damaged or incomplete; copy or download it again"):
        read_raw_series(tmp_path / name, REQUEST)


def test_files_and_arrays_beyond_their_limits_are_refused(tmp_path, monkeypatch):
    path = file_of("stamped", tmp_path)
    monkeypatch.setenv("CHARAX_MAX_BYTES", "50")
    with pytest.raises(DataError, match="CHARAX_MAX_BYTES"):
        read_raw_series(path, REQUEST)
    monkeypatch.delenv("CHARAX_MAX_BYTES")
    monkeypatch.setenv("CHARAX_MAX_CELLS", "100")
    with pytest.raises(DataError, match=r"as long as the longest.*CHARAX_MAX_CELLS"):
        load_series_dataset("turns")
