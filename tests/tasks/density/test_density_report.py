"""The report of a flow."""

import jax
import numpy as np
import pytest

import charax
from charax.fields import PlainField
from charax.models.flows import ContinuousFlow, SingleScaleFlowDesign
from charax.solve import Solver
from charax.tasks.density._image_report import images_along
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
    section, trajectories = report(data=str(pair), method="node", conditional=True)
    assert section.title == "Samples"
    assert section.text.endswith("Each sample is drawn given the class of a test row.")
    assert section.figure.layout.xaxis.title.text == "a"
    assert trajectories.title == "Trajectories u(s)"
    assert {trace.name for trace in trajectories.figure.data} >= {"low", "high"}


@pytest.mark.slow
def test_rows_of_many_columns_given_one_of_them_show_all_columns(tmp_path):
    x = np.random.default_rng(0).normal(size=(80, 3))
    (tmp_path / "three.csv").write_text("\n".join(["a,b,c", *(",".join(map(str, row)) for row in x)]))
    section, trajectories = report(data=str(tmp_path / "three.csv"), method="node", context=("b",))
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


@pytest.mark.slow
def test_images_show_samples_beside_the_data():
    (section,) = report(data="digits", method="node", blocks=1)
    assert [trace.type for trace in section.figure.data] == ["image", "image"]
    assert all(trace.source.startswith("data:image/png;base64,") for trace in section.figure.data)


def test_samples_of_a_flow_of_one_scale_come_from_noise():
    flow = SingleScaleFlowDesign("node", width=4).build((4, 4, 1), key=jax.random.key(0))
    s, images = images_along(flow, Solver("midpoint", steps=2), None, count=3, points=5)
    assert (s[0], s[-1]) == (1, 0)
    drawn = flow.sample(3, key=jax.random.key(0), solver=Solver("midpoint", steps=2))
    np.testing.assert_allclose(np.floor(255.99 * images[-1]), drawn, atol=1)
    assert not np.allclose(images[0], images[-1])
