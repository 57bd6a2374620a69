"""A run is its config: its folder, what is found in it again, and how often its data are loaded."""

import dataclasses
import json
import shutil

import jax
import numpy as np
import pytest

from charax import ClassificationConfig
from charax.cli import main
from charax.train import (
    LoopConfig,
    OptimizerConfig,
    Run,
    Silent,
    Sweep,
    evaluate,
    load_config,
    load_run,
    mean_and_sd,
    name_run,
    resume,
    train,
    train_or_load,
    train_seeds,
)
from charax.train._history import advise
from tests.train.line_task import LineConfig
from tests.train.registration import registered_line

CONFIG = LineConfig(loop=LoopConfig(epochs=1, batch_size=8))


@pytest.fixture
def loads(monkeypatch) -> list[str]:
    """The data sets that were loaded, in order."""
    load, loaded = LineConfig.load_data, []
    monkeypatch.setattr(LineConfig, "load_data", lambda self: (loaded.append(self.data), load(self))[1])
    return loaded


@pytest.fixture
def copy(trained, tmp_path):
    return shutil.copytree(trained, tmp_path / "copy")


def test_data_are_loaded_once_for_a_run_with_its_figures(ask, loads, tmp_path):
    ask("train", "line", "--epochs", 1, "--output", tmp_path, "--name", "run")
    assert loads == ["plane"]
    assert (tmp_path / "run" / "plots" / "points.txt").read_text() == "plane: 11 test points\n"


def test_data_are_loaded_once_to_evaluate_and_never_to_predict(trained, ask, loads, tmp_path):
    ask("evaluate", trained)
    assert loads == ["plane"]
    np.savez(tmp_path / "new.npz", x=np.zeros((1, 2), np.float32))
    ask("predict", trained, tmp_path / "new.npz", "--output", tmp_path / "out.csv")
    load_run(trained)
    assert loads == ["plane"]


def test_a_run_gives_the_config_it_was_trained_with(line_task, tmp_path):
    config = dataclasses.replace(CONFIG, slopes=(1.0, 2.0, 3.0), optimizer=OptimizerConfig(ema=0.9))
    train(config, tmp_path / "run")
    complete, _ = config.complete(config.load_data())
    assert (complete.slopes, complete.optimizer.ema, complete.optimizer.schedule) == ((1.0, 2.0, 3.0), 0.9, "cosine")
    assert load_config(tmp_path / "run") == load_run(tmp_path / "run").config == complete


def test_the_config_of_a_run_reaches_its_training(line_task, tmp_path):
    base = train(CONFIG, tmp_path / "base")
    for name, change in {
        "loop": {"loop": LoopConfig(epochs=2, batch_size=8)},
        "optimizer": {"optimizer": OptimizerConfig(learning_rate=1e-4)},
    }.items():
        other = train(dataclasses.replace(CONFIG, **change), tmp_path / name)
        assert not np.allclose(base.trained.model.weight, other.trained.model.weight, atol=1e-4), name


def test_paths_do_not_depend_on_the_working_folder(line_task, tmp_path, monkeypatch):
    np.savez(tmp_path / "points.npz", x=np.random.default_rng(0).normal(size=(120, 2)), y=np.zeros(120))
    monkeypatch.chdir(tmp_path)
    train(dataclasses.replace(CONFIG, data="points.npz"), "run")
    monkeypatch.chdir("/")
    assert load_config(tmp_path / "run").data == str(tmp_path / "points.npz")
    assert evaluate(tmp_path / "run")["loss"] >= 0


def test_nothing_is_written_if_the_data_cannot_be_loaded(line_task, tmp_path):
    with pytest.raises(FileNotFoundError):
        train(dataclasses.replace(CONFIG, data="nowhere.npz"), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_folder_that_is_in_use_is_not_overwritten(trained, refuse, command, line_task, tmp_path):
    before = (trained / "metrics.jsonl").read_bytes()
    assert "exists and is not empty: give another name, or resume it: charax resume" in refuse(*command(trained))
    assert (trained / "metrics.jsonl").read_bytes() == before
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match="exists and is not empty"):
        train(CONFIG, tmp_path / "file")


