"""What a command costs and changes: no JAX for `--help`, and no settings of the process."""

import dataclasses
import os
import subprocess
import sys
from pathlib import Path

import jax
import pytest

from charax import __version__
from charax.cli import console_main, main
from charax.cli._metrics import METRICS
from charax.paper import EXPERIMENTS
from charax.train import TASKS

ROOT = Path(__file__).parents[2]

LIGHT = """
import sys
import charax
assert "jax" not in sys.modules, "import charax"
from charax.cli import main
for arguments in {commands!r}:
    print("###", *arguments)
    try:
        main([*arguments, "--help"])
    except SystemExit as ended:
        assert not ended.code, arguments
    heavy = [name for name in ("jax", "equinox", "sklearn", "matplotlib", "pandas") if name in sys.modules]
    assert not heavy, (arguments, heavy)
main(["--version"])
main(["data", "list", "--json"])
assert "jax" not in sys.modules, "data list"
"""


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "200"}
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, env=environment, cwd=ROOT)


def flags(config: object) -> list[str]:
    """The flags of a dataclass, also of those inside it."""
    names: list[str] = []
    for field in dataclasses.fields(config):  # pyright: ignore[reportArgumentType]
        value = getattr(config, field.name)
        prefix = "--no-" if value is True else "--"
        names += flags(value) if dataclasses.is_dataclass(value) else [prefix + field.name.replace("_", "-")]
    return names


def test_help_of_every_command_lists_every_flag_and_imports_neither_jax_nor_what_takes_as_long():
    tasks = {("train", name): config for name, config in TASKS.items()}
    experiments = {("reproduce", name): experiment for name, experiment in EXPERIMENTS.items()}
    groups = [(), ("train",), ("reproduce",), ("data",)]
    leaves = [("models",), ("launch",), ("data", "list"), ("data", "fetch"), ("select",)]
    runs = [("resume",), ("evaluate",), ("predict",), ("sample",), ("runs",), ("compare",), ("report",)]
    shown = run("-c", LIGHT.format(commands=[*groups, *leaves, *runs, *tasks, *experiments]))
    assert shown.returncode == 0, shown.stderr
    pages = {tuple(page.split("\n")[0].split()): page for page in shown.stdout.split("###")[1:]}
    for command, config in {**tasks, **experiments}.items():
        missing = [flag for flag in flags(config()) if f" {flag}" not in pages[command]]
        assert not missing, (command, missing)
        assert "--json" in pages[command]
        assert "--output" in pages[command]
    for task, metrics in METRICS.items():
        explained = [f"- {name.replace('_', ' ')}: {text}." in pages[("train", task)] for name, text in metrics.items()]
        assert all(explained), task
    assert all(name in pages[("train",)] for name in TASKS)
    assert "Metrics" not in pages[("train",)]  # a list of commands has a sentence for each
    assert all(name in pages[("reproduce",)] for name in EXPERIMENTS)


@pytest.mark.parametrize("module", ["charax", "charax.cli"])
def test_the_package_can_be_run_as_a_module(module):
    shown = run("-m", module, "--version")
    assert (shown.returncode, shown.stdout) == (0, f"charax {__version__}\n")


def test_bad_usage_of_the_process_is_its_exit_status():
    shown = run("-m", "charax", "evaluate", "nowhere", "--json")
    assert (shown.returncode, shown.stdout) == (2, "")
    assert shown.stderr.startswith("charax: ")


def test_a_reader_that_has_seen_enough_is_no_error():
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as closed:
        command = [sys.executable, "-m", "charax", "data", "list", "--json"]
        ended = subprocess.run(command, stdout=closed, stderr=subprocess.PIPE, text=True, cwd=ROOT)
    assert (ended.returncode, ended.stderr) == (141, "")


@pytest.fixture
def changes(monkeypatch) -> list[str]:
    """The settings of the process that are made."""
    made: list[str] = []
    for name in ("use_compilation_cache", "tune_process"):
        monkeypatch.setattr(f"charax.train.{name}", lambda name=name: made.append(name))
    monkeypatch.setattr("charax.train._process.keep_freed_memory", lambda: made.append("malloc"))
    return made


def test_calling_a_command_from_python_changes_no_setting_of_the_process(changes, capsys, tmp_path):
    config, environment = dict(jax.config.values), dict(os.environ)
    assert main(["models", "--json"]) == 0
    assert main(["evaluate", str(tmp_path)]) == 2
    assert changes == []
    assert dict(jax.config.values) == config
    assert dict(os.environ) == environment


def test_the_console_makes_them_before_the_command_and_only_if_there_is_one(changes, capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["charax", "models", "--json"])
    assert console_main() == 0
    assert changes == ["use_compilation_cache", "tune_process"]
    changes.clear()
    monkeypatch.setattr(sys, "argv", ["charax", "models", "--help"])
    with pytest.raises(SystemExit):
        console_main()
    assert "tune_process" not in changes
