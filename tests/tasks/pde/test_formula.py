"""The formula of a learned equation, its standard errors, and its solution past the shock."""

import json

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from charax.data import SolutionSamples
from charax.models import EquationRegressor, Scaling
from charax.models._equation_field import Coefficient, EquationField
from charax.paper.equations import sample_equation
from charax.pde import Burgers, Sine, solve
from charax.solve import Solver
from charax.tasks.pde import PDEConfig, _refinement, _subsets
from charax.tasks.pde._formula import Chosen, _Candidate, _choose, _share_initial_value, search_formula
from charax.tasks.pde._formula_slots import Slot, activate_terms
from charax.tasks.pde._formula_text import Term, write_equation, write_number
from charax.tasks.pde._least_squares import Fit, distinct_rows, evaluate_errors, minimize
from charax.tasks.pde._posterior import find_shock_time
from charax.tasks.pde._refinement import current_fit, refine_equation
from charax.train import Splits
from charax.train._history import read_history

SOLVER = Solver("bosh3", steps=4)


def draw(noise: float) -> SolutionSamples:
    x, t, u = sample_equation("growth", 200, seed=[0], between=(0, 1)).values()
    u = u + noise * np.ptp(u) * np.random.default_rng(0).standard_normal(200)
    return SolutionSamples(*(part.astype(np.float32) for part in (x[:, None], t, u[:, None])))


def refined(terms: tuple[str, ...], noise: float = 0.0):
    samples = draw(noise)
    parts = [samples.take(np.arange(*ends)) for ends in ((0, 160), (160, 200))]
    formula = {"velocity_terms": terms, "source_terms": terms}
    model = EquationRegressor.build(Scaling.fit(*samples), width=6, **formula, key=jax.random.key(0))
    said: list[str] = []
    out = refine_equation(model, Splits(*parts, parts[1]), SOLVER, lambda _: ((0.0, 6.28),), said.append)
    assert said == ["fitting by least squares", "searching for a formula", "fitting an ensemble"]
    return out


NOISE = 0.005
chosen: list[Chosen] = []
"""What `found` chose."""


@pytest.fixture(scope="module")
def found():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_refinement, "search_formula", lambda *args: chosen.append(search_formula(*args)) or chosen[-1])
        return refined(("1", "u", "u**2"), NOISE)


@pytest.mark.slow
def test_the_terms_of_the_equation_are_found_with_their_coefficients(found):
    _, report = found
    terms = {term["name"]: term for term in report["terms"]}
    assert set(terms) == {"u u_x", "u"}
    for term in terms.values():
        assert term["coefficient"] == pytest.approx(1, abs=min(0.05, 4 * term["standard_error"]))
        assert 1e-4 < term["standard_error"] < 0.03
    assert report["equation"].startswith("u_t + ")
    assert report["equation"].endswith(" u")


@pytest.mark.slow
def test_the_last_fit_ends_within_a_fraction_of_a_standard_error_of_its_minimum(found):
    (end,) = chosen
    minimum = minimize(end.fit, draw(NOISE), SOLVER, steps=200, least_gain=1e-8)
    for term in end.terms:
        weights = lambda fit, part=term.part: np.asarray(fit.model.field.learned[part].formula.weights)
        scale = term.coefficient / weights(end.fit).sum()  # a term each
        assert scale * np.abs(weights(minimum) - weights(end.fit)).max() <= 0.03 * term.standard_error


@pytest.mark.slow
def test_the_formula_is_the_model(found):
    model, report = found
    u = jnp.linspace(1.0, 2.0, 5)[:, None]
    x, t = jnp.full((5, 1), 1.5), jnp.full(5, 0.5)
    by_name = {term["name"]: term["coefficient"] for term in report["terms"]}
    np.testing.assert_allclose(model.velocity(x, t, u), by_name["u u_x"] * u, rtol=1e-5)
    np.testing.assert_allclose(model.source(x, t, u), by_name["u"] * u, rtol=1e-5)
    active = current_fit(model).active
    assert float(active.field.velocity.formula.weights.sum()) == 1
    assert not any(leaf.any() for leaf in jax.tree.leaves(active.field.velocity.network))


@pytest.mark.slow
def test_the_shock_after_the_data_is_predicted(found):
    _, report = found
    assert report["shock_time"] == pytest.approx(np.log(3), rel=0.05)  # e^t - 1 = 2, where 1 + (e^t - 1)·u₀′ is first 0
    assert 0 < report["shock_time_sd"] < 0.2


