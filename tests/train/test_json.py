"""`config.json` and `model.json`: there and back, and one sentence for whatever is wrong in them."""

import dataclasses
import json
import math
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_type_hints

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import charax  # noqa: F401, registers the tasks
from charax.train import TASKS, from_json, load_config, load_model, save_config, to_json, train
from charax.train._json import seal
from tests.train.line_task import LineConfig
from tests.train.strategies import build, fields_of, values_of

CONFIGS = {**TASKS, "line": LineConfig}
SPECS = {name: get_type_hints(config(data="none").task_type())["spec"] for name, config in CONFIGS.items()}
STORED = {f"{name} config": cls for name, cls in CONFIGS.items()} | {f"{name} spec": cls for name, cls in SPECS.items()}


@settings(max_examples=15)
@given(data=st.data())
@pytest.mark.parametrize("name", STORED)
def test_there_and_back_is_an_equal_object(name, data):
    cls = STORED[name]
    value = build(cls, data.draw(values_of(cls)))
    again = from_json(cls, json.loads(json.dumps(to_json(value))))
    assert again == value
    assert repr(again) == repr(value)  # 1 == 1.0 == True, but they are not the same setting


@settings(max_examples=3)
@given(data=st.data())
@pytest.mark.parametrize("name", TASKS)
def test_a_file_gives_the_config_that_was_written(name, data, tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    config = build(CONFIGS[name], data.draw(values_of(CONFIGS[name])))
    save_config(folder, config)
    assert load_config(folder) == config


def leaves_of(stored: Any, path: tuple = ()) -> list[tuple]:
    """The paths to everything in a JSON value, itself included."""
    pairs = stored.items() if isinstance(stored, dict) else enumerate(stored) if isinstance(stored, list) else ()
    return [path, *(leaf for key, value in pairs for leaf in leaves_of(value, (*path, key)))]


def replaced(stored: Any, path: tuple, value: Any) -> Any:
    if not path:
        return value
    key, *rest = path
    if isinstance(stored, dict):
        return {name: replaced(part, tuple(rest), value) if name == key else part for name, part in stored.items()}
    return [replaced(part, tuple(rest), value) if i == key else part for i, part in enumerate(stored)]


ODD = [None, True, -1, 0, 10**400, 0.5, -math.inf, math.nan, "", "odd", [], [[]], {}, {"odd": 1}]


@settings(max_examples=15)
@given(data=st.data())
@pytest.mark.parametrize("name", STORED)
def test_an_odd_value_anywhere_is_valid_or_one_sentence_that_names_the_file(name, data):
    stored = to_json(build(STORED[name], data.draw(values_of(STORED[name]))))
    path = data.draw(st.sampled_from(leaves_of(stored)))
    odd = replaced(stored, path, data.draw(st.sampled_from(ODD)))
    again, reason = None, ""
    try:
        again = from_json(STORED[name], odd, "the file")
    except ValueError as error:
        reason = str(error)
    assert reason.startswith("the file") if again is None else from_json(STORED[name], to_json(again)) == again
    assert "\n" not in reason


def added_later(cls: Any) -> set[str]:
    """The names of a config and its parts that files of older versions lack."""
    hints = get_type_hints(cls) if fields_of(cls) else {}
    parts = {name for hint in hints.values() for name in added_later(hint)}
    own = dataclasses.fields(cls) if dataclasses.is_dataclass(cls) else ()
    return parts | {field.name for field in own if "added_later" in field.metadata}


@settings(max_examples=6)
@given(data=st.data())
@pytest.mark.parametrize("name", STORED)
def test_a_missing_and_an_unknown_name_are_named(name, data):
    stored = to_json(build(STORED[name], data.draw(values_of(STORED[name]))))
    later = added_later(STORED[name])
    paths = [path for path in leaves_of(stored) if path and isinstance(path[-1], str) and path[-1] not in later]
    *above, missing = data.draw(st.sampled_from(paths))
    parent = stored
    for key in above:
        parent = parent[key]
    lacking = replaced(stored, tuple(above), {key: value for key, value in parent.items() if key != missing})
    with pytest.raises(ValueError, match=f"^the file lacks the setting {missing}$"):
        from_json(STORED[name], lacking, "the file")
    with pytest.raises(ValueError, match=r"^the file: this version does not know the setting colour$"):
        from_json(STORED[name], replaced(stored, tuple(above), {**parent, "colour": "red"}), "the file")


def test_a_wrong_type_is_named_with_its_place():
    stored = to_json(LineConfig())
    for path, value, words in (
        (("loop", "epochs"), "many", "loop.epochs must be of type int; found 'many'"),
        (("loop", "epochs"), True, "loop.epochs must be of type int; found True"),
        (("method",), "cubic", "method must be one of affine, linear; found 'cubic'"),
        (("slopes",), 2.0, "slopes must be a list; found 2.0"),
        (("slopes",), [1.0, "steep"], r"slopes\[1\] must be of type float; found 'steep'"),
        (("optimizer", "clip"), math.inf, "optimizer.clip must be finite; found inf"),
        (("solver",), 3, "solver must be an object with named values; found 3"),
        (("loop", "epochs"), 0, "epochs must be a number of at least 1, got 0"),
    ):
        with pytest.raises(ValueError, match=rf"^config\.json: {words}$"):
            from_json(LineConfig, replaced(stored, path, value))


def test_a_pair_has_two_entries():
    @dataclasses.dataclass(frozen=True)
    class Ends:
        both: tuple[float, float]

    assert from_json(Ends, {"both": [1, 2.5]}) == Ends((1.0, 2.5))
    with pytest.raises(ValueError, match="both must have 2 entries; found 3"):
        from_json(Ends, {"both": [1, 2, 3]})


def test_what_is_not_plain_data_is_not_stored():
    with pytest.raises(TypeError, match="complex is not plain data"):
        to_json((1.0, 1j))


def reseal(path: Path, change: Callable[[dict], dict]) -> None:
    """Change JSON and its digest."""
    stored = json.loads(path.read_text())
    del stored["blake2b"]
    path.write_text(json.dumps(seal(change(stored))))


FILES = {
    "config.json": {
        b"": "cannot be read as JSON",
        b"\xff\xfe\x00": "cannot be read as JSON",
        b"[" * 100_000: "cannot be read as JSON",
        b"[1, 2]": "must hold a JSON object; found list",
        b"{}": "is of the task None, which is not registered",
        b'{"task": ["line"]}': "is of the task ['line'], which is not registered",
        b'{"task": "line"}': "the content must be an object with named values; found None",
        b'{"task": "line", "config": {}}': "lacks the setting data, loop, method",
    },
    "model.json": {
        b"": "cannot be read as JSON",
        b"null": "must hold a JSON object; found NoneType",
        b"{}": "the content must be an object with named values; found None",
        b'{"spec": {"inputs": "two"}}': "inputs must be of type int; found 'two'",
        b'{"spec": {"inputs": 2}}': "model.safetensors is damaged",
        b'{"spec": {"inputs": 2}, "blake3b": "x"}': "model.json is damaged, or was changed",
    },
}


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        pytest.param(name, content, words, id=f"{name} {content[:24]!r}")
        for name, contents in FILES.items()
        for content, words in contents.items()
    ],
)
def test_a_file_that_cannot_be_used_is_one_sentence_and_status_2(refuse, trained, tmp_path, name, content, words):
    copy = shutil.copytree(trained, tmp_path / "copy")
    (copy / name).write_bytes(content)
    reason = refuse("evaluate", copy)
    assert words in reason
    assert str(copy) in reason


