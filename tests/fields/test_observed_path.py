"""Paths through observations: that they meet them, what they know when, and what is refused."""

import diffrax as dfx
import hypothesis
import hypothesis.extra.numpy as hnp
import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.interpolate import CubicSpline

from charax.fields import CharacteristicField, Condition, FunctionJacobian, ObservedPath, ObservedVelocity
from charax.fields._observed_checks import check_observations
from charax.solve import Solver

pytestmark = pytest.mark.usefixtures("x64")

KINDS = ("hermite", "natural", "linear", "rectilinear")
CAUSAL = ("hermite", "rectilinear")
NAN = np.nan

# The knots lie on twelfths of the span, so that steps can end there.
TIMES = np.array([[0, 2, 3, 6, 11, 12.0], [1, 2, 4, 7, NAN, -5], [3, 4, 4.5, 5.5, 6, 8.0]])
LENGTHS = np.array([6, 4, 5])
VALUES = np.array(
    [
        [[0.3, NAN], [1.0, NAN], [NAN, 0.8], [-0.5, 1.0], [0.2, NAN], [0.4, -0.7]],
        [[NAN, 0.5], [0.7, 0.1], [-0.2, -0.9], [0.6, NAN], [9.0, NAN], [NAN, 7.0]],
        [[0.9, -0.4], [NAN, NAN], [0.1, 0.6], [0.8, 0.2], [-0.3, 0.5], [5.0, 5.0]],
    ]
)
COMPLETE = np.random.default_rng(0).normal(size=VALUES.shape)


def path_of(kind: str, values=VALUES, lengths=LENGTHS) -> ObservedPath:
    """The observations over the time from 0 to 12, with counts: every test of a kind shares one compiled function."""
    return ObservedPath.interpolate(TIMES, values, lengths, interpolation=kind, counts=True, span=(0, 12))


def test_hermite_pieces_are_those_of_diffrax():
    path, times = path_of("hermite", COMPLETE), jnp.asarray(TIMES[0])
    theirs = dfx.backward_hermite_coefficients(times, jnp.asarray(COMPLETE[0]))
    for power, coefficients in enumerate(reversed(theirs)):
        np.testing.assert_allclose(path.pieces[0, :-1, power, 1:3] / 12**power, coefficients, atol=1e-12)


@pytest.mark.parametrize("kind", ["linear", "rectilinear"])
def test_linear_pieces_over_missing_values_are_those_of_diffrax(kind):
    path, times, values = path_of(kind), jnp.asarray(TIMES[0]), jnp.asarray(VALUES[0])
    if kind == "linear":
        corners = dfx.linear_interpolation(times, values)
        corners = jnp.nan_to_num(corners, nan=0.8)  # before the first observation of a channel, which is that
    else:
        _, corners = dfx.rectilinear_interpolation(times, values, replace_nans_at_start=jnp.zeros(2))
    np.testing.assert_allclose(path.pieces[0, :, 0, 1:3], corners, atol=1e-12)