@pytest.mark.parametrize("name", ["", "..", "a/b"])
def test_a_name_that_leads_elsewhere_is_refused(refuse, name, tmp_path):
    reason = refuse("train", "line", f"--name={name}", "--output", tmp_path / "runs")
    assert "--name must be a plain name" in reason
    assert not (tmp_path / "runs").exists()


def test_a_run_without_a_name_has_one_that_is_free(tmp_path):
    assert name_run(tmp_path, CONFIG.label) == "line-plane-affine"
    (tmp_path / "line-plane-affine").mkdir()
    assert name_run(tmp_path, CONFIG.label) == "line-plane-affine-2"


CHANGES = {
    "loop.epochs (1 there, 2 here)": {"loop": LoopConfig(epochs=2, batch_size=8)},
    "optimizer.clip (1.0 there, 7.0 here)": {"optimizer": dataclasses.replace(CONFIG.optimizer, clip=7.0)},
    "points (40 there, 20 here), slopes ((2.0, -1.0) there, (3.0,) here)": {"points": 20, "slopes": (3.0,)},
}


@pytest.fixture(scope="module")
def once(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "once"
    with registered_line():
        train(CONFIG, folder)
    return folder


@pytest.mark.parametrize("words", CHANGES)
def test_a_result_is_never_taken_from_a_run_with_other_settings(line_task, once, words):
    with pytest.raises(ValueError, match="has a run with other settings: ") as refused:
        train_or_load(dataclasses.replace(CONFIG, **CHANGES[words]), once)
    assert f"settings: {words}. Give another --output, or delete that folder" in str(refused.value)


def test_a_run_of_another_task_is_not_taken_either(line_task, once):
    from charax import ClassificationConfig

    with pytest.raises(ValueError, match=r"the task \(LineConfig there, ClassificationConfig here\)"):
        train_or_load(ClassificationConfig(), once)


def test_the_same_config_is_trained_once_and_resumed_where_it_stopped(line_task, once, tmp_path, metrics_of):
    modified = (once / "metrics.jsonl").stat().st_mtime_ns
    assert isinstance(train_or_load(CONFIG, once), Run)
    assert (once / "metrics.jsonl").stat().st_mtime_ns == modified
    unfinished = shutil.copytree(once, tmp_path / "run")
    for name in ("metrics.jsonl", "model.safetensors", "model.json"):
        (unfinished / name).unlink()
    shutil.rmtree(unfinished / "checkpoints")
    train_or_load(CONFIG, unfinished)
    assert metrics_of(unfinished) == metrics_of(once)


def test_seeds_are_runs_of_their_own(line_task, tmp_path):
    said = []
    progress = Silent()
    progress.say = said.append
    runs = train_seeds(CONFIG, tmp_path, seeds=2, sweep=Sweep(progress=progress))
    assert [run.folder.name for run in runs] == ["line-plane-affine-seed0", "line-plane-affine-seed1"]
    assert [run.config.loop.seed for run in runs] == [0, 1]
    assert said == ["line-plane-affine-seed0", "line-plane-affine-seed1"]
    losses = [run.summary()["loss"] for run in runs]
    mean, sd = mean_and_sd(losses)
    assert (mean, sd) == (pytest.approx(np.mean(losses)), pytest.approx(np.std(losses, ddof=1)))
    assert mean_and_sd(losses[:1]) == (losses[0], None)
    with pytest.raises(ValueError, match="seeds must be at least 1"):
        train_seeds(CONFIG, tmp_path, seeds=0)


def test_every_split_can_be_evaluated_and_others_are_named(trained, line_task):
    run = load_run(trained)
    assert len({evaluated["loss"] for evaluated in map(run.evaluate, run.splits._fields)}) == 3
    with pytest.raises(ValueError, match="unknown split 'exam'; choose from train, validation, test"):
        run.evaluate("exam")


@pytest.mark.parametrize("command", ["resume", "evaluate", "predict"])
def test_a_folder_without_a_run_is_named(refuse, command, tmp_path):
    inputs = [tmp_path / "x.npz"] if command == "predict" else []
    assert f"{tmp_path}/config.json does not exist: {tmp_path} is not a run" in refuse(command, tmp_path, *inputs)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b'{"epoch": 1}\n{"best_epoch": 1, oh}\n', "cannot be read"),
        (b'[1]\n{"best_epoch": 1}\n', "one JSON object per epoch"),
        (b'{"best_epoch": 1}\n', "one JSON object per epoch"),
        (b'\xff\xfe\n{"best_epoch": 1}\n', "cannot be read"),
    ],
)
def test_metrics_that_cannot_be_read_are_named(refuse, copy, content, words):
    (copy / "metrics.jsonl").write_bytes(content)
    reason = refuse("evaluate", copy)
    assert "metrics.jsonl" in reason
    assert words in reason


