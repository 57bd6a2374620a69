"""The report of a flow."""

import jax
import numpy as np
import pytest

import charax
from charax.fields import PlainField
from charax.models.flows import ContinuousFlow
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
    along, characteristics = report(data=str(blob), characteristic_dim=2)
    assert (along.title, characteristics.title) == ("Density and points along s", "Learned characteristics x(s)")
    last = along.figure.frames[-1].data[0]
    across, up = np.meshgrid(last.x, last.y)
    normal = np.exp(-(across**2 + up**2) / 2) / (2 * np.pi)
    np.testing.assert_allclose(last.z, normal, rtol=1e-4)
    assert not np.allclose(along.figure.frames[0].data[0].z, last.z)
    assert characteristics.figure.data[0].type == "scatter3d"


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
    (section,) = report(data=str(pair), method="node", conditional=True)
    assert section.title == "Samples"
    assert [trace.type for trace in section.figure.data] == ["splom", "splom"]
    assert [dimension.label for dimension in section.figure.data[0].dimensions] == ["a", "b"]


@pytest.mark.slow
def test_images_show_samples_beside_the_data():
    (section,) = report(data="digits", method="node", blocks=1)
    assert [trace.type for trace in section.figure.data] == ["image", "image"]
