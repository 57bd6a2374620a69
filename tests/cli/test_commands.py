"""The command line as a user meets it: answers, exit status, messages."""

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from charax import __version__
from charax.cli import main
from charax.cli._print import format_number, print_answer
from charax.train import TASKS, Predictions

LONG = "a folder with a name that is longer than a line of the terminal"


@pytest.fixture
def narrow_terminal(monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "30")


def answer_of(capsys) -> dict:
    (line,) = capsys.readouterr().out.splitlines()
    return json.loads(line)


def test_models_prints_one_json_object_with_sixteen_rows(capsys):
    assert main(["models", "--json"]) == 0
    rows = answer_of(capsys)["rows"]
    assert len(rows) == 16
    assert set(rows[0]) == {"dataset", "method", "parameters", "parameters_paper"}
    assert {row["dataset"] for row in rows} == {"mnist", "cifar10"}


def test_models_prints_a_table_for_people(capsys):
    assert main(["models"]) == 0
    out = capsys.readouterr().out
    assert "83,041" in out
    assert "equal" in out


def test_data_list_names_every_data_set(capsys):
    assert main(["data", "list", "--json"]) == 0
    rows = answer_of(capsys)["rows"]
    assert {"digits", "mnist", "cifar10", "svhn"} <= {row["dataset"] for row in rows}
    assert all(row["description"] for row in rows)


def test_data_fetch_tells_the_folder(capsys, monkeypatch, narrow_terminal):
    monkeypatch.setattr("charax.data.fetch", lambda name: Path(LONG) / name)
    assert main(["data", "fetch", "mnist", "--json"]) == 0
    assert answer_of(capsys) == {"dataset": "mnist", "folder": f"{LONG}/mnist"}
    assert main(["data", "fetch", "mnist"]) == 0
    assert f"{LONG}/mnist\n" in capsys.readouterr().out


