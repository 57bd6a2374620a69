"""Jacobians by name, built from one network architecture."""

from typing import get_args

import jax
import numpy as np
import pytest

from charax.fields import JACOBIANS, JacobianForm, JointJacobian, SeparateJacobian, build_jacobian
from charax.nn import Chain, Conv, mlp

K, KEY = 3, jax.random.key(0)


def network(key):
    return mlp([2, 4, 2], key=key)


def by_hand(name: str):
    if name == "separate":
        return SeparateJacobian([network(key) for key in jax.random.split(KEY, K)])
    body_key, key = jax.random.split(KEY)
    body = Chain(*network(body_key).layers[:-1])
    return JointJacobian(body, hidden=4, channels=2, characteristic_dim=K, key=key)


def test_the_names_of_configs_are_those_of_the_registry():
    assert set(get_args(JacobianForm)) == set(JACOBIANS)


@pytest.mark.parametrize("name", JACOBIANS)
def test_parameters_depend_on_the_key_as_documented(name):
    built, expected = build_jacobian(name, network, K, KEY), by_hand(name)
    assert built.characteristic_dim == K
    leaves, expected_leaves = (jax.tree.leaves(jacobian) for jacobian in (built, expected))
    for ours, theirs in zip(leaves, expected_leaves, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_an_unknown_name_lists_the_known_ones():
    with pytest.raises(ValueError, match="choose from separate, joint"):
        build_jacobian("diagonal", network, K, KEY)


def test_joint_needs_a_linear_last_layer():
    with pytest.raises(ValueError, match="last layer is Linear, got Conv"):
        build_jacobian("joint", lambda key: Chain(Conv(2, 2, key=key)), K, KEY)
