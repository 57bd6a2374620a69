"""Odd files of every kind, made by Hypothesis with fixed seeds, are read or refused in one sentence."""

import gzip
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import charax  # noqa: F401, registers the tasks
from charax.train import TASKS, load_model, save_config, save_model
from tests.fuzz import containers
from tests.fuzz.checks import check
from tests.fuzz.runs import CHANGES, MODEL, TENSORS, a_run, change_json, change_rows, change_weights, stored_config
from tests.fuzz.targets import (
    ARCHIVES,
    COLUMNS,
    IDX,
    ODD_VALUES,
    PICTURES,
    REPEATED,
    SHEETS,
    TABLES,
    TARS,
    Target,
    a_file,
    a_folder_of_images,
    a_source,
    damaged,
)
from tests.train.line_task import LineConfig, LineSpec
from tests.train.registration import registered_line


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> Iterator[Path]:
    """The folder of a small finished run."""
    folder = tmp_path_factory.mktemp("run")
    with registered_line():
        save_config(folder, LineConfig())
        save_model(folder, LineSpec(2), LineConfig().build_task(LineSpec(2)).build(jax.random.key(0)))
        epoch = {"epoch": 1, "step": 1, "loss": 1.0, "validation_loss": 1.0, "skipped": 0, "seconds": 0.1}
        rows = [epoch, {"test_loss": 0.1, "best_epoch": 1, "seconds": 0.1}]
        (folder / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        MODEL[:] = [folder]
        yield folder


TARGETS: dict[str, Target] = {
    "damaged npz": a_file("own.npz", damaged(containers.npz), 30),
    "npz of odd headers": a_file("own.npz", ARCHIVES, 40),
    "npz of odd values": a_file("own.npz", ODD_VALUES, 50),
    "damaged csv": a_file("own.csv", damaged(containers.csv), 40),
    "csv of odd cells": a_file("own.csv", TABLES, 30),
    "csv of odd rows": a_file("own.csv", REPEATED, 50),
    "gzip of odd cells": a_file("own.csv.gz", st.builds(gzip.compress, TABLES), 10),
    "damaged gzip": a_file("own.csv.gz", damaged(lambda: gzip.compress(containers.csv())), 10),
    "damaged parquet": a_file("own.parquet", damaged(containers.parquet), 25),
    "parquet of odd types": a_file("own.parquet", COLUMNS, 25),
    "damaged xlsx": a_file("own.xlsx", damaged(containers.xlsx), 15),
    "xlsx of odd sheets": a_file("own.xlsx", SHEETS, 25),
    "damaged image": a_folder_of_images(damaged(containers.png), 20),
    "image of odd chunks": a_folder_of_images(PICTURES, 30),
    "damaged mnist": a_source("mnist", "train-images-idx3-ubyte.gz", IDX, 15),
    "damaged cifar10": a_source("cifar10", "cifar-10-binary.tar.gz", TARS, 15),
    "config of any task": Target(st.tuples(st.sampled_from(list(TASKS)), CHANGES), stored_config, 30),
    "config of a run": a_run(lambda run, edits: change_json(run / "config.json", edits), CHANGES, 10),
    "description": a_run(lambda run, edits: change_json(run / "model.json", edits), CHANGES, 15),
    "metrics": a_run(change_rows, CHANGES, 15),
    "weights": a_run(change_weights, TENSORS, 10),
}
FACTOR = 20
"""How many times more cases the slow tests have."""


def fuzz(name: str, cases: int) -> int:
    """Read so many odd files; returns how many were."""
    target, read = TARGETS[name], []

    @settings(
        max_examples=cases, derandomize=True, database=None, deadline=None, suppress_health_check=list(HealthCheck)
    )
    @given(drawn=target.make)
    def run(drawn: Any) -> None:
        with tempfile.TemporaryDirectory() as folder:
            check(*target.write(Path(folder), drawn))
        read.append(drawn)

    run()  # pyright: ignore[reportCallIssue]
    return len(read)


def test_there_are_500_cases_here_and_10000_in_the_slow_tests():
    assert sum(target.cases for target in TARGETS.values()) >= 500
    assert FACTOR * sum(target.cases for target in TARGETS.values()) >= 10_000


@pytest.mark.parametrize("name", TARGETS)
def test_an_odd_file_is_read_or_refused_in_one_sentence(model, name):
    assert fuzz(name, TARGETS[name].cases) >= 0.8 * TARGETS[name].cases


@pytest.mark.slow
@pytest.mark.parametrize("name", TARGETS)
def test_many_odd_files_are_read_or_refused_in_one_sentence(model, name):
    assert fuzz(name, FACTOR * TARGETS[name].cases) >= 0.5 * FACTOR * TARGETS[name].cases


def test_a_bug_would_be_seen(tmp_path):
    with pytest.raises(KeyError):
        check(lambda: {}["x"], "")
    with pytest.raises(AssertionError, match="two\nlines"):
        check(lambda: load_model(f"{tmp_path}/two\nlines"), "")
    with pytest.raises(AssertionError):
        check(lambda: load_model(tmp_path), "another file")
