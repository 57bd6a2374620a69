"""U-Nets: how far they see, and what is constant over an image."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from charax.nn import PooledConvs, UNet, count_halvings, squeeze, unsqueeze


@pytest.mark.parametrize(("halvings", "sees"), [(0, False), (1, True)])
def test_a_halving_lets_a_corner_see_the_middle(halvings, sees):
    """Seven 3x3 convolutions reach seven pixels; half of them at half resolution reach more."""
    network = UNet(1, width=4, halvings=halvings, key=jax.random.key(0))
    h = jnp.asarray(np.random.default_rng(0).normal(size=(1, 16, 16, 1)), jnp.float32)
    gradient = jax.grad(lambda h: jnp.sum(network(h)[0, 0, 0, :4] ** 2))(h)
    assert (np.abs(gradient[0, 8, 8, 0]) > 0) == sees
    assert np.abs(gradient[0, 2, 2, 0]) > 0


def test_time_and_context_shift_every_pixel_and_the_input_is_passed_on():
    network = UNet(2, width=4, timed=True, context=3, key=jax.random.key(0))
    h = np.random.default_rng(0).normal(size=(2, 4, 4, 6)).astype(np.float32)
    h[..., 0], h[..., 3:] = 0.5, 0.0
    out = network(jnp.asarray(h))
    np.testing.assert_array_equal(out[..., 4:], h[..., 1:3])
    for channel in (0, 3):
        moved = h.copy()
        moved[0, ..., channel] += 1.0
        other = network(jnp.asarray(moved))
        assert (np.abs(other - out)[0, ..., :4].max(axis=-1) > 0).all()
        np.testing.assert_allclose(other[1], out[1], atol=1e-6)  # no other image


def test_pooled_convolutions_do_not_know_where_something_is_but_what_and_when():
    network = PooledConvs(1, 3, width=4, timed=True, key=jax.random.key(0))
    h = np.zeros((3, 12, 12, 2), np.float32)
    h[0, 5, 5, 1] = h[1, 6, 7, 1] = h[2, 5, 5, 1] = 1.0  # far from the border
    h[2, ..., 0] = 1.0
    out = network(jnp.asarray(h))
    np.testing.assert_allclose(out[0], out[1], rtol=1e-4, atol=1e-6)
    assert np.abs(out[0] - out[2]).max() > 1e-3


@pytest.mark.parametrize(
    ("shape", "at_most", "expected"),
    [((28, 28), 5, 2), ((28, 28), 1, 1), ((32, 16), 9, 3), ((6, 6), 3, 1), ((2, 2), 1, 0)],
)
def test_sides_are_halved_while_they_are_even_and_at_least_four(shape, at_most, expected):
    assert count_halvings(shape, at_most) == expected


def test_a_squeeze_keeps_squares_together():
    u = jnp.arange(16.0).reshape(1, 4, 4, 1)
    assert squeeze(u)[0, 0, 0].tolist() == [0, 1, 4, 5]
    np.testing.assert_array_equal(unsqueeze(squeeze(u)), u)
