"""The building blocks against their formulas."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from charax.nn import (
    ACTIVATIONS,
    AveragePool,
    Chain,
    Conv,
    InstanceNorm,
    Linear,
    apply_joined,
    count_parameters,
    find_activation,
    join,
    mlp,
)

KEY = jax.random.key(0)


def normal(*shape):
    return jnp.array(np.random.default_rng(0).normal(size=shape), float)


def test_linear_on_an_image_is_a_1x1_convolution():
    layer, image = Linear(3, 5, key=KEY), normal(2, 4, 6, 3)
    convolution = Conv(3, 5, size=1, key=KEY)
    assert convolution.kernel.shape == (1, 1, *layer.weight.shape)
    assert layer.bias is not None
    expected = np.einsum("bhwi,io->bhwo", image, layer.weight) + layer.bias
    np.testing.assert_allclose(layer(image), expected, rtol=1e-5, atol=1e-6)


def test_instance_norm_gives_each_image_and_channel_mean_0_and_variance_1():
    out = jax.device_get(jax.jit(InstanceNorm(3))(5 + 3 * normal(2, 8, 8, 3)))
    np.testing.assert_allclose(out.mean((1, 2)), 0, atol=1e-5)
    np.testing.assert_allclose(out.var((1, 2)), 1, atol=1e-3)


def test_affine_instance_norm_has_two_parameters_per_channel_and_plain_has_none():
    assert count_parameters(InstanceNorm(7, affine=True)) == 14
    assert count_parameters(InstanceNorm(7)) == 0


@pytest.mark.parametrize(("side", "size"), [(28, 8), (32, 4), (8, 3), (5, 5)])
def test_average_pool_averages_the_bins_of_adaptive_pooling(side, size):
    image = np.asarray(normal(2, side, side, 3))
    edges = [(i * side // size, -(-(i + 1) * side // size)) for i in range(size)]
    expected = np.array([[image[:, a:b, c:d].mean((1, 2)) for c, d in edges] for a, b in edges])
    pooled = jax.jit(AveragePool(size))(jnp.asarray(image))
    np.testing.assert_allclose(pooled, np.moveaxis(expected, 2, 0), atol=1e-6)


def test_average_pool_refuses_to_enlarge():
    with pytest.raises(ValueError, match="smaller size"):
        AveragePool(8)(jnp.ones((1, 4, 4, 1)))


def test_join_makes_constant_channels_of_vectors():
    joined = np.asarray(join(jnp.zeros((2, 3, 4, 1)), jnp.array([[1.0, 2.0], [3.0, 4.0]])))
    assert joined.shape == (2, 3, 4, 3)
    assert (joined[0, ..., 2] == 2).all()
    assert (joined[1, ..., 1] == 3).all()


@pytest.mark.parametrize(
    "shapes",
    [
        [(1, 1), (4, 3), (4, 2)],
        [(1, 1), (4, 2), (4, 5, 6, 3), (4, 5, 6, 1)],
        [(4, 5, 6, 3), (4, 2), (4, 5, 6, 1)],
        [(1, 1), (1, 3)],
        [(1, 1), (4, 3), (4, 0)],
        [(4, 3)],
    ],
)
def test_a_network_has_the_same_output_for_pieces_as_for_the_joined_input(shapes):
    pieces = [normal(*shape) for shape in shapes]
    channels = sum(shape[-1] for shape in shapes)
    first, *others = mlp([channels, 8, 2], key=jax.random.key(1)).layers
    bare = Linear(channels, 8, bias=False, key=jax.random.key(2))
    networks = (Chain(first, *others), Chain(bare, *others), jnp.sin)
    for ours, expected in jax.jit(lambda *p: [(apply_joined(f, *p), f(join(*p))) for f in networks])(*pieces):
        np.testing.assert_allclose(ours, expected, rtol=1e-5, atol=1e-6)


def test_join_refuses_images_of_two_sizes():
    with pytest.raises(ValueError, match="image size"):
        join(jnp.zeros((2, 3, 4, 1)), jnp.zeros((2, 4, 4, 1)))


def test_mlp_counts_and_final_activation():
    network = mlp([2, 16, 3], final="relu", key=KEY)
    assert count_parameters(network) == 2 * 16 + 16 + 16 * 3 + 3
    assert (np.asarray(network(normal(50, 2))) >= 0).all()


@pytest.mark.parametrize("sizes", [[2], [2, 0, 1], []])
def test_mlp_refuses_impossible_sizes(sizes):
    with pytest.raises(ValueError, match="sizes must be"):
        mlp(sizes, key=KEY)


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations_are_deterministic_and_finite(name):
    h = jnp.array(np.linspace(-5, 5, 101))
    activation = jax.jit(find_activation(name))
    out = np.asarray(activation(h))
    assert np.isfinite(out).all()
    assert (out == activation(h)).all()


def test_softshrink_and_rrelu_agree_with_their_definitions():
    h = jnp.array([-2.0, -0.3, 0.0, 0.4, 3.0])
    np.testing.assert_allclose(find_activation("softshrink")(h), [-1.5, 0, 0, 0, 2.5], atol=1e-6)
    np.testing.assert_allclose(find_activation("rrelu")(h), [-2 * 11 / 48, -0.3 * 11 / 48, 0, 0.4, 3], rtol=1e-6)


def test_unknown_activation_lists_the_known_ones():
    with pytest.raises(ValueError, match="softplus"):
        find_activation("swosh")


def test_weights_depend_on_the_key_alone_eager_jitted_or_batched():
    build = lambda key: Linear(3, 5, key=key).weight
    keys = jax.random.split(jax.random.key(0), 3)
    eager = np.stack([build(key) for key in keys])
    assert np.array_equal(jax.jit(build)(keys[0]), eager[0])
    assert np.array_equal(jax.vmap(build)(keys), eager)
    assert len(np.unique(eager)) == eager.size
    assert jax.eval_shape(build, keys[0]).shape == (3, 5)


def test_weights_are_uniform_between_the_bounds_of_the_fan_in():
    weight = np.asarray(Linear(4, 10_000, key=jax.random.key(1)).weight)
    assert np.abs(weight).max() <= 0.5
    assert abs(weight.mean()) < 5 * 0.5 / np.sqrt(3 * weight.size)
    assert abs(weight.std() - 0.5 / np.sqrt(3)) < 1e-2
