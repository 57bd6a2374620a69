import csv
import json
import shutil

import numpy as np
import pytest
from PIL import Image
from sklearn.datasets import load_digits

from charax.cli import main


def ask(capsys, *arguments) -> dict:
    assert main([*map(str, arguments), "--json"]) == 0
    (line,) = capsys.readouterr().out.splitlines()
    return json.loads(line)


def test_a_run_leaves_everything_in_its_folder(run):
    names = {path.name for path in run.iterdir()}
    assert names == {"config.json", "metrics.jsonl", "checkpoints", "model.safetensors", "model.json", "plots"}
    assert {path.name for path in (run / "plots").iterdir()} == {"training.png", "characteristics.png"}


def test_resuming_a_finished_run_repeats_its_result(run, capsys, metrics_of):
    before = metrics_of(run)
    answer = ask(capsys, "resume", run)
    assert answer["accuracy"] == before[-1]["test_accuracy"] > 0.7
    assert metrics_of(run) == before


def test_evaluate_agrees_with_training(run, capsys, metrics_of):
    answer = ask(capsys, "evaluate", run)
    assert answer["accuracy"] == metrics_of(run)[-1]["test_accuracy"]
    assert answer["nfe"] == 4  # two midpoint steps


def test_predict_writes_classes_and_probabilities_without_the_training_data(run, tmp_path, capsys):
    moved = tmp_path / "moved"
    shutil.copytree(run, moved)
    (moved / "config.json").unlink()  # names the data; a model needs neither
    inputs = tmp_path / "new.npz"
    np.savez(inputs, x=np.array([[-1.0, -1.0], [3.0, 3.0], [2.5, 3.5]], np.float32))
    output = tmp_path / "predictions.csv"
    answer = ask(capsys, "predict", moved, inputs, "--output", output)
    assert answer == {"output": str(output), "predictions": 3}
    with output.open() as file:
        header, *rows = csv.reader(file)
    assert header == ["input", "class", "probability", "probability of 0", "probability of 1"]
    assert [row[:2] for row in rows] == [["0", "0"], ["1", "1"], ["2", "1"]]
    assert all(abs(sum(map(float, row[3:])) - 1) < 1e-5 for row in rows)
    assert all(row[2] == max(row[3:], key=float) for row in rows)


@pytest.mark.slow
def test_predict_reads_a_single_picture_and_names_one_of_the_wrong_size(tmp_path, capsys):
    ask(capsys, "train", "classify", "--epochs", "3", "--output", tmp_path, "--name", "digits")
    pixels = (load_digits().images[3] / 16 * 255).astype(np.uint8)
    Image.fromarray(pixels).save(tmp_path / "three.png")
    assert (
        main(["predict", str(tmp_path / "digits"), str(tmp_path / "three.png"), "--output", str(tmp_path / "p.csv")])
        == 0
    )
    shown = capsys.readouterr().out
    assert "three.png" in shown
    assert "…" not in shown
    with (tmp_path / "p.csv").open() as file:
        _, row = csv.reader(file)
    assert row[:2] == ["three.png", "3"]
    Image.fromarray(pixels).resize((16, 16)).save(tmp_path / "large.png")
    assert main(["predict", str(tmp_path / "digits"), str(tmp_path / "large.png")]) == 2
    assert "8 x 8" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["train", "classify", "--data", "nowhere.csv"], "nowhere.csv"),
        (["train", "classify", "--steps", "2", "--rtol", "0.1"], "exclude"),
        (["train", "classify", "--preset", "paper"], "no image classifier for 'digits'"),
        (["train", "classify", "--width", "0"], "width"),
        (["resume", "nowhere"], "is no run"),
        (["evaluate", "nowhere"], "is no run"),
        (["predict", "nowhere", "x.npz"], "is no run"),
    ],
)
def test_bad_input_is_a_sentence_and_status_2(arguments, words, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == 2
    captured = capsys.readouterr()
    assert words in captured.err.replace("\n", " ")
    assert captured.out == ""
    assert not list(tmp_path.iterdir())


def test_a_folder_that_is_in_use_is_not_overwritten(run, command, capsys):
    assert main(command(run)) == 2
    assert "charax resume" in capsys.readouterr().err