@pytest.mark.slow
def test_without_the_right_terms_the_networks_stay():
    model, report = refined(("1",))
    assert report["equation"] is None
    assert report["terms"] == []
    assert np.ptp(np.asarray(model.velocity(jnp.ones((2, 1)), jnp.ones(2), jnp.array([[1.0], [2.0]])))) > 0.5


@pytest.mark.slow
def test_held_out_samples_lie_in_their_intervals(found):
    model, report = found
    assert 0.85 <= report["covered"] <= 1
    config = PDEConfig(data="paper", method="equation", points=50)
    data = config.load_data()
    with pytest.raises(ValueError, match="level must lie between"):
        config.build_task(data.spec).interval(model, data.splits, np.ones((1, 2)), level=1.5)


@pytest.mark.parametrize(
    ("value", "error", "text"),
    [
        (1.0, 0.012, "1.00(1)"),
        (0.2, 0.04, "0.20(4)"),
        (12.3, 3.0, "12(3)"),
        (0.5, 0.0, "0.5"),
        (2.0, 0.0097, "2.00(1)"),
    ],
)
def test_standard_errors_are_in_units_of_the_last_digit(value, error, text):
    assert write_number(value, error) == text


def test_of_formulas_that_cannot_be_told_apart_the_simpler_is_chosen():
    terms = {"velocity_terms": ("u", "sin(u)"), "source_terms": ("u",)}
    model = EquationRegressor.build(Scaling.identity(1, 1), width=2, key=jax.random.key(0), **terms)
    errors = np.random.default_rng(0).uniform(1, 2, 40)
    fitted = np.random.default_rng(1).uniform(1, 2, 160)
    candidate = lambda term, squared, fitted=fitted: _Candidate(
        Fit(model, model, 0.1), [Slot("velocity", term, 0)], fitted, squared
    )
    line, sine = candidate(0, errors + 5e-3), candidate(1, errors + 0.1 * np.sin(np.arange(40)))
    assert _choose([line, sine], 3).slots[0].term == 0
    assert _choose([candidate(0, 2 * errors), sine], 3).slots[0].term == 1
    assert _choose([candidate(0, errors + 5e-3, fitted + 0.1), sine], 3).slots[0].term == 1  # the fitted errors tell


@pytest.mark.slow
def test_terms_are_not_added_for_a_better_initial_value():
    terms, samples = ("1", "u", "u**2"), draw(0.0)
    train, validation = (samples.take(np.arange(*ends)) for ends in ((0, 160), (160, 200)))
    formula = {"velocity_terms": terms, "source_terms": terms}
    model = EquationRegressor.build(Scaling.fit(*samples), width=6, **formula, key=jax.random.key(0))
    few = [Slot("velocity", 1, 0), Slot("source", 1, 0)]
    fitted = lambda slots: minimize(Fit(model, activate_terms(model, slots), 1e-3), train, SOLVER, steps=100)

    def candidate(fit: Fit, slots: list[Slot]) -> _Candidate:
        return _Candidate(
            fit, slots, *(evaluate_errors(fit.model, part, SOLVER).squared for part in (train, validation))
        )

    many = candidate(fitted([*few, Slot("source", 2, 0)]), [*few, Slot("source", 2, 0)])
    right = fitted(few)
    # As if the fit of u₀ had ended early.
    worse = jax.tree.map(lambda leaf: leaf + 1e-3, right.model.initial_network)
    early = candidate(right._replace(model=eqx.tree_at(lambda it: it.initial_network, right.model, worse)), few)
    assert _choose([early, many], 6) is many
    (again,) = _share_initial_value([early, many], many, train, validation, SOLVER)
    assert _choose([early, many, again], 6) is again
    assert _share_initial_value([early, many], early, train, validation, SOLVER) == []


@pytest.mark.parametrize("most", [4000, 0], ids=["all pairs", "removed and exchanged"])
def test_terms_are_found_among_many_that_are_nearly_the_same(monkeypatch, most):
    monkeypatch.setattr(_subsets, "_MOST_SUBSETS", most)
    random = np.random.default_rng(3)
    u, v = random.uniform(0.5, 1.5, (2, 80))
    one = np.stack([u**0, u, v, u**2, v**2, u**3, v**3, u * v, np.sin(u), np.sin(v)], axis=1)
    terms = np.block([[one, np.zeros_like(one)], [np.zeros_like(one), one]])  # of two values
    target = terms[:, 1] + terms[:, 12] + 0.01 * random.standard_normal(160)
    reduced, estimate = terms.T @ terms, np.linalg.lstsq(terms, target)[0]
    assert _subsets.best_subsets(reduced, estimate, 2)[0] == (1, 12)


