"""Weights that are damaged, not finite, or of another run are named as such."""

import json
import shutil
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from charax.train import load_model, name_arrays, save_config, save_model, train
from charax.train._json import seal
from tests.train.line_task import LineConfig, LineSpec
from tests.train.registration import registered_line


def saved(folder: Path, *, method="affine", inputs: int = 2, seed: int = 0, change=lambda model: model) -> Path:
    """The folder of an untrained model."""
    folder.mkdir()
    config, spec = LineConfig(method=method), LineSpec(inputs)
    save_config(folder, config)
    save_model(folder, spec, change(config.build_task(spec).build(jax.random.key(seed))))
    return folder


def copy_of(name: str, source: Path, target: Path) -> None:
    (target / name).write_bytes((source / name).read_bytes())


def test_they_come_back_bit_by_bit(line_task, tmp_path):
    folder = saved(tmp_path / "run", seed=3)
    model = LineConfig().build_task(LineSpec(2)).build(jax.random.key(3))
    loaded = load_model(folder)
    assert loaded.task.spec == LineSpec(2)
    assert name_arrays(model).keys() == name_arrays(loaded.model).keys() == {"weight", "bias"}
    assert all(map(np.array_equal, jax.tree.leaves(model), jax.tree.leaves(loaded.model)))


@settings(max_examples=20)
@given(data=st.data())
def test_one_flipped_bit_anywhere_is_noticed(tmp_path_factory, data):
    folder = saved(tmp_path_factory.mktemp("runs") / "run")
    content = bytearray((folder / "model.safetensors").read_bytes())
    content[data.draw(st.integers(0, len(content) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    (folder / "model.safetensors").write_bytes(content)
    with (
        registered_line(),
        pytest.raises(ValueError, match=r"model\.safetensors is damaged, or of another run: its dig"),
    ):
        load_model(folder)


@pytest.mark.parametrize("content", [b"", b"\x00" * 40])
def test_a_file_that_is_no_weights_at_all_is_damaged(line_task, tmp_path, content, monkeypatch):
    folder = saved(tmp_path / "run")
    (folder / "model.safetensors").write_bytes(content)
    monkeypatch.setattr("charax.train._export._digest", lambda path: _stored_digest(folder))
    with pytest.raises(ValueError, match=r"model\.safetensors is damaged"):
        load_model(folder)


def _stored_digest(folder: Path) -> str:
    return json.loads((folder / "model.json").read_text())["weights_blake2b"]


@pytest.mark.parametrize("value", [jnp.nan, jnp.inf])
def test_weights_that_are_not_finite_are_named(line_task, refuse, tmp_path, value):
    broken = lambda model: jax.tree.map(lambda leaf: leaf.at[0].set(value) if leaf.ndim == 1 else leaf, model)
    folder = saved(tmp_path / "run", change=broken)
    np.savez(tmp_path / "new.npz", x=np.zeros((1, 2), np.float32))
    assert "weights that are not finite, in bias: train it again" in refuse("predict", folder, tmp_path / "new.npz")


def test_weights_of_another_run_are_named(line_task, tmp_path):
    one, other = saved(tmp_path / "one"), saved(tmp_path / "other", seed=1)
    copy_of("model.safetensors", other, one)
    with pytest.raises(ValueError, match=r"one/model\.safetensors is damaged, or of another run"):
        load_model(one)


@pytest.mark.parametrize(
    ("other", "words"),
    [
        ({"method": "linear"}, r"lacks 1 \(bias …\)"),
        ({"inputs": 3}, r"weight is float32\[3, 1\] where float32\[2, 1\] is expected"),
    ],
)
def test_a_model_of_another_config_does_not_fit(line_task, tmp_path, other, words):
    one, foreign = saved(tmp_path / "one"), saved(tmp_path / "other", **other)
    stored = json.loads((one / "model.json").read_text())
    del stored["blake2b"]
    copy_of("model.safetensors", foreign, one)
    stored["weights_blake2b"] = _stored_digest(foreign)
    (one / "model.json").write_text(json.dumps(seal(stored)))
    with pytest.raises(ValueError, match=f"does not fit the model: .*{words}"):
        load_model(one)


@pytest.mark.parametrize("name", ["model.json", "model.safetensors"])
def test_a_model_that_is_not_there_yet_is_named(line_task, tmp_path, name):
    folder = saved(tmp_path / "run")
    (folder / name).unlink()
    with pytest.raises(ValueError, match=rf"{name} does not exist: .* not finished \(charax resume"):
        load_model(folder)


def test_loading_needs_neither_the_data_nor_the_checkpoints(line_task, tmp_path):
    np.savez(tmp_path / "points.npz", x=np.random.default_rng(0).normal(size=(120, 2)), y=np.zeros(120))
    train(LineConfig(data=str(tmp_path / "points.npz")), tmp_path / "run")
    (tmp_path / "points.npz").unlink()
    moved = shutil.move(tmp_path / "run", tmp_path / "moved")
    for name in ("metrics.jsonl", "checkpoints"):
        path = Path(moved) / name
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    assert load_model(moved).task.spec == LineSpec(2)
