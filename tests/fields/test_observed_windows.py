"""The log-ODE method: log-signatures over windows, Lie brackets, and what becomes of the solution."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from charax.fields import (
    AbstractJacobian,
    CharacteristicField,
    FunctionJacobian,
    JoinedVelocity,
    JointJacobian,
    LieBracketJacobian,
    NetworkVelocity,
    ObservedPath,
    ObservedVelocity,
    log_signature,
)
from charax.nn import mlp
from charax.solve import Solution, Solver

pytestmark = pytest.mark.usefixtures("x64")

CHANNELS, STATE = 3, 3
NOISE = np.random.default_rng(0)
U0 = np.array([[0.3, -0.5, 0.8], [1.0, 0.2, -0.4]])


def jacobian_of(columns: int = CHANNELS, *, reads_x: bool = False) -> JointJacobian:
    body_key, key = jax.random.split(jax.random.key(1))
    body = mlp([STATE + reads_x * columns, 6], final="tanh", key=body_key)
    return JointJacobian(body, hidden=6, channels=STATE, characteristic_dim=columns, reads_x=reads_x, key=key)


def spiral(length: int, grid: int) -> ObservedPath:
    """Two channels that turn about each other, so that a window's area matters, at irregular times on a grid."""
    inner = np.sort(NOISE.choice(np.arange(1, grid), length - 2, replace=False))
    times = np.concatenate([[0], inner, [grid]])[None] / grid
    values = 0.3 * np.stack([np.cos(40 * times), np.sin(44 * times)], axis=2)
    return ObservedPath.interpolate(times, values, interpolation="linear")


def solve(path: ObservedPath, jacobian: AbstractJacobian, method: str, steps: int) -> Solution:
    field = CharacteristicField(ObservedVelocity(path.channels), jacobian)
    u0 = jnp.tile(jnp.asarray(U0[:1]), (len(path.knots), 1))
    return Solver(method, steps=steps, adjoint="direct").solve(field, u0, context=path.context())


def test_a_log_signature_is_increments_and_areas():
    path = ObservedPath.interpolate(
        np.array([[0, 1, 3, 4.0]]), np.array([[[0.0, 1], [2, 0], [1, 3], [2, 2]]]), interpolation="linear"
    )
    summary = log_signature(path, 2)
    np.testing.assert_allclose(summary.knots[0, :2], [0, 0.5])
    corners = np.array([[0, 0, 1], [1, 2, 0], [2, 1.5, 1.5], [3, 1, 3], [4, 2, 2]])
    for window, points in enumerate((corners[:3], corners[2:])):
        y, steps = points[:-1] - points[0], np.diff(points, axis=0)
        areas = [(y[:, i] @ steps[:, j] - y[:, j] @ steps[:, i]) / 2 for i, j in ((0, 1), (0, 2), (1, 2))]
        np.testing.assert_allclose(summary.pieces[0, window, 1] / 2, [*steps.sum(axis=0), *areas], atol=1e-12)
    np.testing.assert_allclose(summary(1.0)[0, :3], path(1.0)[0])
    np.testing.assert_allclose(log_signature(path, 2, depth=1).pieces, summary.pieces[:, :, :, :3])


def test_areas_of_cubic_pieces_are_those_of_a_fine_polygon():
    """Here for samples that begin after s = 0 and end before 1."""
    times, values = np.array([[1, 2, 4, 7, 8.0], [2, 3, 5, 6, 0.0]]), NOISE.normal(size=(2, 5, 2))
    path = ObservedPath.interpolate(times, values, np.array([5, 4]), span=(0, 10))
    fine = jax.vmap(path)(np.linspace(0, 1, 3001))
    polygon = ObservedPath.interpolate(
        np.tile(np.linspace(0, 1, 3001), (2, 1)), np.moveaxis(np.asarray(fine), 0, 1), interpolation="linear"
    )
    summary, reference = log_signature(path, 3), log_signature(polygon, 3)
    # The polygon has a time of its own as its first channel: compare the areas between the three others.
    pairs = {(i, j): 4 + n for n, (i, j) in enumerate(zip(*np.triu_indices(4, 1), strict=True))}
    k = [1, 2, 3, pairs[1, 2], pairs[1, 3], pairs[2, 3]]
    np.testing.assert_allclose(summary.pieces[:, :3, 1], reference.pieces[:, :3, 1][:, :, k], atol=1e-4)


