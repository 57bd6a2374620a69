"""Stored results that were damaged are named, and none of them is taken for a result."""

import json

import pytest

from charax import ClassificationConfig
from charax.paper._ode_table import _load
from charax.paper._records import RecordJob
from charax.select._sweep import _train_loss
from charax.train import Run, to_json

BROKEN = [b"", b"\xff\xfe", b"[]", b"{}", b"null", b'{"settings": 1, "result": {}}', b'{"settings": {}, "result": 1}']


@pytest.mark.parametrize("content", BROKEN)
def test_a_damaged_result_is_named(tmp_path, content):
    path = tmp_path / "result.json"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"result\.json"):
        RecordJob(path, {}, dict).is_finished()


@pytest.mark.parametrize("content", [*BROKEN, b'{"loss": "x", "samples": 1}', b'{"loss": 1.0, "samples": 1.5}'])
def test_a_damaged_loss_is_named(tmp_path, content):
    (tmp_path / "train-loss.json").write_bytes(content)
    with pytest.raises(ValueError, match=r"train-loss\.json"):
        _train_loss(Run(tmp_path, ClassificationConfig(), None, []))


@pytest.mark.parametrize("change", [{"metrics": 1}, {"epochs": [1]}, {"epochs": {}}, {"config": []}, {"config": {}}])
def test_a_damaged_record_is_named(tmp_path, change):
    path, config = tmp_path / "record.json", ClassificationConfig()
    stored = {"config": to_json(config), "metrics": {"accuracy": 1.0}, "epochs": [{"epoch": 1}]}
    path.write_text(json.dumps(stored))
    assert _load(path, config).metrics == {"accuracy": 1.0}
    path.write_text(json.dumps({**stored, **change}))
    with pytest.raises(ValueError, match=r"record\.json"):
        _load(path, config)
