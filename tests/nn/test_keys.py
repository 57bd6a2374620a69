"""Keys split on the host are those of JAX."""

import jax
import numpy as np
import pytest

from charax.nn import split_key


def words(keys) -> np.ndarray:
    return np.stack([jax.random.key_data(key) for key in keys])


@pytest.mark.parametrize("seed", [0, 1, 2**31 - 1])
@pytest.mark.parametrize("num", [1, 2, 5])
def test_keys_are_those_of_jax(seed, num):
    key = jax.random.key(seed)
    assert (words(split_key(key, num)) == words(jax.random.split(key, num))).all()


def test_keys_of_another_generator_and_of_a_traced_program_are_those_of_jax_too():
    other = jax.random.key(3, impl="unsafe_rbg")
    assert (words(split_key(other)) == words(jax.random.split(other))).all()
    traced = jax.jit(lambda key: jax.random.key_data(split_key(key)[1]))
    key = jax.random.key(4)
    assert (traced(key) == words(jax.random.split(key))[1]).all()
