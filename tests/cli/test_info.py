"""`charax info` says what there is."""

import json
import os

import jax
import pytest

from charax.cli import main


@pytest.fixture
def facts(capsys, monkeypatch):
    monkeypatch.setenv("CHARAX_DATA", "/some/data")
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", "/some/cache")
    monkeypatch.setenv("NPROC", "7")
    assert main(["info", "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_info_names_versions_devices_folders_and_threads(facts):
    assert facts["packages"]["jax"] == jax.__version__
    assert facts["devices"][0]["platform"] == jax.default_backend()
    assert facts["cores"] == len(os.sched_getaffinity(0))
    assert (facts["data_folder"], facts["compilation_cache"]) == ("/some/data", "/some/cache")
    assert facts["variables"]["NPROC"] == "7"


def test_info_is_a_table_for_people(capsys, monkeypatch):
    monkeypatch.delenv("CHARAX_DATA", raising=False)
    assert main(["info"]) == 0
    shown = capsys.readouterr().out
    assert jax.__version__ in shown
    assert "CHARAX_DATA is not set" in shown