@pytest.mark.parametrize("reads_x", [False, True])
def test_brackets_are_the_commutators_of_the_columns(reads_x):
    jacobian = jacobian_of(reads_x=reads_x)
    brackets = LieBracketJacobian(jacobian)
    u, x, a = jnp.asarray(U0), *(jnp.asarray(NOISE.normal(size=(2, 6))) for _ in range(2))

    @jax.jit
    def evaluate(x, u, a):
        columns = jacobian(x[:, :3], u)
        of_x, of_u = jax.vmap(jax.jacfwd(lambda x, u: jacobian(x[None], u[None])[0], (0, 1)))(x[:, :3], u)
        along = of_x + jnp.einsum("bjnm,bim->bjni", of_u, columns)  # of column j along column i
        return brackets(x, u), brackets.product(x, u, a), columns, along

    whole, product, columns, along = map(np.asarray, evaluate(x, u, a))
    assert whole.shape == (2, 6, STATE)
    np.testing.assert_allclose(whole[:, :3], columns, atol=1e-12)
    for number, (i, j) in enumerate(((0, 1), (0, 2), (1, 2))):
        np.testing.assert_allclose(whole[:, 3 + number], along[:, j, :, i] - along[:, i, :, j], atol=1e-12)
    np.testing.assert_allclose(product, np.einsum("bkn,bk->bn", whole, a), atol=1e-12)


def test_columns_that_commute_have_no_brackets():
    commuting = FunctionJacobian(lambda x, u: jnp.stack([u, 2 * u, -u], axis=1), 3)
    u = jnp.asarray(U0)
    np.testing.assert_allclose(LieBracketJacobian(commuting)(None, u)[:, 3:], 0, atol=1e-12)
    assert LieBracketJacobian(commuting).balance == commuting.balance == "u-only"


def stacked(paths: list[ObservedPath]) -> ObservedPath:
    """Paths of one sample with different numbers of windows as one batch."""
    rows = max(path.knots.shape[1] for path in paths)
    longer = lambda leaf: jnp.pad(leaf, [(0, 0), (0, rows - leaf.shape[1]), *[(0, 0)] * (leaf.ndim - 2)], mode="edge")
    return jax.tree.map(lambda *leaves: jnp.concatenate(list(map(longer, leaves))), *paths)


def test_solutions_converge_as_windows_shrink_and_sooner_with_areas():
    path, jacobian, numbers = spiral(400, 1000), jacobian_of(), (16, 32, 64)
    reference = solve(path, jacobian, "bosh3", 1000).u

    def errors(depth: int, jacobian: AbstractJacobian) -> np.ndarray:
        windows = stacked([log_signature(path, number, depth=depth) for number in numbers])
        return np.abs(solve(windows, jacobian, "bosh3", 256).u - reference).max(axis=1)

    first, second = errors(1, jacobian), errors(2, LieBracketJacobian(jacobian))
    assert np.abs(reference - U0[0]).max() > 0.1
    assert (first[1:] < first[:-1] / 2).all()
    assert (second[1:] < second[:-1] / 2).all()
    assert (second < first / 5).all()


def test_ten_thousand_observations_in_a_hundred_steps():
    path, jacobian = spiral(10_000, 10_000 - 1), jacobian_of()
    reference = solve(path, jacobian, "midpoint", 10_000 - 1).u
    solution = solve(log_signature(path, 100), LieBracketJacobian(jacobian), "midpoint", 100)
    assert int(solution.stats.nfe) == 200
    np.testing.assert_allclose(solution.u, reference, atol=1e-3)


def test_a_hybrid_has_brackets_of_its_observed_columns_only():
    jacobian = LieBracketJacobian(jacobian_of(5), observed=3)
    learned = NetworkVelocity(mlp([STATE, 4, 2], key=jax.random.key(0)), 2, reads=("u",))
    velocity = JoinedVelocity([ObservedVelocity(6), learned])
    assert CharacteristicField(velocity, jacobian).characteristic_dim == 3 + 3 + 2
    observed = LieBracketJacobian(FunctionJacobian(lambda x, u: jacobian.jacobian(None, u)[:, :3], 3))

    @jax.jit
    def products(u, a):
        rest = jnp.einsum("bkn,bk->bn", jacobian.jacobian(None, u)[:, 3:], a[:, 6:])
        return jacobian.product(None, u, a), observed.product(None, u, a[:, :6]) + rest

    ours, expected = products(jnp.asarray(U0), jnp.asarray(NOISE.normal(size=(2, 8))))
    np.testing.assert_allclose(ours, expected, atol=1e-12)


def test_windows_depths_and_columns_that_do_not_exist_are_refused():
    path = ObservedPath.interpolate(np.array([[0, 1.0]]), np.zeros((1, 2, 1)))
    with pytest.raises(ValueError, match="windows must be at least 1"):
        log_signature(path, 0)
    with pytest.raises(ValueError, match="between 1 and the Jacobian's 3 columns"):
        LieBracketJacobian(FunctionJacobian(lambda x, u: u, 3), observed=4)
