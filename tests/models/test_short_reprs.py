"""Models and solutions are printed in one line."""

import equinox as eqx
import jax
import jax.numpy as jnp

import charax
from charax.solve import Solver

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
    assert repr(regressor).startswith("EquationRegressor(1 positions, 2 values, ")


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
