"""Every field of `SolverConfig` replaces what the preset has, and nothing else."""

import dataclasses

import pytest

from charax.solve import Solver
from charax.train import SolverConfig, from_json, to_json

FIXED = Solver("midpoint", steps=6, adjoint="checkpoint")
ADAPTIVE = Solver("dopri5", rtol=1e-5, atol=1e-6)


def shown(solver: Solver) -> dict[str, object]:
    fields = {field.name: getattr(solver, field.name) for field in dataclasses.fields(solver)}
    return {**fields, "rtol": float(solver.rtol), "atol": float(solver.atol)}


CASES = {
    "solver": (FIXED, {"solver": "heun"}, {"method": "heun"}),
    "steps": (ADAPTIVE, {"steps": 3}, {"steps": 3}),
    "rtol": (ADAPTIVE, {"rtol": 1e-2}, {"rtol": 1e-2, "atol": 1e-2}),
    "atol": (ADAPTIVE, {"atol": 1e-2}, {"atol": 1e-2}),
    "adjoint": (FIXED, {"adjoint": "backsolve"}, {"adjoint": "backsolve"}),
    "precision": (FIXED, {"precision": "bfloat16"}, {"precision": "bfloat16"}),
}


@pytest.mark.parametrize("field", [field.name for field in dataclasses.fields(SolverConfig)])
def test_every_field_changes_what_it_names_and_nothing_else(field):
    default, given, changed = CASES[field]
    assert shown(SolverConfig(**given).build(default)) == {**shown(default), **changed}


@pytest.mark.parametrize("default", [FIXED, ADAPTIVE])
def test_nothing_given_is_the_preset(default):
    assert shown(SolverConfig().build(default)) == shown(default)


def test_tolerances_make_a_preset_of_fixed_steps_adaptive():
    solver = SolverConfig(solver="dopri5", rtol=1e-4, atol=1e-6).build(FIXED)
    assert (solver.method, solver.steps, float(solver.rtol), float(solver.atol)) == ("dopri5", None, 1e-4, 1e-6)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"steps": 2, "rtol": 0.1}, "steps and tolerances exclude each other"),
        ({"steps": 2, "atol": 0.1}, "steps and tolerances exclude each other"),
        ({"solver": "euler", "rtol": 0.1}, "euler takes fixed steps only.*add --solver bosh3"),
        ({"solver": "euler", "atol": 0.1}, "euler takes fixed steps only"),
        ({"solver": "runge"}, "runge"),
        ({"steps": 0}, "steps must be at least 1, got 0"),
        ({"solver": "dopri5", "rtol": -1.0}, "rtol must be a number above 0"),
        ({"adjoint": "sideways"}, "unknown adjoint 'sideways'; choose from checkpoint, backsolve, direct"),
    ],
)
def test_what_does_not_go_together_is_refused_with_the_fix(given, words):
    with pytest.raises(ValueError, match=words):
        SolverConfig(**given).build(FIXED)


def test_what_needs_all_digits_refuses_bfloat16():
    assert SolverConfig(precision="float32").build(FIXED, exact=True).precision is None
    with pytest.raises(ValueError, match="--precision bfloat16 is for classifiers and regressors"):
        SolverConfig(precision="bfloat16").build(FIXED, exact=True)


def test_a_config_of_an_earlier_version_has_the_default_of_what_was_added_later():
    stored = to_json(SolverConfig(steps=3))
    assert "precision" not in stored
    assert from_json(SolverConfig, stored, "the file") == SolverConfig(steps=3)
    low = SolverConfig(precision="bfloat16")
    assert from_json(SolverConfig, to_json(low), "the file") == low
