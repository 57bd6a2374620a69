"""One dispatch: every function reads every kind of file that makes sense for it, and names them for the others."""

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from charax.data import (
    DataError,
    SeriesColumns,
    load_dataset,
    load_density_data,
    load_series,
    load_solution,
    read_forecast_times,
    read_inputs,
    read_points,
)
from charax.data.files._dispatch import KINDS

READERS: dict[str, Callable[[Path], object]] = {
    "load_dataset": lambda path: load_dataset(str(path)),
    "load_density_data": lambda path: load_density_data(str(path)),
    "read_inputs": lambda path: read_inputs(path, shape=(2, 2, 1), max_value=255.0),
    "load_solution": lambda path: load_solution(str(path)),
    "read_points": lambda path: read_points(path, ("x",)),
    "load_series": lambda path: load_series(str(path)),
    "read_forecast_times": lambda path: read_forecast_times(path, SeriesColumns("series", "time", ("u",))),
}
TABLES = ".npz, .csv, .tsv, .txt, .parquet or .xlsx"
TRAINING = ".npz, .npy, .csv, .tsv, .txt, .parquet, .xlsx, a .zip or .tar of images or a folder of images"
PREDICTION = ".npz, .csv, .tsv, .txt, .parquet, .xlsx, an image, a .zip or .tar of images or a folder of images"
ACCEPTED = {"load_dataset": TRAINING, "load_density_data": TRAINING, "read_inputs": PREDICTION}


@pytest.mark.parametrize("name", READERS)
def test_another_kind_of_file_is_refused_with_the_kinds_that_can_be_read(tmp_path, name):
    (tmp_path / "model.pkl").touch()
    message = f"model.pkl is not a kind of file that can be read here: give {ACCEPTED.get(name, TABLES)}"
    with pytest.raises(DataError, match=re.escape(message) + "$"):
        READERS[name](tmp_path / "model.pkl")


@pytest.mark.parametrize("name", [name for name in READERS if name != "read_inputs"])
def test_a_single_image_is_only_for_predictions(tmp_path, name):
    Image.new("L", (2, 2)).save(tmp_path / "one.png")
    with pytest.raises(DataError, match="not a kind of file"):
        READERS[name](tmp_path / "one.png")
    inputs, names = read_inputs(tmp_path / "one.png", shape=(2, 2, 1), max_value=255.0)
    assert (inputs.shape, names) == ((1, 2, 2, 1), ["one.png"])


@pytest.mark.parametrize("name", ["load_solution", "read_points", "load_series", "read_forecast_times"])
def test_a_folder_is_not_a_table_whatever_it_is_called(tmp_path, name):
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(DataError, match=r"folder\.csv is not a kind of file"):
        READERS[name](tmp_path / "folder.csv")


@pytest.mark.parametrize("name", READERS)
def test_a_path_that_does_not_exist_is_named(tmp_path, name):
    with pytest.raises(DataError, match=re.escape(str(tmp_path / "nothing.npz")) + " does not exist"):
        READERS[name](tmp_path / "nothing.npz")


def test_suffixes_may_be_in_capitals(tmp_path):
    np.savez(tmp_path / "a.npz", x=np.arange(20.0).reshape(10, 2))
    (tmp_path / "a.npz").rename(tmp_path / "a.NPZ")
    assert load_density_data(str(tmp_path / "a.NPZ")).shape == (2,)


def test_no_file_is_of_two_kinds(tmp_path):
    for name in ("a.npz", "a.csv", "a.csv.gz", "a.TSV", "a.txt", "a.parquet", "a.xlsx", "a.png", "a.JPG"):
        (tmp_path / name).touch()
    for path in (*tmp_path.iterdir(), tmp_path):
        assert sum(kind.matches(path) for kind in KINDS) == 1
