"""The task of `line_task`, trained; and real processes to kill."""

import functools
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from charax.cli import main
from charax.train import Splits
from tests.train.commands import answer_of, reason_of, train_line
from tests.train.line_task import LineConfig, LineTask
from tests.train.registration import registered_line

ROOT = Path(__file__).parents[2]


class Line(NamedTuple):
    """A task and its data."""

    task: LineTask
    splits: Splits


@pytest.fixture
def line() -> Line:
    config = LineConfig()
    data = config.load_data()
    return Line(config.build_task(data.spec), data.splits)


@pytest.fixture
def line_task() -> Iterator[None]:
    """The task `line` is registered, for one test."""
    with registered_line():
        yield


@pytest.fixture(scope="session")
def command() -> Callable[[Path], list[str]]:
    """The arguments of `charax` that train a line in a folder."""
    return train_line


@pytest.fixture(scope="session")
def trained(tmp_path_factory, command) -> Path:
    """The folder of a finished run of that command, which nothing interrupted."""
    folder = tmp_path_factory.mktemp("runs") / "whole"
    with registered_line():
        assert main(command(folder)) == 0
    return folder


@pytest.fixture
def ask(capsys, line_task) -> Callable[..., dict[str, Any]]:
    """The answer of a command that succeeds."""
    return functools.partial(answer_of, capsys)


@pytest.fixture
def refuse(capsys, line_task) -> Callable[..., str]:
    """The sentence of a command that fails."""
    return functools.partial(reason_of, capsys)


@pytest.fixture
def start(tmp_path):
    """Start `charax …` with the task `line` in a process of its own; returns it running."""

    def start(*arguments: object, **variables: str) -> subprocess.Popen[str]:
        environment = {**os.environ, "PYTHONPATH": str(ROOT), **variables}
        return subprocess.Popen(
            [sys.executable, "-m", "tests.train.line_task", *map(str, arguments)],
            cwd=tmp_path,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    return start


def without_seconds(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{name: value for name, value in row.items() if name != "seconds"} for row in rows]


@pytest.fixture
def metrics_of() -> Callable[[Path], list[dict[str, Any]]]:
    """The metrics in a run's folder, without wall-clock times."""
    return lambda folder: without_seconds(
        [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    )
