"""Commands of `charax`, called in this process: what they answer, and why they refuse."""

import json
from pathlib import Path
from typing import Any

from charax.cli import main
from charax.cli._metrics import METRICS


def train_line(folder: Path) -> list[str]:
    """The arguments of `charax` that train a line in a folder."""
    flags = "--epochs 4 --checkpoint-steps 3 --ema 0.9 --weight-decay 0.01 --json"
    return ["train", "line", *flags.split(), "--output", str(folder.parent), "--name", folder.name]


def answer_of(capsys, *arguments: object) -> dict[str, Any]:
    """The answer of a command that succeeds: exactly one JSON object on standard output."""
    capsys.readouterr()
    assert main([*map(str, arguments), "--json"]) == 0
    (only,) = capsys.readouterr().out.splitlines()
    return json.loads(only)


def reason_of(capsys, *arguments: object, status: int = 2) -> str:
    """The sentence of a command that fails with a status and prints nothing on standard output."""
    capsys.readouterr()
    is_usage = False
    try:
        ended = main(list(map(str, arguments)))
    except SystemExit as stopped:  # a flag with a value that its config refuses
        ended, is_usage = stopped.code, True
    out, err = capsys.readouterr()
    assert ended == status, err
    assert out == ""
    assert "Traceback" not in err
    if is_usage:  # a box around the sentence
        return " ".join(word for word in err.split() if word not in "│|")
    assert err.splitlines()[-1].startswith("charax: ")
    return err.splitlines()[-1]


def assert_explained(task: str, summary: dict[str, Any]) -> None:
    """`charax train TASK --help` explains every number that a run is summarized by."""
    names = {name.removeprefix("validation_") for name, value in summary.items() if isinstance(value, int | float)}
    assert names <= {*METRICS[task], "parameters", "seconds"}
