"""Models and solutions are printed in one line."""

import equinox as eqx
import jax
import jax.numpy as jnp

import charax
from charax.models import ClassifierEnsemble, SeriesDesign, VectorArchitecture, WindowDesign
from charax.solve import Solver
from charax.tasks.regression import GaussianRegressor

KEY = jax.random.key(0)
SOLVER = Solver("euler", steps=2)


def test_a_model_is_its_field_and_its_number_of_parameters():
    model = charax.neural_ode("c-node", 2, width=4, key=KEY)
    count = f"{charax.count_parameters(model):,} parameters"
    assert repr(model) == f"NeuralODE(CharacteristicField k={model.field.characteristic_dim}, {count})"
    assert "ZeroAugment" in repr(charax.neural_ode("anode", 2, width=4, key=KEY))
    classifier = charax.VectorArchitecture("node", width=4).build((2,), 2, key=KEY)
    assert repr(classifier) == f"Classifier(PlainField, {charax.count_parameters(classifier):,} parameters)"
    flow = charax.VectorFlowDesign("node", width=4).build((2,), key=KEY)
    assert repr(flow).startswith("ContinuousFlow(")
    assert "shape (2,)" in repr(flow)
    regressor = charax.build_regressor("equation", charax.Scaling.identity(1, 2), width=4, key=KEY)
    assert repr(regressor).startswith("EquationRegressor(1 position, 2 values, ")


def test_every_model_of_a_task_is_one_line():
    flow = charax.ImageFlowDesign("node").build((4, 4, 1), key=KEY)
    forecaster = charax.ForecasterDesign("c-node", width=4).build(charax.Scaling.identity(0, 2), key=KEY)
    window = WindowDesign(width=4).build(2, 1, key=KEY)
    ensemble = ClassifierEnsemble.build(
        lambda key: VectorArchitecture("node", width=4).build((3,), 2, key=key), 5, key=KEY
    )
    series = [SeriesDesign(method, width=4).build(3, 2, key=KEY) for method in ("cde", "c-node", "gru")]
    shown = [repr(model) for model in (flow, forecaster, window, ensemble, GaussianRegressor(ensemble, 2), *series)]
    assert all("\n" not in line and line.endswith(" parameters)") and len(line) < 120 for line in shown), shown
    assert shown[1].startswith("Forecaster(CharacteristicField k=8, 2 values, ")
    assert shown[3].startswith("ClassifierEnsemble(5 members, PlainField, ")


def test_a_solver_is_how_it_was_made():
    assert repr(SOLVER) == "Solver('euler', steps=2)"
    solver = Solver("bosh3", rtol=1e-3, atol=1e-6, adjoint="backsolve")
    assert repr(solver) == "Solver('bosh3', rtol=0.001, atol=1e-06, adjoint='backsolve')"
    assert repr(jax.tree.map(lambda leaf: None, solver)) == "Solver(None, rtol=…, atol=…, adjoint='backsolve')"


def test_a_solution_is_its_shapes_its_outcome_and_its_count():
    decay = charax.PlainField(lambda u: -u, reads=("u",))
    solution = SOLVER.solve(decay, jnp.ones((3, 1)), at=jnp.array([0.0, 1.0]))
    assert repr(solution) == "Solution(u: float32[3, 1], trajectory: float32[2, 3, 1], success, nfe 2)"
    failed = eqx.tree_at(lambda one: one.outcome, solution, jnp.array([0, 1, 1]))
    assert "2 of 3 failed" in repr(failed)


def test_under_jit_a_solution_is_its_shapes():
    shown = []

    @eqx.filter_jit
    def solve(u):
        solution = SOLVER.solve(charax.PlainField(lambda u: -u, reads=("u",)), u)
        shown.append(repr(solution))
        return solution.u

    solve(jnp.ones((3, 1)))
    assert shown == ["Solution(u: float32[3, 1])"]
