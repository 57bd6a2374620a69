"""Traces of Jacobians: exact, or unbiased estimates."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from charax.fields import PlainField
from charax.models.flows import ContinuousFlow, ExactTrace, Hutchinson, HutchPlusPlus
from charax.solve import Solver

ESTIMATES = {
    "rademacher": Hutchinson(),
    "gaussian": Hutchinson(distribution="gaussian"),
    "hutch++": HutchPlusPlus(products=3),
}


def _matrix(size: int):
    """A known, unsymmetric Jacobian whose singular values decay, as those of learned fields do."""
    left, right = (np.linalg.qr(np.random.default_rng(i).normal(size=(size, size)))[0] for i in (0, 1))
    return (left @ np.diag(0.5 ** np.arange(size)) @ right + 0.02 * np.eye(size)).astype(np.float32)


def _estimates(trace, number: int, size: int = 12):
    """Estimates of the trace and of the squared norm, and the exact ones."""
    matrix, u = _matrix(size), jnp.asarray(np.zeros((1, size), np.float32))

    @jax.jit
    def estimate():
        keys = jax.random.split(jax.random.key(3), number)
        return jax.vmap(lambda key: trace(lambda u: u @ matrix.T, u, trace.draw(key, u))[1:])(keys)

    traces, squared_norms = (np.asarray(values)[:, 0] for values in estimate())
    return traces, squared_norms, np.trace(matrix), np.sum(matrix**2)


@pytest.mark.parametrize("distribution", ["rademacher", "gaussian"])
def test_hutchinson_is_unbiased(distribution):
    traces, squared_norms, exact, exact_norm = _estimates(Hutchinson(distribution=distribution), 4096)
    assert abs(traces.mean() - exact) <= 4 * traces.std() / np.sqrt(4096)
    assert traces.std() > 0.01
    assert abs(squared_norms.mean() - exact_norm) < 0.1 * exact_norm


def test_hutch_plus_plus_varies_less_than_hutchinson_for_as_many_products():
    plain, _, exact, exact_norm = _estimates(Hutchinson(probes=12), 512)
    better, squared_norms, *_ = _estimates(HutchPlusPlus(products=12), 512)
    assert abs(better.mean() - exact) <= 4 * better.std() / np.sqrt(512)
    assert better.var() < 0.5 * plain.var()
    assert abs(squared_norms.mean() - exact_norm) < 0.1 * exact_norm


@pytest.mark.parametrize("size", [3, 6])
def test_exact_trace_and_norm_are_exact(size):
    matrix = _matrix(size)
    found = jax.jit(lambda u: ExactTrace()(lambda u: u @ matrix.T, u, None))(np.ones((2, size), np.float32))
    np.testing.assert_allclose(found.trace, np.full(2, np.trace(matrix)), rtol=1e-5)
    np.testing.assert_allclose(found.squared_norm, np.full(2, np.sum(matrix**2)), rtol=1e-5)


@pytest.mark.parametrize("name", ESTIMATES)
def test_an_estimated_trace_has_the_same_directions_at_every_step_of_a_solve(name):
    trace, matrix = ESTIMATES[name], _matrix(4)
    field = PlainField(
        lambda u: u @ matrix.T, reads=("u",)
    )  # a constant Jacobian, so that only directions could differ
    flow = ContinuousFlow(field, (4,))

    @jax.jit
    def both(u, key):
        result = flow.forward(u, solver=Solver("euler", steps=4), trace=trace, key=key)
        return result.log_det, trace(field.network, u, trace.draw(key, u)).trace

    log_det, expected = both(np.ones((2, 4), np.float32), jax.random.key(1))
    np.testing.assert_allclose(log_det, expected, rtol=1e-5)
    assert not np.allclose(log_det, np.trace(matrix), rtol=1e-3)  # it really is an estimate


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Hutchinson(probes=0), "at least 1"),
        (lambda: HutchPlusPlus(products=4), "3, 6, 9"),
        (lambda: HutchPlusPlus(products=9).draw(jax.random.key(0), jnp.ones((1, 4))), "use ExactTrace"),
    ],
)
def test_bad_input_is_a_sentence(make, words):
    with pytest.raises(ValueError, match=words):
        make()
