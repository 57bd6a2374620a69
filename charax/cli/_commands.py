"""The tree of commands. Only the part of it that the arguments name is built, which keeps `--help` fast."""

import inspect
import re
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial, wraps
from typing import Any, TypeVar

import tyro
from tyro.extras import SubcommandApp

from charax._version import __version__
from charax.cli import _catalogue, _info, _launch, _reproduce, _runs, _train
from charax.cli._launch import split_command
from charax.data._errors import DataWarning
from charax.paper import EXPERIMENTS
from charax.train import TASKS

T = TypeVar("T")
Build = Callable[[], Callable[..., None]]
"""Makes a command."""
_FENCED = re.compile(r"^\s*```.*?^\s*```", re.DOTALL | re.MULTILINE)
"""An example in a docstring."""


def parse_and_run(arguments: Sequence[str], prepare: Callable[[], None] | None = None) -> None:
    """Parse the arguments, then prepare, then run the command that they name."""
    if list(arguments) == ["--version"]:
        print(f"charax {__version__}")
        return
    arguments, launched = split_command(arguments)
    first, second = (*arguments, "", "")[:2]
    app = SubcommandApp()
    for name, command in _only(_tree(launched), first).items():
        if callable(command):
            app.command(_after(prepare, command()), name=name)  # pyright: ignore[reportCallIssue, reportArgumentType]
            continue
        group = SubcommandApp()
        for leaf, build in _only(command, second).items():
            built = build() if second in command else _without_details(build())
            group.command(_after(prepare, built), name=leaf)  # pyright: ignore[reportCallIssue, reportArgumentType]
        app.command(group, name=name)
    with _usage_hint(_command_of(arguments)), _plain_help(), _plain_messages(), _plain_warnings():
        app.cli(
            prog="charax",
            description="Characteristic Neural ODEs.",
            args=list(arguments),
            config=(tyro.conf.FlagCreatePairsOff, tyro.conf.OmitArgPrefixes),
        )


def _command_of(arguments: Sequence[str]) -> str:
    """The words of the arguments that name a command."""
    commands: Any = _tree(())
    words = ["charax"]
    for word in arguments[:2]:
        if not isinstance(commands, Mapping) or word not in commands:
            break
        words.append(word)
        commands = commands[word]
    return " ".join(words)


@contextmanager
def _usage_hint(command: str) -> Iterator[None]:
    """Name the help of this command below an error of usage, where tyro names that of the whole program."""
    try:
        yield
    except SystemExit as stop:
        if stop.code == 2 and command != "charax":
            print(f"The options of this command: {command} --help", file=sys.stderr)
        raise


@contextmanager
def _plain_help() -> Iterator[None]:
    """Leave the examples of docstrings out of `--help`, and wrap its text where the terminal ends, not the source."""
    try:
        from tyro import _strings  # not public; without it there are the examples

        before = _strings.remove_single_line_breaks
    except (ImportError, AttributeError):
        yield
        return

    def unwrap(text: str) -> str:
        return before(inspect.cleandoc(_FENCED.sub("", text)))

    _strings.remove_single_line_breaks = unwrap
    try:
        yield
    finally:
        _strings.remove_single_line_breaks = before


@contextmanager
def _plain_messages() -> Iterator[None]:
    """Raise what a config refuses as it is, where tyro would print it in a box, as an error of an internal name."""
    try:
        from tyro._errors import InstantiationFailure, on_parse_error  # not public; without it there is the box
    except ImportError:
        yield
        return

    def refuse(event: object) -> None:
        if isinstance(event, InstantiationFailure) and event.argument is None:
            raise ValueError(event.message)

    with on_parse_error(refuse):
        yield


@contextmanager
def _plain_warnings() -> Iterator[None]:
    """Print what a reader changed about the data as one line, without the place in the code."""

    def show(message: Warning | str, category: type[Warning], *place: Any) -> None:
        if issubclass(category, DataWarning):
            print(message, file=sys.stderr)
        else:
            before(message, category, *place)

    with warnings.catch_warnings():
        warnings.simplefilter("always", DataWarning)
        before, warnings.showwarning = warnings.showwarning, show
        yield


def _after(prepare: Callable[[], None] | None, command: Callable[..., None]) -> Callable[..., None]:
    if prepare is None:
        return command

    @wraps(command)
    def prepared(*args: Any, **kwargs: Any) -> None:
        prepare()
        command(*args, **kwargs)

    return prepared


def _without_details(command: Callable[..., None]) -> Callable[..., None]:
    """The command with the first paragraph of its help, for a list of commands."""

    @wraps(command)
    def brief(*args: Any, **kwargs: Any) -> None:
        command(*args, **kwargs)

    brief.__doc__ = (command.__doc__ or "").split("\n\n")[0]
    return brief


def _tree(launched: Sequence[str]) -> Mapping[str, Build | Mapping[str, Build]]:
    return {
        "info": lambda: _info.info,
        "models": lambda: _catalogue.list_models,
        "data": {"list": lambda: _catalogue.list_datasets, "fetch": lambda: _catalogue.fetch_dataset},
        "train": {name: partial(_train.train_command, config) for name, config in TASKS.items()},
        "launch": partial(_launch.launch_command, launched),
        "resume": lambda: _train.resume,
        "evaluate": lambda: _train.evaluate,
        "predict": lambda: _train.predict,
        "sample": lambda: _train.sample,
        "export": lambda: _train.export,
        "runs": lambda: _runs.list_runs,
        "compare": lambda: _runs.compare,
        "report": lambda: _runs.report,
        "reproduce": {name: partial(_reproduce.reproduce_command, each) for name, each in EXPERIMENTS.items()},
        "select": lambda: _reproduce.select_command,
    }


def _only(commands: Mapping[str, T], name: str) -> Mapping[str, T]:
    return {name: commands[name]} if name in commands else commands
