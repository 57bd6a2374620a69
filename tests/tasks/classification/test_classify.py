"""`charax train classify`, and what can be done with its run."""

import csv
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from sklearn.datasets import load_digits

from charax.cli import main
from charax.tasks.classification import ClassificationConfig
from charax.train import resume, train
from tests.train.commands import assert_explained


def metrics_of(folder: Path) -> list[dict]:
    rows = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return [{name: value for name, value in row.items() if name != "seconds"} for row in rows]


def test_a_run_leaves_everything_in_its_folder(classifier):
    names = {path.name for path in classifier.iterdir()}
    assert names == {"config.json", "metrics.jsonl", "checkpoints", "model.safetensors", "model.json", "plots"}
    assert {path.name for path in (classifier / "plots").iterdir()} == {"training.png", "characteristics.png"}


def test_it_learns_and_resuming_it_repeats_its_result(classifier):
    before = metrics_of(classifier)
    answer = resume(classifier).summary()
    assert_explained("classify", answer)
    assert answer.keys() >= {"run", "accuracy", "validation_accuracy", "nfe", "parameters", "seconds"}
    assert answer["accuracy"] == before[-1]["test_accuracy"] > 0.8
    assert metrics_of(classifier) == before


def test_evaluate_agrees_with_training(classifier, ask):
    answer = ask("evaluate", classifier)
    assert answer["accuracy"] == metrics_of(classifier)[-1]["test_accuracy"]
    assert answer["nfe"] == 3  # as many Euler steps


def test_an_interrupted_run_ends_as_one_that_was_not(classifier, tmp_path):
    folder = shutil.copytree(classifier, tmp_path / "run")
    rows = (folder / "metrics.jsonl").read_text().splitlines(keepends=True)
    (folder / "metrics.jsonl").write_text("".join(rows[:1]))
    later = sorted((folder / "checkpoints").iterdir(), key=lambda path: int(path.name))[1:]
    for path in (*later, folder / "model.json", folder / "model.safetensors"):
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    resume(folder)
    assert metrics_of(folder) == metrics_of(classifier)
    assert (folder / "model.safetensors").read_bytes() == (classifier / "model.safetensors").read_bytes()


def test_predict_writes_classes_and_probabilities_without_the_training_data(classifier, tmp_path, ask, monkeypatch):
    moved = shutil.copytree(classifier, tmp_path / "moved")
    monkeypatch.setattr(ClassificationConfig, "load_data", lambda self: pytest.fail("the data are not needed"))
    inputs, output = tmp_path / "new.npz", tmp_path / "predictions.csv"
    np.savez(inputs, x=np.array([[-1.0, -1.0], [3.0, 3.0], [2.5, 3.5]], np.float32))
    answer = ask("predict", moved, inputs, "--output", output)
    assert (answer["output"], answer["predictions"], answer.get("failed", 0)) == (str(output), 3, 0)
    with output.open() as file:
        header, *rows = csv.reader(file)
    assert header == ["input", "class", "probability", "probability of 0", "probability of 1"]
    assert [row[:2] for row in rows] == [["0", "0"], ["1", "1"], ["2", "1"]]
    assert all(abs(sum(map(float, row[3:])) - 1) < 1e-5 for row in rows)
    assert all(row[2] == max(row[3:], key=float) for row in rows)


