"""Roots of many samples at once."""

import jax
import jax.numpy as jnp
import numpy as np

from charax.solve import find_roots


def cubic(root, row, scale):
    return scale * root**3 + root - row


def test_roots_and_their_gradients_are_those_of_the_closed_form():
    rows = jnp.array([[2.0], [10.0], [-30.0]])

    def total(scale):
        roots, found = find_roots(cubic, rows, rows, scale)
        return roots.sum(), (roots, found)

    gradient, (roots, found) = jax.jit(jax.grad(total, has_aux=True))(jnp.array(1.0))
    assert found.all()
    np.testing.assert_allclose(cubic(roots, rows, 1.0), 0, atol=1e-3)
    np.testing.assert_allclose(gradient, jnp.sum(-(roots**3) / (1 + 3 * roots**2)), rtol=1e-3)


def test_a_root_far_away_is_found_where_newtons_method_alone_diverges():
    rows = jnp.array([[0.0], [40.0], [-7.0]])
    steep = lambda root, row, _: jnp.arctan(5 * (root - row)) + 0.01 * (root - row)
    roots, found = jax.jit(lambda rows: find_roots(steep, rows + 3.0, rows, None))(rows)
    assert found.all()
    np.testing.assert_allclose(roots, rows, atol=1e-4)


def test_sample_without_a_root_is_marked_and_the_others_are_not():
    rows = jnp.array([[1.0], [-1.0]])
    find = jax.jit(lambda rows: find_roots(lambda root, row, _: root**2 - row, jnp.full((2, 1), 0.7), rows, None))
    roots, found = find(rows)
    assert found.tolist() == [True, False]
    assert roots[1, 0] == jnp.float32(0.7)
