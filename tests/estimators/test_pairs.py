"""Maps from pairs by matching: crossing paths are for characteristics, and straight ones for a single step."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from charax import match_pairs
from charax.estimators import MatchingRegressor
from charax.models.matching import FlowMatching, PairMap

X = np.random.default_rng(0).uniform(-1, 1, (200, 1))


@pytest.fixture(scope="module")
def reversed_by() -> dict[str, MatchingRegressor]:
    """y = −x, whose straight paths all meet at 0 in the middle."""
    settings = {"width": 16, "characteristic_dim": 2, "max_iter": 60, "learning_rate": 1e-2, "random_state": 0}
    return {method: match_pairs(X, -X[:, 0], method=method, **settings) for method in ("node", "c-node")}


def test_crossing_pairs_are_learned_by_a_c_node_and_not_by_a_node(reversed_by):
    assert reversed_by["c-node"].score(X, -X[:, 0]) > 0.98
    # The mean of all velocities at the crossing is 0: a NODE brings everything to the middle.
    assert reversed_by["node"].score(X, -X[:, 0]) < 0.1


@pytest.mark.slow
def test_straight_paths_are_nearly_one_residual_step(reversed_by):
    fitted = reversed_by["c-node"]
    one = MatchingRegressor(**fitted.get_params() | {"solver": "euler", "steps": 1, "max_iter": 1}).fit(X, -X[:, 0])
    one.ensemble_ = type(one.ensemble_)(one.ensemble_.objective, fitted.ensemble_.params, [], 0.0, False)
    assert one.score(X, -X[:, 0]) > 0.95


def test_the_shorter_of_inputs_and_outputs_is_padded():
    for inputs, outputs in ((3, 1), (1, 3)):
        model = PairMap.build("c-node", inputs, outputs, hidden=(4,), characteristic_dim=2, key=jax.random.key(0))
        x, y = jnp.ones((5, inputs)), jnp.ones((5, outputs))
        assert jax.eval_shape(model, x).shape == (5, outputs)
        loss = lambda x, y: model.match(x, y, FlowMatching(), key=jax.random.key(0))  # noqa: B023
        assert jax.eval_shape(loss, x, y).shape == (5,)


def test_other_methods_are_refused():
    with pytest.raises(ValueError, match="node or c-node, not by 'anode'"):
        PairMap.build("anode", 1, 1, key=jax.random.key(0))
