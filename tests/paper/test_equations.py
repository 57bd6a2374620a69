"""What the table of equations measures against: true coefficients, shock times, and the share of truth in intervals."""

import json

import numpy as np
import pytest

from charax.paper import equations
from charax.paper._closed_forms import FLOWS
from charax.paper._coverage import first_crossing, parse_terms
from tests.paper.cases import call


def test_terms_are_those_of_velocity_and_source():
    terms = parse_terms({"u_x": 1.0, "u^2 u_x": 2.0, "sin(x) u_x": 3.0, "u": -4.0})
    values = {"x": np.array(0.5), "u": np.array(3.0)}
    found = [(term.part, term.coefficient * float(term.evaluate(values))) for term in terms]
    assert found == [("velocity", 1), ("velocity", 18), ("velocity", pytest.approx(3 * np.sin(0.5))), ("source", -12)]


@pytest.mark.parametrize(
    ("problem", "time"),
    [("burgers", 1), ("traffic", np.exp(0.5) / 1.2), ("growth", np.log(3)), ("reaction", None), ("medium", None)],
)
def test_the_first_crossing_is_that_of_the_closed_form(problem, time):
    found = first_crossing(FLOWS[problem], equations.EQUATIONS[problem].feet, 3.0)
    assert found == (None if time is None else pytest.approx(time, rel=1e-5))


@pytest.mark.slow
def test_intervals_of_a_learned_equation_contain_what_they_should(tmp_path):
    flags = "--method equation --problem burgers --noise 0.05 --points 300 --seeds 1 --budget cpu"
    status, out, err = call("reproduce", "equations", *flags.split(), "--output", tmp_path, "--json")
    assert status == 0, err
    (row,) = json.loads(out)["rows"]
    assert 0.85 <= row["coverage"] <= 1
    for name in ("solution", "velocity", "source"):
        assert 0.5 < row[f"coverage_{name}"] <= 1
    assert row["coverage_shock_time"] in (0, 1)