@pytest.mark.parametrize("inputs", [-1, 0, 3, 2**40, 2**63], ids=str)
def test_a_description_that_does_not_fit_the_weights_is_one_sentence(line_task, trained, tmp_path, inputs):
    copy = shutil.copytree(trained, tmp_path / "copy")
    reseal(copy / "model.json", lambda stored: {**stored, "spec": {"inputs": inputs}})
    with pytest.raises(ValueError, match=r"copy/model\.(json|safetensors)") as error:
        load_model(copy)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("name", ["config.json", "model.json"])
def test_one_changed_character_is_noticed(line_task, trained, tmp_path, name):
    copy = shutil.copytree(trained, tmp_path / "copy")
    text = (copy / name).read_text()
    for old, new in (('"inputs": 2', '"inputs": 3'), ('"clip": 1.0', '"clip": 1.5'), ('"charax": "', '"charax": "9')):
        if old in text:
            (copy / name).write_text(text.replace(old, new))
            with pytest.raises(ValueError, match=rf"{name} is damaged, or was changed: its content does not agree"):
                load_model(copy)


def test_files_of_an_earlier_version_have_no_digest(line_task, trained, tmp_path):
    copy = shutil.copytree(trained, tmp_path / "copy")
    for name in ("config.json", "model.json"):
        stored = json.loads((copy / name).read_text())
        later = ("blake2b", "config_blake2b", "versions")
        earlier = {key: value for key, value in stored.items() if key not in later}
        (copy / name).write_text(json.dumps(earlier))
        assert load_model(copy).task.spec.inputs == 2


