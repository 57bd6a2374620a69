"""Tables of runs: `charax runs`, `charax compare`, and reports of any task."""

import json
import shutil

import pytest

import charax
from charax.train import compare_configs, flatten_config, list_runs, load_run
from tests.train.line_task import LineConfig


@pytest.fixture
def folder(trained, tmp_path):
    """A finished run, an interrupted one deeper inside, and one that cannot be read."""
    shutil.copytree(trained, tmp_path / "runs" / "whole")
    part = shutil.copytree(trained, tmp_path / "runs" / "more" / "part")
    rows = (part / "metrics.jsonl").read_text().splitlines(keepends=True)
    (part / "metrics.jsonl").write_text("".join(rows[:2]) + '{"epoch": 3, "lo')
    broken = tmp_path / "runs" / "broken"
    broken.mkdir()
    (broken / "config.json").write_text("{")
    return tmp_path / "runs"


def test_runs_are_listed_finished_or_not(folder, ask):
    rows = {row["run"]: row for row in ask("runs", folder)["rows"]}
    assert list(rows) == [str(folder / name) for name in ("broken", "more/part", "whole")]
    whole, part = rows[str(folder / "whole")], rows[str(folder / "more/part")]
    summary = load_run(folder / "whole").summary()
    assert (whole["task"], whole["data"], whole["method"], whole["status"]) == ("line", "plane", "affine", "finished")
    assert (whole["metric"], whole["value"]) == ("loss", summary["loss"])
    assert (whole["parameters"], whole["seconds"]) == (summary["parameters"], summary["seconds"])
    assert (part["status"], part["value"]) == ("resumable after epoch 2 of 4", None)
    assert rows[str(folder / "broken")]["status"].startswith("unreadable: ")


def test_a_run_without_its_weights_is_listed_with_the_reason(folder, line_task):
    (folder / "whole" / "model.json").unlink()
    assert "model.json does not exist" in list_runs(folder)[-1].status


def test_an_empty_folder_has_no_runs_and_a_missing_one_is_named(ask, refuse, tmp_path):
    assert ask("runs", tmp_path) == {"rows": []}
    assert "nowhere is not a folder" in refuse("runs", tmp_path / "nowhere")


def test_the_table_is_for_people(folder, line_task, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    assert charax.cli.main(["runs", str(folder)]) == 0
    out = capsys.readouterr().out
    assert "more/part" in out
    assert "resumable after epoch 2 of 4" in out
    assert "method" in out
    monkeypatch.setenv("COLUMNS", "60")
    assert charax.cli.main(["runs", str(folder)]) == 0
    narrow = capsys.readouterr().out
    assert "more/part" in narrow
    assert narrow.endswith("A wider terminal, or --json, shows the task, data and method, too.\n")
    monkeypatch.setenv("COLUMNS", "80")  # narrower than the paths of the runs
    assert charax.cli.main(["compare", str(folder / "whole"), str(folder / "whole")]) == 0
    assert "parameters" in capsys.readouterr().out


def test_runs_are_compared_by_settings_that_differ_and_metrics(trained, ask, refuse, tmp_path):
    flags = ["--method", "linear", "--epochs", 2, "--output", tmp_path, "--name", "other"]
    ask("train", "line", *flags)
    one, two = ask("compare", trained, tmp_path / "other")["rows"]
    assert (one["method"], two["method"]) == ("affine", "linear")
    assert (one["loop.epochs"], two["loop.epochs"]) == (4, 2)
    assert "loop.batch_size" not in one
    assert (one["parameters"], two["parameters"]) == (3, 2)
    assert "at least two runs" in refuse("compare", trained)


def test_settings_of_different_tasks_are_compared(line_task):
    one, two = compare_configs([LineConfig(), charax.PDEConfig()])
    assert (one["task"], two["task"]) == ("line", "pde")
    assert (one["slopes"], two["slopes"]) == ([2.0, -1.0], None)
    assert flatten_config(LineConfig())["optimizer.schedule"] == "constant"


def test_a_report_has_settings_versions_metrics_and_curves_of_every_run(trained, ask, refuse, tmp_path):
    copy = shutil.copytree(trained, tmp_path / "copy")
    answer = ask("report", trained, copy, "--output", tmp_path / "new" / "report.html")
    assert answer == {"output": str(tmp_path / "new" / "report.html"), "runs": [str(trained), str(copy)]}
    page = (tmp_path / "new" / "report.html").read_text()
    own = page[page.index("<main>") : page.index("</main>")]
    stored = json.loads((trained / "config.json").read_text())
    assert stored["versions"].keys() >= {"python", "jax", "device"}
    for words in ("Metrics", "Learning curves", "What was trained", stored["data_digest"], "optimizer.schedule"):
        assert words in own
    assert f"jax {stored['versions']['jax']}" in own
    assert own.count("<h3>copy</h3>") == 1
    assert own.count("<small>") == 2  # the interval of the test loss of each run
    assert "is not a run" in refuse("report", tmp_path / "nowhere")
    assert "at least one run" in refuse("report")
