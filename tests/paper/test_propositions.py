"""What the numbers of `charax reproduce propositions` do not show; test_reproduce.py checks those."""

import jax.numpy as jnp
import pytest

from charax.paper.propositions import _intersecting as intersecting
from charax.paper.propositions._homeomorphism import MAPS


@pytest.mark.slow
def test_trained_trajectories_really_cross_and_the_plain_ones_do_not():
    result = intersecting.run(seed=1)
    gap = result.c_node[:, 0] - result.c_node[:, 1]
    assert gap[0] < 0 < gap[-1]
    assert ((result.node[:, 0] - result.node[:, 1]) <= 1e-4).all()


def test_one_of_the_three_maps_reverses_the_orientation():
    orientations = []
    for dimension, forward, inverse in MAPS.values():
        u = jnp.linspace(-0.9, 0.8, 3 * dimension).reshape(3, dimension)
        assert jnp.allclose(inverse(forward(u)), u, atol=1e-5)
        corners = jnp.vstack([jnp.zeros(dimension), 1e-2 * jnp.eye(dimension)])
        image = forward(corners)
        orientations.append(float(jnp.linalg.det(image[1:] - image[0])) > 0)
    assert sorted(orientations) == [False, True, True]