def test_version(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"charax {__version__}\n"


@pytest.mark.parametrize(
    "arguments",
    [
        "",
        "nonsense",
        "models --nope",
        "reproduce",
        "reproduce table9",
        "reproduce table1 --budget enormous",
        "train",
        "train nonsense",
        "train classify --epochs many",
        "train classify --method resnet",
        "evaluate",
        "evaluate run --split all",
        "predict run",
        "data fetch",
    ],
)
def test_bad_usage_ends_with_status_2_and_an_empty_standard_output(arguments, capsys):
    with pytest.raises(SystemExit) as ended:
        main(arguments.split())
    assert ended.value.code == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err


@pytest.mark.parametrize("command", ["train classify", "train pde", "evaluate", "reproduce table1"])
def test_bad_usage_names_the_help_of_its_command(command, capsys):
    with pytest.raises(SystemExit):
        main([*command.split(), "--nonsense"])
    assert capsys.readouterr().err.splitlines()[-1] == f"The options of this command: charax {command} --help"


@pytest.mark.parametrize("terminal", [30, 59, 60, 200])
def test_tables_break_no_title_inside_a_word_and_no_other_word_without_need(terminal, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(terminal))
    columns = ["class", "predicted as versicolor", "predicted as no answer", "parameters"]
    name = "a-name-without-any-spaces"
    print_answer({}, columns, [["versicolor", "1 [0.9287, 1]", name, "5"]], as_json=False)
    lines = capsys.readouterr().out.splitlines()
    titles = " ".join(lines[1 : next(i for i, line in enumerate(lines) if line.startswith("┡"))]).split("┃")
    words = {word for title in titles for word in title.split()}
    assert words == {word for column in columns for word in column.split()}
    # With the lines between the columns, the longest words need 10 + 10 + 25 + 10 + 5, those of the titles 39.
    assert (name in "".join(lines)) == (terminal >= 60)
    assert max(map(len, lines)) <= max(terminal, 39)


def test_tables_break_no_number(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "20")
    numbers = ["12,345,678", "99.53%", "1.25e-05", "-1365"]
    print_answer({}, ["n", "a", "t", "s"], [numbers, ["49.60% ± 26.74%", "-", "a long text", "1"]], as_json=False)
    words = capsys.readouterr().out.replace("│", " ").split()
    assert {*numbers, "49.60%", "26.74%"} <= set(words)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("evaluate nowhere", "nowhere"),
        ("resume nowhere", "nowhere"),
        ("predict nowhere x.csv", "nowhere"),
        ("sample nowhere", "nowhere"),
        ("sample nowhere --output s.png", "--output the name of an .npz file"),
        ("sample nowhere --output s.csv", "--output the name of an .npz file"),
        ("data fetch imagenet", "imagenet"),
        ("train classify --data nowhere.csv", "nowhere.csv"),
        ("train density --points 1", "points must be"),
        ("train pde --width 0", "width must be"),
        ("train forecast --damping 0", "damping must be"),
        ("select --k 0", "at least 1"),
        ("reproduce tabular --seeds 0", "seeds must be"),
    ],
)
def test_bad_input_is_a_sentence_on_standard_error_and_status_2(arguments, message, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main([*arguments.split(), "--json"]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("charax: ")
    assert message in captured.err
    assert "Traceback" not in captured.err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("experiment", ["propositions", "tabular", "separations", "table1"])
def test_an_output_that_is_a_file_is_named_before_the_work(experiment, capsys, tmp_path, monkeypatch):
    def work(*_, **__):
        raise AssertionError("the work has begun")

    occupied = tmp_path / "file"
    occupied.write_text("not a folder")
    for place in ("train.fit", "train._training.fit", "paper._separation_training.learn", "paper.tabular.evaluate"):
        monkeypatch.setattr(f"charax.{place}", work)
    methods = ["--method", "c-node"] if experiment == "table1" else []
    assert main(["reproduce", experiment, *methods, "--output", str(occupied)]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert str(occupied) in captured.err
    assert "Traceback" not in captured.err


@pytest.mark.parametrize("name", ["../..", "a/b", "/a", "..", ".", ""])
@pytest.mark.parametrize("task", TASKS)
def test_a_name_that_leads_elsewhere_is_refused_before_anything_is_written(task, name, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["train", task, "--name", name]) == 2
    assert "--name must be a plain name" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("error", "status", "message"),
    [
        (ValueError("the file has no header"), 2, "the file has no header"),
        (FileNotFoundError(2, "No such file", "x.csv"), 2, "x.csv"),
        (RuntimeError("the solve failed"), 1, "the solve failed"),
        (ModuleNotFoundError("No module named 'pandas'"), 1, "pip install"),
        (KeyboardInterrupt(), 130, "interrupted"),
    ],
)
def test_the_exit_status_tells_bad_input_from_failure(error, status, message, capsys, monkeypatch):
    def fail(name):
        raise error

    monkeypatch.setattr("charax.data.fetch", fail)
    assert main(["data", "fetch", "mnist", "--json"]) == status
    captured = capsys.readouterr()
    assert captured.out == ""
    assert message in captured.err
    assert "Traceback" not in captured.err


def test_a_run_is_named_by_its_folder_in_one_line(capsys, monkeypatch, tmp_path, narrow_terminal):
    folder = tmp_path / LONG / "mine"
    run = SimpleNamespace(
        folder=folder,
        summary=lambda: {"run": str(folder), "accuracy": 0.5, "nfe": None, "parameters": 1234},
        plot=lambda: [folder / "training.png", folder / "characteristics.png"],
        advice="",
    )
    trained: list[Path] = []
    monkeypatch.setattr("charax.train.train", lambda config, folder, progress: trained.append(folder) or run)
    command = ["train", "classify", "--output", str(tmp_path / LONG), "--name", "mine"]
    assert main(command) == 0
    out = capsys.readouterr().out.splitlines()
    assert out[0] == f"Run {folder}"
    assert out[-1] == f"Figures: {folder}/training.png, {folder}/characteristics.png"
    assert [word in "\n".join(out) for word in ("0.5000", "1,234", "-")] == [True] * 3
    assert main([*command, "--json"]) == 0
    assert answer_of(capsys) == run.summary()
    assert trained == [folder, folder]


def test_predictions_whose_columns_need_no_explanation_have_no_heading_for_it(capsys, monkeypatch, tmp_path):
    monkeypatch.setattr("charax.train.predict", lambda *_, **__: Predictions(["row", "class"], [["1", "setosa"]]))
    assert main(["predict", str(tmp_path), "new.csv", "--output", str(tmp_path / "out.csv")]) == 0
    shown = capsys.readouterr().out
    assert "setosa" in shown
    assert "Columns:" not in shown


def test_messages_are_not_folded(capsys, narrow_terminal):
    assert main(["evaluate", LONG]) == 2
    assert LONG in capsys.readouterr().err
    assert main(["models"]) == 0
    out = capsys.readouterr().out
    assert "Image classifiers of the paper's Table 1\n" in out
    assert "SVHN's models have CIFAR-10's layers. The second-order ones are truly second order here.\n" in out


def test_cells_are_shown_as_they_are_and_never_cut(capsys, narrow_terminal):
    print_answer({}, ["[red]class", "share"], [["[/x]", "7"], ["x" * 40, ":smile:"]], as_json=False)
    out = capsys.readouterr().out
    assert "[red]class" in out
    assert "[/x]" in out
    assert ":smile:" in out
    assert out.count("x") >= 41


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "-"),
        (1234567, "1,234,567"),
        (2.0, "2"),
        (0.5, "0.5000"),
        (0.00123456, "0.00123"),
        (-12.34567, "-12.3457"),
    ],
)
def test_numbers_have_the_digits_that_matter(value, text):
    assert format_number(value) == text