def test_natural_splines_go_through_each_channels_own_observations():
    path = path_of("natural")
    for sample, channel in np.ndindex(3, 2):
        seen = np.flatnonzero(~np.isnan(VALUES[sample, : LENGTHS[sample], channel]))
        times, values = TIMES[sample, seen], VALUES[sample, seen, channel]
        spline = CubicSpline(times, values, bc_type="natural")
        for t in np.linspace(0, 12, 25):
            expected = spline(np.clip(t, times[0], times[-1]))
            np.testing.assert_allclose(path(t / 12)[sample, 1 + channel], expected, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_a_path_meets_its_observations_and_its_derivative_is_its_slope(kind):
    path, observed = path_of(kind), ~np.isnan(VALUES)
    for i in range(6):
        used = i < LENGTHS
        there = np.asarray(path(jnp.where(used, TIMES[:, i], 0) / 12))
        np.testing.assert_allclose(there[used, 0], TIMES[used, i], atol=1e-12)
        seen = used[:, None] & observed[:, i]
        np.testing.assert_allclose(there[:, 1:3][seen], VALUES[:, i][seen], atol=1e-12)
        np.testing.assert_allclose(there[used, 3:], observed[:, : i + 1].sum(axis=1)[used], atol=1e-12)
    h = 1e-6
    for s in (0.03, 0.21, 0.4, 0.77, 0.99):
        slope = (path(s + h) - path(s - h)) / (2 * h)
        np.testing.assert_allclose(path.derivative(s), slope, rtol=1e-6, atol=1e-6)


def test_a_path_is_constant_beyond_its_observations():
    path = path_of("hermite")
    for s, sample in ((0.05, 1), (0.6, 1), (0.2, 2), (0.9, 2)):
        np.testing.assert_array_equal(path.derivative(s)[sample], 0)
    np.testing.assert_allclose(path(0.9)[1, :3], [7, 0.6, -0.9])
    np.testing.assert_allclose(path(0.05)[1], path(1 / 12)[1])
    assert path.derivative(1.0)[0, 0] > 0  # the last stage of a solve still moves
    np.testing.assert_array_equal(path.derivative(1.01), 0)


def test_scaled_channels_are_multiples():
    path, factors = path_of("hermite"), np.array([0.1, 2, 1, 0.5, -1])
    np.testing.assert_allclose(path.scale(factors)(0.3), factors * path(0.3))
    np.testing.assert_allclose(path.scale(factors).derivative(0.3), factors * path.derivative(0.3))


@pytest.mark.parametrize("kind", CAUSAL)
def test_later_observations_do_not_change_a_causal_path(kind):
    """Up to the observation before them; the rectilinear path waits until its time has come to their own."""
    before = path_of(kind)
    for i in range(1, 6):
        changed = VALUES.copy()
        changed[0, i:] = np.random.default_rng(i).normal(size=changed[0, i:].shape)
        after = path_of(kind, changed)
        last, own = TIMES[0, i - 1], TIMES[0, i]
        for t in np.linspace(0, last if kind == "hermite" else (last + own) / 2, 5):
            np.testing.assert_allclose(after(t / 12), before(t / 12), atol=1e-12)
        assert np.abs(after(own / 12) - before(own / 12)).max() > 0.01


def test_a_spline_through_all_observations_is_not_causal():
    """Otherwise the test above would prove nothing."""
    changed = VALUES.copy()
    changed[0, 3, 0] += 1
    assert np.abs(path_of("natural", changed)(0.05) - path_of("natural")(0.05)).max() > 1e-3


@pytest.mark.parametrize("kind", KINDS)
def test_a_channel_that_is_never_observed_is_zero_and_a_single_observation_a_constant(kind):
    values = VALUES.copy()
    values[1, :, 1] = NAN
    path = path_of(kind, values, np.array([6, 4, 1]))
    for s in (0.0, 0.3, 1.0):
        assert path(s)[1, 2] == path.derivative(s)[1, 2] == 0
        np.testing.assert_allclose(path(s)[2], [3, 0.9, -0.4, 1, 1])
        np.testing.assert_array_equal(path.derivative(s)[2], 0)
    assert np.isfinite(path.context()).all()


@pytest.mark.parametrize("length", [1, 2])
def test_natural_splines_of_short_series(length):
    path = ObservedPath.interpolate(TIMES[:1, :length], COMPLETE[:1, :length], interpolation="natural")
    np.testing.assert_allclose(path(1.0)[0], [TIMES[0, length - 1], *COMPLETE[0, length - 1]], atol=1e-12)


@hypothesis.settings(max_examples=3)
@hypothesis.given(data=st.data(), kind=st.sampled_from(KINDS), counts=st.booleans())
def test_shapes_and_finite_numbers_for_any_observations(data, kind, counts):
    batch, length, channels = (data.draw(st.integers(1, largest)) for largest in (3, 4, 2))
    lengths = data.draw(hnp.arrays(int, batch, elements=st.integers(1, length)))
    number = st.floats(-10, 10)
    values = data.draw(hnp.arrays(float, (batch, length, channels), elements=number | st.just(NAN)))
    steps = data.draw(hnp.arrays(float, (batch, length), elements=st.floats(0.01, 10)))
    path = ObservedPath.interpolate(np.cumsum(steps, 1), values, lengths, interpolation=kind, counts=counts)
    k = 1 + channels * (1 + counts)
    assert path.channels == k
    assert path.start.shape == path.derivative(0.5).shape == (batch, k)
    assert np.isfinite(path.context()).all()


# What cannot be interpolated

BAD = {
    "backwards": ({"times": (2, 3, 1.0)}, "the times of sample 2 must increase, but 1.0 at position 3 follows 4.5"),
    "repeated": ({"times": (1, 1, 1.0)}, "the times of sample 1 must increase"),
    "nan": ({"times": (0, 4, NAN)}, "a time of sample 0 is not finite"),
    "infinite": ({"values": (2, 0, np.inf)}, "a value of sample 2 is infinite"),
    "empty": ({"lengths": (1, ..., 0)}, "sample 1 has length 0"),
    "long": ({"lengths": (2, ..., 7)}, "sample 2 has length 7"),
}


@pytest.mark.parametrize(("change", "message"), BAD.values(), ids=list(BAD))
def test_bad_observations_name_the_sample(change, message):
    arrays = {"times": TIMES.copy(), "values": VALUES.copy(), "lengths": LENGTHS.copy()}
    for name, (sample, position, value) in change.items():
        arrays[name][sample, position] = value
    with pytest.raises(ValueError, match=message):
        ObservedPath.interpolate(**arrays)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ((TIMES, VALUES[:, 0], None), "values must be"),
        ((TIMES[:, :5], VALUES, None), "times must be"),
        ((TIMES, VALUES, LENGTHS[:2]), "lengths must be 3 integers"),
        ((TIMES, np.ones((3, 6, 2), int), None), "floating point"),
        ((TIMES[:, :0], VALUES[:, :0], None), "nothing to interpolate"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(arrays, message):
    with pytest.raises(ValueError, match=message):
        check_observations(*arrays)


def test_what_is_not_an_interpolation_a_span_or_a_path_is_refused():
    with pytest.raises(ValueError, match="later one"):
        ObservedPath.interpolate(TIMES, VALUES, LENGTHS, span=(1, 1))
    with pytest.raises(ValueError, match="at least 1 channel"):
        ObservedVelocity(0)
    u = jnp.ones((3, 1))
    with pytest.raises(ValueError, match="pass context=path"):
        ObservedVelocity(2)(0.0, None, u, Condition())
    context = ObservedPath.interpolate(TIMES, VALUES, LENGTHS).context()
    with pytest.raises(ValueError, match="not a path with 1 channels"):
        ObservedVelocity(1)(0.0, None, u, Condition(context=context))


def test_bad_times_under_jit_make_their_sample_nan():
    times = TIMES.copy()
    times[1, 2] = 0
    context = jax.jit(lambda times: ObservedPath.interpolate(times, VALUES, LENGTHS).context())(times)
    assert np.isnan(context[1]).any()
    assert np.isfinite(context[::2]).all()
    field = CharacteristicField(ObservedVelocity(3), FunctionJacobian(lambda x, u: jnp.stack([u, u, u], axis=1), 3))
    with pytest.raises(ValueError, match="context is not finite in sample 1"):
        Solver("midpoint", steps=24).solve(field, jnp.ones((3, 1)), context=context)


@pytest.mark.parametrize("kind", KINDS)
def test_aligned_knots_are_shared_and_the_curve_is_the_same(kind):
    path = ObservedPath.interpolate(TIMES, VALUES, LENGTHS, interpolation=kind)
    aligned = ObservedPath.interpolate(TIMES, VALUES, LENGTHS, interpolation=kind, aligned=True)
    number = aligned.num_pieces
    assert number == (10 if kind == "rectilinear" else 5)
    np.testing.assert_allclose(aligned.knots[0, :-1], np.arange(number) / number)
    for row in range(number):
        for local in (0.0, 0.4, 0.9):
            s = path.knots[:, row] + local * jnp.diff(path.knots, axis=1)[:, row]
            np.testing.assert_allclose(aligned((row + local) / number), path(jnp.minimum(s, 1)), atol=1e-9)


def test_a_span_has_no_meaning_for_aligned_knots():
    with pytest.raises(ValueError, match="span and aligned exclude each other"):
        ObservedPath.interpolate(TIMES, VALUES, LENGTHS, span=(0, 1), aligned=True)