def test_a_run_that_has_not_finished_is_said_to_be_so(line_task, copy):
    rows = (copy / "metrics.jsonl").read_text().splitlines(keepends=True)
    (copy / "metrics.jsonl").write_text("".join(rows[:-1]))
    with pytest.raises(ValueError, match="is not finished; resume it: charax resume"):
        load_run(copy)
    assert resume(copy).history[-1]["test_loss"] == json.loads(rows[-1])["test_loss"]


def test_a_command_that_cannot_go_on_has_status_1(refuse, tmp_path):
    x = np.full((120, 2), np.nan)
    np.savez(tmp_path / "points.npz", x=x, y=x[:, 0])
    arguments = ["train", "line", "--data", tmp_path / "points.npz", "--epochs", 20, "--output", tmp_path]
    assert "10 steps in a row were skipped" in refuse(*arguments, status=1)


def test_progress_goes_to_standard_error(line_task, tmp_path, capsys):
    flags = ["--epochs", "2", "--json", "--output", str(tmp_path)]
    assert main(["train", "line", *flags]) == 0
    out, err = capsys.readouterr()
    assert len(out.splitlines()) == 1
    *epochs, last = err.splitlines()
    assert [line.split()[1] for line in epochs] == ["1/2", "2/2"]
    assert "the validation loss was still improving, in epoch 2 of 2" in last


@pytest.mark.parametrize(
    ("data", "label"),
    {"a/iris.csv": "iris", "a/iris.csv.gz": "iris", "digits": "digits", "a/my.v2.parquet": "my.v2"}.items(),
)
def test_the_default_name_of_a_run_has_the_task_and_the_data_without_suffixes(data, label):
    assert ClassificationConfig(data=data).label == f"classify-{label}-c-node"


@pytest.mark.parametrize(
    ("losses", "words"),
    [
        ([1.0, 0.5, 0.2, 0.6, 3.0], "became worse after epoch 3 than it was at first: the weights of epoch 3 of 5"),
        ([1.0, 0.5, 0.2, 0.3, 0.4], ""),
        ([1.0, 0.5, 0.4, 0.3, 0.2], "still improving, in epoch 5 of 5"),
    ],
)
def test_advice_follows_the_validation_loss(tmp_path, losses, words):
    config = ClassificationConfig(loop=LoopConfig(epochs=5))
    advice = advise(tmp_path, config, [{"validation_loss": loss} for loss in losses], "loss", higher_is_better=False)
    assert words in advice
    assert bool(words) == bool(advice)


def test_who_refines_after_the_epochs_is_not_told_to_train_longer(trained, line_task):
    run = load_run(trained)
    assert "still improving" in run.advice
    run.history[-1]["refined"] = True
    assert run.advice == ""


def test_double_precision_is_refused_before_anything_is_written(tmp_path):
    with jax.enable_x64(True), pytest.raises(ValueError, match="runs are computed in float32"):
        train(LineConfig(), tmp_path / "run")
    assert not (tmp_path / "run").exists()