def test_the_equation_is_written_as_one_would():
    terms = (Term("u^2 u_x", "velocity", 1.0, 0.01), Term("u", "source", -0.2, 0.01), Term("1", "source", 0.5, 0.1))
    model = eqx.filter_eval_shape(EquationRegressor.build, Scaling.identity(1, 1), width=2, key=jax.random.key(0))
    assert write_equation(terms, model) == "u_t + 1.00(1) u^2 u_x = -0.20(1) u + 0.5(1)"
    assert write_equation((), model) == "u_t = 0"


def test_a_known_source_and_a_flux_stand_in_the_equation():
    build = lambda **kw: eqx.filter_eval_shape(
        EquationRegressor.build, Scaling.identity(1, 1), width=2, key=jax.random.key(0), **kw
    )
    terms = (Term("(u^2)_x", "velocity", 0.5, 0.01),)
    assert write_equation(terms, build(known_source=("-0.2*u**2",))) == "u_t + 0.50(1) (u^2)_x = -0.2 u^2"


def write_rows(folder, **test):
    epoch = {"epoch": 1, "step": 1, "loss": 1.0, "validation_loss": 1.0, "skipped": 0, "seconds": 1.0}
    rows = [epoch, {"best_epoch": 1, "seconds": 1.0, "test_loss": 0.5, **test}]
    (folder / "metrics.jsonl").write_text("\n".join(map(json.dumps, rows)) + "\n")


def test_a_run_with_an_equation_can_be_read(tmp_path):
    found = {"equation": "u_t + 1.00(1) u u_x = 0", "terms": [{"name": "u u_x"}], "shock_time": None}
    write_rows(tmp_path, **found)
    assert found.items() <= read_history(tmp_path)[-1].items()


def test_a_metric_that_is_text_is_refused(tmp_path):
    write_rows(tmp_path, test_loss="small")
    with pytest.raises(ValueError, match="line 2: test_loss"):
        read_history(tmp_path)


def test_repetitions_of_an_epoch_are_one_sample():
    samples = SolutionSamples(np.ones((4, 1), np.float32), np.float32([1, 2, 1, 2]), np.ones((4, 1), np.float32))
    assert distinct_rows(samples).t.tolist() == [1, 2]


@pytest.fixture(scope="module")
def burgers() -> EquationRegressor:
    """u_t + u u_x = 0 with u(x, 0) = -sin x, as if it had been learned."""
    zero = Coefficient(jnp.zeros_like, jnp.zeros_like, ("u",))
    field = EquationField(Coefficient(lambda u: u, jnp.zeros_like, ("u",)), zero, 1)
    return EquationRegressor(lambda x: -jnp.sin(x), field, Scaling.identity(1, 1))


def test_the_shock_time_is_the_first_crossing(burgers):
    domain = (-3.0, 3.0)
    assert find_shock_time(burgers, domain, 3.0) == pytest.approx(1, rel=5e-3)
    assert find_shock_time(burgers, domain, 0.5) == np.inf


@pytest.mark.slow
def test_the_report_goes_on_past_the_shock(burgers):
    config = PDEConfig(data="burgers-gaussian", method="equation", points=50)  # for the places of its samples
    loaded = config.load_data()
    sections = {each.title: each for each in config.build_task(loaded.spec).report(burgers, loaded.splits, data="mine")}
    solution, profile = sections["Solution and characteristics"], sections["Solution over time"]
    assert "first cross at t = 1." in solution.text
    assert "entropy solution" in solution.text
    (paths,) = [trace for trace in solution.figure.data if trace.name == "learned shocks"]
    assert (min(paths.y), max(paths.y)) == pytest.approx((1, 1.5), rel=0.02)
    np.testing.assert_allclose(paths.x, 0, atol=0.05)  # where the sine has its shock
    assert float(profile.figure.frames[-1].name) == pytest.approx(1.5, rel=0.02)


@pytest.mark.slow
def test_predictions_past_the_shock_are_the_entropy_solution(burgers):
    config = PDEConfig(data="burgers-sine", method="equation", points=50, solver=PDEConfig().solver)
    task = config.build_task(config.load_data().spec)
    points = np.array([[0.5, 0.5], [0.5, 2.0], [1.0, 2.0]], np.float32)
    u, valid = task.evaluate_past_shocks(burgers, points)
    known = Burgers(profile=Sine(amplitude=-1.0), domain=(-3.0, 6.0))
    truth = solve(known, jnp.asarray(points[:, :1]), jnp.asarray(points[:, 1]), after_shock="entropy")
    assert valid.all()
    np.testing.assert_allclose(u[:, 0], truth, atol=1e-3)
