"""Every flag of every experiment has an effect, or is refused before anything is written."""

from contextlib import suppress
from dataclasses import fields, replace
from typing import Any

import pytest

from charax.paper import EXPERIMENTS, AbstractExperiment
from charax.train import Sweep

PAPER = {"budget": "paper"}

OTHER: dict[str, dict[str, tuple[dict[str, Any], Any]]] = {
    "propositions": {"seed": ({}, 1)},
    "separations": {
        "problem": ({}, ("xor",)),
        "variant": ({}, ("anode-1",)),
        "seeds": ({}, 2),
        "steps": ({}, 7),
        "points": ({}, 20),
    },
    "table1": {
        "budget": ({"method": ("c-node",)}, "paper"),
        "dataset": (PAPER, ("mnist",)),
        "method": (PAPER, ("anode",)),
        "seeds": (PAPER, 7),
        "epochs": (PAPER, 7),
        "table_only": ({"method": ("c-node",)}, True),
    },
    "toy-flow": {
        "recipe": ({}, "sharp"),
        "data": ({"recipe": "matching"}, "moons"),
        "seeds": ({}, 7),
        "iterations": ({}, 20),
    },
    "tabular": {"table": ({}, ("wine",)), "seeds": ({}, 2), "epochs": ({}, 7)},
    "uci": {
        "dataset": ({}, ("wine",)),
        "splits": ({}, 2),
        "method": ({}, "node"),
        "members": ({}, 2),
        "epochs": ({}, 7),
    },
    "kinetic": {
        "data": ({}, "moons"),
        "method": ({}, "node"),
        "sharpness": ({}, 2.0),
        "weight": ({}, 3.0),
        "seeds": ({}, 7),
        "epochs": ({}, 7),
    },
    "table2": {
        "budget": ({}, "paper"),
        "dataset": (PAPER, ("svhn",)),
        "method": ({}, ("c-node",)),
        "seeds": ({}, 7),
        "epochs": ({}, 7),
    },
    "pde": {
        "budget": ({}, "smoke"),
        "problem": ({}, ("burgers-sine",)),
        "method": ({}, ("node",)),
        "seeds": ({}, 7),
        "epochs": ({}, 7),
    },
    "equations": {
        "budget": ({}, "smoke"),
        "problem": ({}, ("cubic",)),
        "method": ({}, ("mlp",)),
        "noise": ({}, (0.2,)),
        "points": ({}, (300,)),
        "seeds": ({}, 2),
        "epochs": ({}, 7),
    },
    "timeseries": {"method": ({}, ("node",)), "seeds": ({}, 7), "epochs": ({}, 7)},
    "forecasts": {"dataset": ({}, ("pendulum",)), "seeds": ({}, 2), "epochs": ({}, 7)},
    "irregular": {
        "dataset": ({}, ("BasicMotions",)),
        "method": ({}, ("gru",)),
        "dropped_percent": ({}, (10,)),
        "seeds": ({}, 2),
        "epochs": ({}, 7),
    },
    "ablation": {
        "budget": ({}, "cpu"),
        "dataset": (PAPER, ("svhn",)),
        "k": ({}, (3,)),
        "seeds": ({}, 7),
        "epochs": ({}, 7),
    },
}
"""The other settings, and another value, of every field."""

APART = {("table1", "finished_only"), ("irregular", "finished_only")}
"""Flags that need results of earlier runs, which `test_ode_table.py` and `test_irregular.py` have."""

FLAGS = [
    (name, field.name)
    for name, experiment in EXPERIMENTS.items()
    for field in fields(experiment)
    if (name, field.name) not in APART
]


class Started(BaseException):
    """The work would begin."""


@pytest.fixture
def work_of(monkeypatch, tmp_path_factory):
    """What an experiment would compute, without computing it."""

    def record(experiment: AbstractExperiment) -> list[Any]:
        folder, calls = tmp_path_factory.mktemp("results"), []

        def begin(*args, **kwargs):
            calls.append(str([*args, *kwargs.items()]).replace(str(folder), "FOLDER"))
            raise Started

        class Recording(Sweep):
            def run(self, jobs) -> list[Any]:
                begin(*jobs)
                return []

        monkeypatch.setattr("charax.paper.propositions._intersecting.run", begin)
        with suppress(Started):
            experiment.run(folder, Recording())
        return calls

    return record


@pytest.mark.parametrize(("name", "flag"), FLAGS)
def test_every_flag_changes_what_is_computed(name, flag, work_of):
    settings, value = OTHER[name][flag]
    usual = EXPERIMENTS[name](**settings)
    assert getattr(usual, flag) != value
    work, other = work_of(usual), work_of(replace(usual, **{flag: value}))
    assert work
    assert other
    assert other != work


@pytest.mark.parametrize(
    ("name", "flag"), [each for each in FLAGS if each[1] in ("seeds", "epochs", "steps", "iterations")]
)
def test_none_of_a_number_is_refused_before_anything_is_written(name, flag, tmp_path):
    with pytest.raises(ValueError, match=rf"{flag} must be .*at least 1"):
        EXPERIMENTS[name](**OTHER[name][flag][0] | {flag: 0}).run(tmp_path / "results", Sweep())
    assert not (tmp_path / "results").exists()


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("table1", {"dataset": ("imagenet",)}, "budget smoke has no data set 'imagenet'; choose from digits"),
        ("table2", {"dataset": ("imagenet",), "budget": "cpu"}, "choose from digits, mnist"),
        ("ablation", {"dataset": ("mnist",)}, "choose from digits"),
        ("pde", {"problem": ("heat",)}, "choose from paper, paper-steep"),
        ("separations", {"problem": ("heat",)}, "choose from swap, reverse"),
        ("separations", {"variant": ("resnet",)}, "choose from node, anode-1"),
        ("toy-flow", {"data": "moons"}, "recipe paper is for circles: use --recipe timed or matching"),
        ("toy-flow", {"iterations": 15}, "iterations must be a multiple of 10"),
        ("kinetic", {"weight": 0.0}, "weight must be above 0"),
        ("kinetic", {"sharpness": -1.0}, "sharpness must be a number above 0"),
        ("kinetic", {"data": "digits"}, "has images"),
        ("ablation", {"k": (0,)}, "at least 1"),
        ("equations", {"points": (1000, 5)}, "points must be at least 20, got 5"),
        # Flags that would have no effect.
        ("table1", {"budget": "ode", "table_only": True}, "leave --table-only out"),
        ("table1", {"finished_only": True}, "--finished-only is for the budgets ode and exact"),
        ("table1", {"budget": "exact", "finished_only": True}, "no finished run of these rows"),
        ("irregular", {"finished_only": True}, "no finished run of these rows"),
        ("pde", {"method": ("equation",), "problem": ("paper",)}, "leave --problem out"),
    ],
)
def test_a_setting_that_cannot_be_used_is_named_before_anything_is_written(name, settings, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        EXPERIMENTS[name](**settings).run(tmp_path / "results", Sweep())
    assert not (tmp_path / "results").exists()
