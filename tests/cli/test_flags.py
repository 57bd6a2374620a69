"""Every flag of every `charax train` command reaches the config that is stored, or is refused by name."""

import dataclasses
import types
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import pytest

import charax.tasks
from charax.cli import main
from charax.train import TASKS, AbstractConfig, to_json


class Started(BaseException):
    """The training would begin."""


@pytest.fixture
def parse(monkeypatch, tmp_path, capsys):
    """The config that a command would train, or what it says."""

    def begin(config: AbstractConfig, folder: object, **_: object):
        raise Started(config)

    def call(task: str, *flags: str) -> AbstractConfig | str:
        try:
            main(["train", task, "--output", str(tmp_path), *flags])
        except Started as started:
            return started.args[0]
        except SystemExit:
            pass
        return capsys.readouterr().err

    monkeypatch.setattr(charax.train, "train", begin)
    return call


def other_value(hint: Any, current: Any) -> list[str] | None:
    """Words for another value of a setting; None for a switch, which has none."""
    options, origin = get_args(hint), get_origin(hint)
    if origin in (Union, types.UnionType):
        return other_value(next(option for option in options if option is not type(None)), current)
    if origin is Literal:
        return [str(next(option for option in options if option != current))]
    if origin is tuple:
        return other_value(options[0], current[0] if current else None)
    if hint is bool:
        return None
    return [{int: "11", float: "0.75", str: "other"}[hint]]


def flags_of(config: Any) -> dict[str, list[str]]:
    """A flag with another value for every setting of a config, also of those inside it."""
    found: dict[str, list[str]] = {}
    hints = get_type_hints(type(config))
    for field in dataclasses.fields(config):
        value = getattr(config, field.name)
        if dataclasses.is_dataclass(value):
            found |= flags_of(value)
        else:
            words = other_value(hints[field.name], value)
            found[field.name] = [f"--{field.name.replace('_', '-')}", *(words or [])]
    return found


def leaves(config: Any) -> dict[str, Any]:
    nested = {name: value for name, value in to_json(config).items() if isinstance(value, dict)}
    plain = {name: value for name, value in to_json(config).items() if not isinstance(value, dict)}
    return plain | {name: value for part in nested.values() for name, value in part.items()}


@pytest.mark.parametrize("task", TASKS)
def test_every_flag_changes_the_config_or_is_refused_by_name(task, parse):
    default = parse(task)
    flags = flags_of(default)
    assert {"epochs", "learning_rate", "seed", "solver"} <= flags.keys()
    everything = parse(task, *(word for words in flags.values() for word in words))
    for name, words in flags.items():
        changed = parse(task, *words) if isinstance(everything, str) else everything  # some exclude each other
        if isinstance(changed, str):
            assert name in changed.replace("-", "_"), (words, changed)
        else:
            assert leaves(changed).get(name) != leaves(default).get(name), (
                words
            )  # one that was added later may be left out


def test_completion_of_a_shell_knows_commands_and_flags(tmp_path):
    with pytest.raises(SystemExit) as stop:
        main(["--tyro-write-completion", "bash", str(tmp_path / "charax")])
    assert stop.value.code in (0, None)
    text = (tmp_path / "charax").read_text()
    assert "classify" in text
    assert "--characteristic-dim" in text