def test_evaluate_on_new_data_counts_right_and_wrong_per_class(classifier, tmp_path, ask, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    x = np.array([[-1.0, -1.0], [3.0, 3.0], [2.5, 3.5], [-1.5, -0.5]], np.float32)
    np.savez(tmp_path / "new.npz", x=x, y=np.array([0, 1, 0, 0]))  # the third is far on the other side
    answer = ask("evaluate", classifier, "--data", tmp_path / "new.npz")
    assert (answer["accuracy"], answer["samples"], answer["data"]) == (0.75, 4, str(tmp_path / "new.npz"))
    assert answer["accuracy_interval"] == pytest.approx([0.3006, 0.9544], abs=1e-4)  # Wilson's, of 3 in 4
    first, second = answer["classes"]
    assert first["predicted_as"] == {"0": 2, "1": 1, "no answer": 0}
    assert (first["precision"], first["recall"]) == (1.0, pytest.approx(2 / 3))
    assert (second["precision"], second["recall"], second["samples"]) == (0.5, 1.0, 1)
    assert main(["evaluate", str(classifier), "--data", str(tmp_path / "new.npz")]) == 0
    shown = capsys.readouterr().out
    assert "0.7500 [0.3006, 0.9544]" in shown
    assert "predicted as 1" in shown


def test_evaluate_names_a_class_that_the_model_does_not_know(classifier, tmp_path, refuse):
    np.savez(tmp_path / "new.npz", x=np.zeros((1, 2), np.float32), y=np.array([7]))
    assert "does not know the class '7'; it knows 0, 1" in refuse(
        "evaluate", classifier, "--data", tmp_path / "new.npz"
    )
    both = ("evaluate", classifier, "--data", tmp_path / "new.npz", "--split", "train")
    assert "exclude each other" in refuse(*both)


def test_evaluate_refuses_data_that_have_changed(classifier, blobs, refuse):
    original = blobs.read_bytes()
    with np.load(blobs) as arrays:
        changed = {"x": arrays["x"] + 1, "y": arrays["y"]}
    try:
        np.savez(blobs, **changed)
        assert "have changed since the run started" in refuse("evaluate", classifier)
    finally:
        blobs.write_bytes(original)


def test_predict_overwrites_nothing_unless_told_to(classifier, blobs, tmp_path, refuse, ask):
    output = tmp_path / "p.csv"
    output.write_text("mine")
    assert "exists: give another --output, or --force" in refuse("predict", classifier, blobs, "--output", output)
    assert output.read_text() == "mine"
    ask("predict", classifier, blobs, "--output", output, "--force")
    assert output.read_text().startswith("input,class")


def test_a_classifier_is_not_a_density(classifier, refuse):
    assert "not a density" in refuse("sample", classifier)


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ("--data nowhere.csv", "nowhere.csv"),
        ("--steps 2 --rtol 0.1", "exclude"),
        ("--preset paper", "no image classifier for 'digits'"),
        ("--width 0", "width must be at least 1"),
        ("--solver euler --rtol 0.1", "euler takes fixed steps only"),
    ],
)
def test_bad_input_is_a_sentence_and_nothing_is_written(flags, words, refuse, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert words in refuse("train", "classify", *flags.split())
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_predict_reads_a_single_picture_and_resizes_a_larger_one(tmp_path, capsys, ask):
    ask("train", "classify", "--epochs", "3", "--output", tmp_path, "--name", "digits")
    pixels = (load_digits().images[3] / 16 * 255).astype(np.uint8)
    Image.fromarray(pixels).save(tmp_path / "three.png")
    run, output = str(tmp_path / "digits"), tmp_path / "p.csv"
    assert main(["predict", run, str(tmp_path / "three.png"), "--output", str(output)]) == 0
    shown = capsys.readouterr().out
    assert "three.png" in shown
    assert "…" not in shown
    with output.open() as file:
        _, row = csv.reader(file)
    assert row[:2] == ["three.png", "3"]
    Image.fromarray(pixels).resize((16, 16)).save(tmp_path / "large.png")
    assert main(["predict", run, str(tmp_path / "large.png"), "--output", str(output), "--force"]) == 0
    assert "1 resized to 8 x 8 pixels (the shorter side, then the centre cut out)" in capsys.readouterr().err


@pytest.mark.slow
def test_digits_reach_98_percent_within_a_minute(tmp_path):
    answer = train(ClassificationConfig(), tmp_path / "run").summary()
    assert answer["accuracy"] >= 0.98
    assert answer["seconds"] <= 60
