"""The report of a flow."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import charax
from charax.fields import PlainField
from charax.models.flows import ContinuousFlow, Hutchinson, ImageFlowDesign, SingleScaleFlowDesign, follow_flow
from charax.models.flows._continuous import normal_log_prob
from charax.solve import Solver
from charax.tasks.density._report import density_at

SOLVER = charax.SolverConfig(solver="euler", steps=1)


def report(**settings):
    """The sections of a flow that has learned nothing."""
    config = charax.DensityConfig(width=2, solver=SOLVER, **settings)
    loaded = config.load_data()
    task = config.build_task(loaded.spec)
    return task.report(task.build(jax.random.key(0)), loaded.splits, data=config.data)


@pytest.mark.slow
def test_the_density_moves_to_the_normal_distribution(blob):
    along, samples, characteristics, trajectories = report(data=str(blob), characteristic_dim=2)
    titles = ["Density and points along s", "Samples", "Learned characteristics x(s)", "Trajectories u(s)"]
    assert [each.title for each in (along, samples, characteristics, trajectories)] == titles
    last = along.figure.frames[-1].data[0]
    across, up = np.meshgrid(last.x, last.y)
    normal = np.exp(-(across**2 + up**2) / 2) / (2 * np.pi)
    np.testing.assert_allclose(last.z, normal, rtol=1e-4)
    assert not np.allclose(along.figure.frames[0].data[0].z, last.z)
    assert characteristics.figure.data[0].type == "scatter3d"
    assert [trace.name for trace in samples.figure.data] == ["test rows", "samples"]
    # A state is a test point at s = 0, and what the other figure shows of it at the end.
    for end in (0, -1):
        states = np.concatenate([trace.z for trace in trajectories.figure.frames[end].data])
        points = along.figure.frames[end].data[1].y[: len(states)]
        np.testing.assert_allclose(np.sort(states), np.sort(points), atol=1e-5)


def test_followed_densities_are_those_of_a_picture():
    flow = ContinuousFlow(PlainField(lambda u: -u * (1 + u**2), reads=("u",)), (2,))
    solver, points = Solver("dopri5", rtol=1e-6, atol=1e-6), jnp.array([[-1.0, 0.0], [0.5, 1.0]])
    path = follow_flow(flow, points, solver=solver, points=3)
    axis, density = density_at(flow, 0.0, solver, reach=1.0, points=5)
    at = lambda point: density[np.searchsorted(axis, point[1]), np.searchsorted(axis, point[0])]
    np.testing.assert_allclose(np.exp(path.log_prob[0]), [at(point) for point in points], rtol=1e-4)
    np.testing.assert_allclose(path.loss[-1], -path.log_prob[0], rtol=1e-5)
    assert path.x is None


def test_the_density_at_s_is_that_of_the_rest_of_the_flow():
    # du/ds = -u: at s the points are exp(1 - s) times normal numbers.
    flow = ContinuousFlow(PlainField(lambda u: -u, reads=("u",)), (2,))
    axis, density = density_at(flow, 0.5, Solver("dopri5", rtol=1e-5, atol=1e-5), reach=2.0, points=5)
    scale = np.exp(0.5)
    across, up = np.meshgrid(axis, axis)
    exact = np.exp(-(across**2 + up**2) / (2 * scale**2)) / (2 * np.pi * scale**2)
    np.testing.assert_allclose(density, exact, rtol=1e-3)


@pytest.mark.slow
def test_tables_show_samples_beside_the_data(pair):
    section, density, trajectories = report(data=str(pair), method="node", conditional=True)
    assert section.title == "Samples"
    assert section.text.endswith("Each sample is drawn given the class of a test row.")
    assert section.figure.layout.xaxis.title.text == "a"
    assert (density.title, trajectories.title) == ("Density along s", "Trajectories u(s)")
    assert [trace.name for trace in density.figure.data if trace.showlegend] == ["test rows", "samples"]
    assert {trace.name for trace in trajectories.figure.data} >= {"low", "high"}


@pytest.mark.slow
def test_rows_of_many_columns_given_one_of_them_show_all_columns(tmp_path):
    x = np.random.default_rng(0).normal(size=(80, 3))
    (tmp_path / "three.csv").write_text("\n".join(["a,b,c", *(",".join(map(str, row)) for row in x)]))
    section, _, trajectories = report(data=str(tmp_path / "three.csv"), method="node", context=("b",))
    assert [trace.type for trace in section.figure.data] == ["splom", "splom"]
    rows, samples = ([dimension["values"] for dimension in trace.dimensions] for trace in section.figure.data)
    assert [dimension.label for dimension in section.figure.data[0].dimensions] == ["a", "b", "c"]
    np.testing.assert_allclose(samples[1], rows[1], atol=1e-5)  # b is given
    assert not np.allclose(samples[0], rows[0])
    assert trajectories.title == "Trajectories u(s)"
    assert section.figure.layout.yaxis3 is not None  # the page colours the axes that it finds


def test_a_density_on_a_line_moves_along_s(tmp_path):
    x = 5 + 2 * np.random.default_rng(0).normal(size=80)
    (tmp_path / "one.csv").write_text("\n".join(["a", *map(str, x)]))
    along, *_ = report(data=str(tmp_path / "one.csv"), method="node")
    density, points = along.figure.frames[-1].data
    np.testing.assert_allclose(density.y, np.exp(-(density.x**2) / 2) / np.sqrt(2 * np.pi), rtol=1e-4)
    assert not points.y.any()


IMAGE_FLOWS = {
    "several scales": ImageFlowDesign("c-node", width=4, depth=1, blocks=2),
    "one scale": SingleScaleFlowDesign("c-node", width=4, characteristic_dim=2),
}


@pytest.mark.slow
@pytest.mark.parametrize(("settings", "starts"), [({"blocks": 1}, 2), ({"objective": "matching"}, 0)])
def test_images_show_samples_and_densities_along_s(settings, starts):
    sections = report(data="digits", characteristic_dim=2, **settings)
    titles = "Samples, Samples along s, Density along s, Learned characteristics x(s), Trajectories u(s)"
    assert [each.title for each in sections] == titles.split(", ")
    samples, along, density, characteristics, _ = sections
    assert [trace.type for trace in samples.figure.data] == ["image", "image"]
    assert all(trace.source.startswith("data:image/png;base64,") for trace in samples.figure.data)
    pictures = [frame.data[0].source for frame in along.figure.frames]
    assert along.figure.frames[-1].name == "0"
    assert len(set(pictures)) == len(pictures)
    assert len(density.figure.layout.shapes) == 2 * starts  # a line per panel where the next flow starts
    colors = {trace.name: trace.marker.color for trace in characteristics.figure.data if trace.name}
    assert colors == {trace.name: trace.line.color for trace in density.figure.data if trace.showlegend}


@pytest.mark.parametrize("name", IMAGE_FLOWS)
def test_densities_along_s_are_those_of_the_flow_at_both_ends(name):
    flow = IMAGE_FLOWS[name].build((8, 8, 1), key=jax.random.key(0))
    images = jnp.asarray(np.random.default_rng(0).integers(0, 256, (3, 8, 8, 1)), jnp.float32)
    how = {"solver": Solver("midpoint", steps=2), "trace": Hutchinson(), "key": jax.random.key(1)}
    path = follow_flow(flow, images, points=3, **how)
    exact = flow.evaluate(images, **how)
    np.testing.assert_allclose(path.loss[-1], flow.loss(exact.log_prob), rtol=1e-5)
    np.testing.assert_allclose(path.log_prob[-1], normal_log_prob(exact.u), rtol=1e-5)
    np.testing.assert_allclose(np.sort(path.u[-1].ravel()), np.sort(exact.u.ravel()), atol=1e-5)
    assert path.s.tolist() == pytest.approx(np.linspace(0, len(path.starts), 2 * len(path.starts) + 1))
    # At s = 0 a state is an image, and its log-density what the flow has learned of its logits.
    pixels = np.asarray(flow.to_pixels(jnp.asarray(path.u[0])))
    np.testing.assert_allclose(np.floor(256 * pixels), images, atol=1)
    y = np.asarray(path.u[0])
    of_logits = np.log((1 - 2e-6) / (jax.nn.sigmoid(y) * jax.nn.sigmoid(-y))).reshape(3, -1).sum(1)
    np.testing.assert_allclose(path.log_prob[0] + of_logits, exact.log_prob, rtol=1e-4)