def test_a_config_of_another_run_is_named(line_task, trained, tmp_path):
    copy = shutil.copytree(trained, tmp_path / "copy")
    reseal(copy / "config.json", lambda stored: {**stored, "data_digest": "another"})
    with pytest.raises(
        ValueError, match=r"copy/config\.json is of another run: its digest is not the one in model\.json"
    ):
        load_model(copy)


@pytest.mark.parametrize("name", ["config.json", "model.json", "metrics.jsonl", "model.safetensors"])
@pytest.mark.parametrize("kind", ["folder", "pipe", "holes", "not text"])
def test_anything_in_place_of_a_file_is_one_sentence(refuse, trained, tmp_path, name, kind):
    copy = shutil.copytree(trained, tmp_path / "copy")
    (copy / name).unlink()
    if kind == "folder":
        (copy / name).mkdir()
    elif kind == "pipe":
        os.mkfifo(copy / name)
    else:
        (copy / name).write_bytes(b"\xff\xfe" * 100)
        if kind == "holes":
            os.truncate(copy / name, 1 << 40)
    reason = refuse("evaluate", copy)
    assert str(copy) in reason


ROW = {"epoch": 1, "loss": 1, "validation_loss": 1, "step": 1, "skipped": 0, "seconds": 1}
ROWS = {
    '{"epoch": 1}': "line 1 lacks loss, seconds, skipped, step, validation_loss",
    json.dumps({**ROW, "epoch": "1"}): "epoch must be of type int",
    json.dumps({**ROW, "loss": []}): "loss must be of type float",
    json.dumps({**ROW, "x": "y"}): "x must be of type float",
    "[]": "must hold one JSON object per epoch",
    "{": "line 1 cannot be read as JSON",
}


@pytest.mark.parametrize(("row", "words"), ROWS.items())
def test_a_row_of_metrics_that_cannot_be_used_is_named(refuse, trained, tmp_path, row, words):
    copy = shutil.copytree(trained, tmp_path / "copy")
    first, *rest = (copy / "metrics.jsonl").read_text().splitlines(keepends=True)
    assert first
    (copy / "metrics.jsonl").write_text("".join([row + "\n", *rest]))
    reason = refuse("resume", copy)
    assert words in reason
    assert f"{copy}/metrics.jsonl" in reason


def test_a_model_with_too_many_parameters_is_refused_before_it_is_built(line_task, trained, tmp_path, monkeypatch):
    monkeypatch.setenv("CHARAX_MAX_PARAMETERS", "2")
    with pytest.raises(ValueError, match="the model has 3 parameters, more than the limit of 2: set CHARAX_MAX_PARAM"):
        load_model(trained)
    with pytest.raises(ValueError, match="CHARAX_MAX_PARAMETERS=3"):
        train(LineConfig(), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_the_size_of_json_has_a_limit(refuse, trained, monkeypatch):
    monkeypatch.setenv("CHARAX_MAX_JSON", "100")
    assert "config.json has" in refuse("evaluate", trained)
