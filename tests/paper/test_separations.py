"""Problems where theory says who must win: the data, the sizes, and who wins."""

import numpy as np
import pytest

from charax.paper import _separation_training as training
from charax.paper._comparison import largest_width
from charax.paper.separations import PROBLEMS, VARIANTS, Separations
from charax.train import Sweep


@pytest.mark.parametrize("name", PROBLEMS)
def test_points_have_the_dimension_of_the_problem_and_a_target_each(name):
    problem = PROBLEMS[name]
    u, y = training.draw(name, 50, seed=0)
    assert u.shape == (50, problem.dim)
    assert y.shape == ((50, 1) if problem.kind == "classify" else u.shape)
    if problem.kind == "classify":
        assert set(np.unique(y)) == {0, 1}
    assert not np.array_equal(training.draw(name, 50, seed=1)[0], u) or name == "swap"  # two points only


def test_targets_are_those_that_are_described():
    u, y = training.draw("swap", 4, seed=0)
    np.testing.assert_array_equal(np.column_stack([u, y]), [[0, 1], [1, 0], [0, 1], [1, 0]])
    for name, target in (
        ("reverse", lambda u: -u),
        ("rotation", lambda u: -u),
        ("fold", lambda u: np.abs(u) * [1, 0] + u * [0, 1]),
    ):
        u, y = training.draw(name, 50, seed=0)
        np.testing.assert_allclose(y, target(u))
    for name in ("spheres-1", "spheres-2", "spheres-3", "spheres-5"):
        u, y = training.draw(name, 50, seed=0)
        radius = np.linalg.norm(u, axis=1)
        assert radius[y[:, 0] == 0].max() <= 0.5
        assert radius[y[:, 0] == 1].min() >= 1
    u, y = training.draw("xor", 50, seed=0)
    np.testing.assert_array_equal(y[:, 0], u[:, 0] * u[:, 1] > 0)


@pytest.mark.parametrize("label", ["node", "anode-5", "2nd-order"])
def test_a_variant_has_at_most_the_parameters_of_the_reference(label):
    (variant,) = (variant for variant in VARIANTS if variant.label == label)
    problem = PROBLEMS["spheres-2"]
    target = training.count(problem, training._REFERENCE, training._WIDTH)
    width = largest_width(lambda size: training.count(problem, variant, size), target)
    assert 0.8 * target <= training.count(problem, variant, width) <= target


@pytest.mark.slow
def test_a_plain_node_cannot_swap_two_points_and_a_c_node_that_reads_u0_can(tmp_path):
    experiment = Separations(problem=("swap",), variant=("node", "c-node-k2-u0"), seeds=2, steps=300)
    node, c_node = experiment.run(tmp_path, Sweep()).answer["rows"]
    assert node["error_mean"] > 0.45
    assert c_node["error_mean"] < 0.1


def test_paths_are_matched_for_maps_only():
    matched = [variant for variant in VARIANTS if variant.matched or variant.method == "mlp"]
    assert {variant.label for variant in matched} == {"node-matched", "c-node-k2-u0-matched", "mlp"}
    assert all(
        variant.suits(problem) == (problem.kind == "map") for variant in matched for problem in PROBLEMS.values()
    )


def test_variants_for_maps_are_refused_without_a_map(tmp_path):
    experiment = Separations(problem=("xor", "spirals"), variant=("mlp", "node-matched"))
    with pytest.raises(
        ValueError, match="variant mlp, node-matched can only learn maps: choose from the problems swap, reverse"
    ):
        experiment.run(tmp_path, Sweep())


@pytest.mark.slow
def test_crossing_paths_are_matched_by_a_c_node_that_reads_u0_and_not_by_a_plain_node(tmp_path):
    labels = ("node-matched", "c-node-k2-u0-matched", "mlp")
    experiment = Separations(problem=("reverse",), variant=labels, seeds=2, steps=300)
    node, c_node, perceptron = experiment.run(tmp_path, Sweep()).answer["rows"]
    assert node["error_mean"] > 0.45  # everything goes to the middle, where all paths cross
    assert c_node["error_mean"] < 0.05
    assert perceptron["error_mean"] < 0.05
    assert c_node["nfe"] < 15  # straight paths
