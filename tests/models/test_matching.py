"""Flow matching: paths, couplings and times against closed forms and SciPy; the marginal velocity is learned."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize
import scipy.stats

from charax.fields import (
    AbstractField,
    CharacteristicField,
    Condition,
    JointJacobian,
    NetworkVelocity,
    PlainField,
    Read,
)
from charax.models.flows import (
    ContinuousFlow,
    Hutchinson,
    ImageFlowDesign,
    VectorFlowDesign,
    image_flow_field,
    unet_flow_field,
    vector_flow_field,
)
from charax.models.matching import (
    PATHS,
    TIMES,
    AbstractPath,
    AbstractTimes,
    FlowMatching,
    IndependentCoupling,
    LinearPath,
    LogitNormalTimes,
    OptimalTransport,
    UniformTimes,
    couple_batches,
    exchange_partners,
)
from charax.nn import convolve, mlp
from charax.solve import Solver

GENERATOR = np.random.default_rng(0)
KEY = jax.random.key(0)


class FixedTimes(AbstractTimes):
    """All times are t."""

    t: float

    def quantile(self, q):
        return jnp.full_like(q, self.t)


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("path", PATHS.values(), ids=PATHS)
def test_velocity_of_a_path_is_the_derivative_of_its_position(path: AbstractPath):
    start, end = (jnp.asarray(GENERATOR.normal(size=(5, 3))) for _ in range(2))
    t = jnp.asarray(GENERATOR.uniform(size=5))
    _, derivative = jax.jvp(lambda t: path(start, end, t)[0], (t,), (jnp.ones(5),))
    np.testing.assert_allclose(path(start, end, t)[1], derivative, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(("name", "blur"), [("linear", 1e-7), ("cosine", 1e-7), ("variance-preserving", 0.012)])
def test_paths_lead_from_the_data_to_the_source(name, blur):
    start, end = np.ones((2, 3), np.float32), np.full((2, 3), -1.0, np.float32)
    position, _ = PATHS[name](jnp.asarray(start), jnp.asarray(end), jnp.array([0.0, 1.0]))
    np.testing.assert_allclose(position[0], start[0], atol=blur)
    np.testing.assert_allclose(position[1], end[1], atol=blur)


MEAN = np.array([0.5, -1.0])
COVARIANCE = np.array([[0.8, 0.3], [0.3, 0.4]])


class GaussianField(AbstractField):
    """The marginal velocity between N(m, S) and N(0, 1) of independent partners, E[du/dt | u], in closed form."""

    path: AbstractPath

    @property
    def characteristic_dim(self):
        return 0

    @property
    def reads(self) -> frozenset[Read]:
        return frozenset({"s", "u"})

    def __call__(self, s, x, u, z):
        a, b, a_rate, b_rate = self.path.coefficients(jnp.broadcast_to(jnp.asarray(s, u.dtype), (1,)))
        variance = a**2 * COVARIANCE + b**2 * np.eye(2)
        covariance = a * a_rate * COVARIANCE + b * b_rate * np.eye(2)
        gain = covariance @ jnp.linalg.inv(variance)
        return None, a_rate * MEAN + (u - a * MEAN) @ gain.T


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("name", ["linear", "cosine"])
def test_gaussian_to_gaussian_has_the_density_of_the_closed_form(name):
    flow = ContinuousFlow(GaussianField(PATHS[name]), (2,))
    u = GENERATOR.normal(size=(6, 2))
    log_prob = jax.jit(lambda u: flow.log_prob(u, solver=Solver("bosh3", steps=100)))(jnp.asarray(u))
    np.testing.assert_allclose(log_prob, scipy.stats.multivariate_normal(MEAN, COVARIANCE).logpdf(u), atol=1e-5)


@pytest.mark.usefixtures("x64")
def test_matching_learns_the_velocity_of_the_closed_form():
    """The best affine field at one time, by least squares over many pairs, is the marginal velocity."""
    t, n, generator = 0.3, 1_000_000, np.random.default_rng(0)
    start = generator.multivariate_normal(MEAN, COVARIANCE, n)
    end = generator.normal(size=(n, 2))
    position, velocity = LinearPath()(jnp.asarray(start), jnp.asarray(end), jnp.full(n, t))
    design = np.column_stack([position, np.ones(n)])
    fitted = np.linalg.lstsq(design, np.asarray(velocity), rcond=None)[0]
    grid = np.array([[0.0, 0.0], [1.0, -1.0], [-1.0, 2.0]])
    expected = GaussianField(LinearPath())(t, None, jnp.asarray(grid), Condition())[1]
    np.testing.assert_allclose(np.column_stack([grid, np.ones(3)]) @ fitted, expected, atol=0.02)


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("name", PATHS)
@pytest.mark.parametrize("t", [0.1, 0.5, 0.8])
def test_the_minimum_of_matching_is_the_velocity_of_the_closed_form(name, t):
    """Of affine fields between N(0.5, 0.8) and N(0, 1), with the expectation by quadrature: to 1e-9."""
    mean, variance = 0.5, 0.8
    nodes, weights = np.polynomial.hermite_e.hermegauss(12)
    start, end = (jnp.asarray(each.ravel()) for each in np.meshgrid(mean + np.sqrt(variance) * nodes, nodes))
    joint = jnp.asarray(np.outer(weights, weights).ravel() / weights.sum() ** 2)

    def loss(affine):
        field = PlainField(lambda u: affine[0] * u + affine[1], reads=("u",))
        matching = FlowMatching(path=PATHS[name], times=FixedTimes(t))
        return matching.losses(field, start[:, None], end[:, None], key=KEY) @ joint

    # The loss is quadratic, so that one step of Newton's method finds the minimum.
    found = -jnp.linalg.solve(jax.hessian(loss)(jnp.zeros(2)), jax.grad(loss)(jnp.zeros(2)))
    a, b, a_rate, b_rate = (float(each[0]) for each in PATHS[name].coefficients(jnp.array([t])))
    gain = (a * a_rate * variance + b * b_rate) / (a**2 * variance + b**2)
    np.testing.assert_allclose(found, [gain, (a_rate - gain * a) * mean], atol=1e-9)


@pytest.mark.usefixtures("x64")
def test_gradient_of_conditional_matching_is_that_of_marginal_matching():
    """On three data in one dimension, with the expectation over the source by quadrature."""
    data, t = np.array([-1.0, 0.3, 1.1]), 0.4
    network = mlp([2, 8, 1], key=KEY)
    loss_of = lambda network, start, end: FlowMatching(times=FixedTimes(t)).losses(
        PlainField(network), start[:, None], end[:, None], key=KEY
    )
    source = np.linspace(-9, 9, 2_001)
    weights = scipy.stats.norm.pdf(source) * (source[1] - source[0])
    pairs = [jnp.asarray(each.ravel()) for each in np.meshgrid(data, source)]
    conditional = jax.grad(lambda network: loss_of(network, *pairs) @ np.repeat(weights, 3) / 3)(network)

    u = np.linspace(-6, 6, 2_001)
    density = scipy.stats.norm.pdf(u[:, None], (1 - t) * data, t)  # of u(t) given each datum
    end = (u[:, None] - (1 - t) * data) / t
    marginal_velocity = (density * (end - data)).sum(1) / density.sum(1)
    weights = density.mean(1) * (u[1] - u[0])

    def marginal_loss(network):
        _, rate = PlainField(network)(t, None, jnp.asarray(u[:, None]), Condition())
        return jnp.square(rate[:, 0] - marginal_velocity) @ weights

    for found, expected in zip(*map(jax.tree.leaves, (conditional, jax.grad(marginal_loss)(network))), strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-8)


def test_coupling_is_scipys_assignment():
    start, end = GENERATOR.normal(size=(2, 30, 3))
    cost = scipy.spatial.distance.cdist(start, end, "sqeuclidean")
    np.testing.assert_array_equal(OptimalTransport()(start, end), scipy.optimize.linear_sum_assignment(cost)[1])


def test_coupling_stays_within_the_mini_batch_and_skips_padding():
    start, end = GENERATOR.normal(size=(2, 12, 2))
    order = np.array([[0, 2, 4, 6, 99], [1, 3, 5, 7, 99]])
    coupled = couple_batches(OptimalTransport(), start, end, order)
    for rows in (order[0, :4], order[1, :4]):  # of which none shares a partner
        assert {tuple(row) for row in coupled[rows]} == {tuple(row) for row in end[rows]}
        np.testing.assert_array_equal(coupled[rows], end[rows][OptimalTransport()(start[rows], end[rows])])
    np.testing.assert_array_equal(coupled[8:], end[8:])
    halves = couple_batches(OptimalTransport(), start, end, np.array([[0, 2, 4, 6, 1, 3, 5, 7, 99]]), size=4)
    np.testing.assert_array_equal(halves, coupled)


def test_exchanges_approach_the_coupling_of_all_rows():
    start, end = GENERATOR.normal(size=(2, 1_000, 2))
    cost = lambda partners: np.square(start - partners).sum()
    least = cost(end[OptimalTransport()(start, end)])
    costs = [cost(exchange_partners(start, end, rounds=rounds)) for rounds in (0, 1, 4, 16, 64)]
    assert costs == sorted(costs, reverse=True)
    assert costs[0] == cost(end)
    left = (np.array(costs) - least) / (cost(end) - least)
    assert (left[1:] < [0.4, 0.15, 0.03, 0.005]).all()
    exchanged = exchange_partners(start, end)
    assert {tuple(row) for row in exchanged} == {tuple(row) for row in end}
    other = exchange_partners(start, end, generator=np.random.default_rng(1))
    assert not np.array_equal(other, exchanged)


def test_exchanges_within_classes_are_those_of_each_class():
    start, end, classes = *GENERATOR.normal(size=(2, 300, 3)), GENERATOR.choice(["a", "b", "c"], 300)
    exchanged = exchange_partners(start, end, classes=classes, rounds=64)
    for name in "abc":
        rows = classes == name
        assert {tuple(row) for row in exchanged[rows]} == {tuple(row) for row in end[rows]}
        cost = lambda partners, rows=rows: np.square(start[rows] - partners).sum()
        least = cost(end[rows][OptimalTransport()(start[rows], end[rows])])
        assert cost(exchanged[rows]) - least < 0.05 * (cost(end[rows]) - least)


def test_exchanges_take_images_and_few_rows():
    start, end = GENERATOR.normal(size=(2, 7, 2, 2, 1))
    exchanged = exchange_partners(start, end, rounds=64)
    assert exchanged.shape == end.shape
    differences = lambda u: (u[:, None] - u[None]).reshape(7, 7, -1)
    assert (np.einsum("ijk,ijk->ij", differences(start), differences(exchanged)) >= 0).all()  # no two would gain
    np.testing.assert_array_equal(exchange_partners(start[:1], end[:1]), end[:1])


@pytest.mark.parametrize("rounds", [0, 4])
@pytest.mark.parametrize(
    ("coupling", "is_skewed"),
    [(IndependentCoupling(), False), (OptimalTransport(), False), (OptimalTransport(condition_weight=0.0), True)],
    ids=["independent", "within", "plain"],
)
def test_source_of_each_class_is_unskewed_under_coupling(coupling, is_skewed, rounds):
    """Two classes, left and right: plain coupling gives each the half of the source that is nearer to it."""
    classes = np.arange(1_024) % 2
    start = (4.0 * classes - 2 + GENERATOR.normal(size=1_024))[:, None]
    end = GENERATOR.normal(size=(1_024, 1))
    order = np.arange(1_024).reshape(-1, 128)
    coupled = couple_batches(coupling, start, end, order, classes)
    within = None if is_skewed else classes
    source = exchange_partners(start, coupled, classes=within, rounds=rounds)[classes == 1, 0]
    probability = scipy.stats.kstest(source, "norm").pvalue
    assert (probability < 1e-6) if is_skewed else (probability > 0.01)


def test_conditions_that_are_all_different_exchange_partners_with_those_nearby():
    """y = x + noise. The partner must not tell x: within 0.05 of independence, where plain coupling has 0.6."""
    x = GENERATOR.normal(size=(512, 1))
    start, end = x + 0.5 * GENERATOR.normal(size=(512, 1)), GENERATOR.normal(size=(512, 1))
    correlation = {}
    for weight in (0.0, 100.0):
        coupled = end[OptimalTransport(weight)(start, end, x)]
        correlation[weight] = np.corrcoef(coupled[:, 0], x[:, 0])[0, 1]
    independent = np.corrcoef(end[:, 0], x[:, 0])[0, 1]
    assert correlation[0.0] > 0.6
    assert abs(correlation[100.0] - independent) < 0.05
    partners = OptimalTransport(100.0)(start, end, x)
    assert (partners != np.arange(512)).mean() > 0.5


@pytest.mark.parametrize("name", TIMES)
def test_times_have_their_distribution_and_less_spread_than_independent_ones(name):
    t = np.asarray(TIMES[name].draw(KEY, 500))
    assert (t > 0).all()
    assert (t < 1).all()
    quantiles = np.asarray(TIMES[name].quantile(jnp.array([0.25, 0.5, 0.75])))
    np.testing.assert_allclose(np.quantile(t, [0.25, 0.5, 0.75]), quantiles, atol=0.01)


def test_logit_normal_quantiles_are_scipys():
    q = np.array([0.1, 0.5, 0.9])
    expected = scipy.special.expit(scipy.stats.norm(-1.0, 1.5).ppf(q))
    np.testing.assert_allclose(LogitNormalTimes(-1.0, 1.5).quantile(jnp.asarray(q)), expected, rtol=1e-5)


@pytest.mark.parametrize("method", ["node", "c-node"])
@pytest.mark.parametrize("shape", [(2,), (4, 4, 1)], ids=["rows", "images"])
def test_a_batch_with_a_time_per_sample_is_the_samples_one_by_one(method, shape):
    if len(shape) == 1:
        field = vector_flow_field(method, 2, hidden=(8,), velocity_hidden=(4,), characteristic_dim=3, key=KEY)
    else:
        field = image_flow_field(method, shape, hidden=(4,), key=KEY)
    u, t = jnp.asarray(GENERATOR.normal(size=(3, *shape)), jnp.float32), jnp.array([0.1, 0.5, 0.9])
    whole = field(t, None, u, Condition())[1]
    for i in range(3):
        np.testing.assert_allclose(whole[i], field(t[i], None, u[i : i + 1], Condition())[1][0], atol=1e-6)


@pytest.mark.parametrize("method", ["node", "c-node"])
@pytest.mark.parametrize("is_whole", [True, False])
def test_convolutions_of_a_matched_image_are_of_the_whole_batch(method, is_whole, monkeypatch):
    """Every one of them is called with all images at once; one that is mapped over samples is called with one."""
    field, seen = unet_flow_field(method, (4, 4, 1), width=4, characteristic_dim=2, key=KEY), []
    monkeypatch.setattr("charax.nn._layers.convolve", lambda h, kernel: (seen.append(len(h)), convolve(h, kernel))[1])
    u = jnp.ones((5, 4, 4, 1))
    each = lambda u, key: FlowMatching().losses(field, u[None], -u[None], key=key)[0]
    if is_whole:
        jax.eval_shape(lambda u: FlowMatching().losses(field, u, -u, key=KEY), u)
    else:
        jax.eval_shape(jax.vmap(each), u, jax.random.split(KEY, 5))
    assert set(seen) == {5 if is_whole else 1}


def test_end_time_rescales_the_field_and_not_the_loss():
    start, end = (jnp.asarray(GENERATOR.normal(size=(6, 2)), jnp.float32) for _ in range(2))
    slow = PlainField(lambda u: u / 4, reads=("u",))
    fast = PlainField(lambda u: u, reads=("u",))
    matching = FlowMatching(times=UniformTimes())
    np.testing.assert_allclose(
        matching.losses(slow, start, end, key=KEY, end_time=4.0), matching.losses(fast, start, end, key=KEY), rtol=1e-6
    )


def test_a_flow_draws_its_partners_from_its_own_base_distribution():
    flow = ContinuousFlow(PlainField(jnp.zeros_like, reads=("u",)), (1,), scale=3.0)
    losses = flow.match(jnp.zeros((20_000, 1)), FlowMatching(), key=KEY)  # the squared partner
    assert abs(float(losses.mean()) - 9) < 0.3
    given = flow.match(jnp.zeros((4, 1)), FlowMatching(), source=jnp.full((4, 1), 2.0), key=KEY)
    np.testing.assert_allclose(given, 4.0, rtol=1e-6)


def test_what_cannot_be_matched_is_refused():
    jacobian = JointJacobian(lambda u: u, hidden=3, channels=2, characteristic_dim=1, reads_x=True, key=KEY)
    reads_x = CharacteristicField(NetworkVelocity(lambda u: u[:, :1], 1, reads=("u",)), jacobian)
    with pytest.raises(ValueError, match="a field that reads x cannot be matched"):
        FlowMatching().losses(reads_x, jnp.ones((2, 2)), jnp.ones((2, 2)), key=KEY)
    scales = ImageFlowDesign("node", width=2, depth=1).build((4, 4, 1), key=KEY)
    with pytest.raises(ValueError, match="one field per scale"):
        scales.match(jnp.ones((2, 4, 4, 1)), FlowMatching(), key=KEY)
    with pytest.raises(ValueError, match="condition_weight must be at least 0"):
        OptimalTransport(-1.0)
    with pytest.raises(ValueError, match="scale above 0"):
        LogitNormalTimes(0.0, 0.0)


def test_fourier_features_are_part_of_the_design():
    plain, wavy = VectorFlowDesign("node", width=8), VectorFlowDesign("node", width=8, frequencies=5)
    groups = 1 * 9 + 2 * 9  # the frequencies of s and u
    assert wavy.count((2,)) - plain.count((2,)) == groups + (4 + 5) * 2 * 8


def test_hutchinson_agrees_with_the_exact_likelihood_within_an_error_that_falls_with_the_probes():
    """Over many keys: the mean is the exact log-density, and the spread of 16 probes is a quarter of that of one."""
    flow = VectorFlowDesign("node", width=8, depth=1, frequencies=4).build((6,), key=KEY)
    u = jnp.asarray(GENERATOR.normal(size=(4, 6)), jnp.float32)
    solver = Solver("euler", steps=2)
    keys = jax.random.split(KEY, 400)

    def estimates(probes: int) -> np.ndarray:
        one = lambda key: flow.log_prob(u, solver=solver, trace=Hutchinson(probes), key=key)
        return np.asarray(jax.jit(jax.vmap(one))(keys))

    exact, few, many = np.asarray(flow.log_prob(u, solver=solver)), estimates(1), estimates(16)
    for values in (few, many):
        error = values.std(axis=0) / np.sqrt(400)
        assert (np.abs(values.mean(axis=0) - exact) < 4 * error + 1e-5).all()
    np.testing.assert_allclose(many.std(axis=0) / few.std(axis=0), 0.25, rtol=0.25)
