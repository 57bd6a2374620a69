"""The models of the benchmarks compute the same on both sides, with the same weights."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from benchmarks import images, matching, rows, series, series_training, small_images
from benchmarks.peers.process import PYTHON, Peer
from charax.fields import Condition
from charax.nn import split_key
from charax.paper import irregular
from charax.solve import Solver

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not PYTHON.exists(), reason="the peers are not installed: make peers"),
]


@pytest.fixture(scope="module")
def peer():
    with Peer() as peer:
        yield peer


@pytest.mark.parametrize("how", ["torchdiffeq adjoint", "torchdiffeq direct", "torchdyn"])
def test_dense_field(peer, how):
    side = rows.DenseSide.make(16, 8)
    peer.prepare("dense", side.arrays(), depth=3, tolerance=1e-6)
    theirs = peer.outputs(how)
    solver = Solver("dopri5", rtol=1e-6, atol=1e-6)
    assert np.allclose(solver.solve(side.field, side.u0).u, theirs["end"], atol=1e-4)
    _, gradient = side.gradient(solver)()
    assert np.allclose(gradient.network.layers[0].weight, theirs["gradient"], rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("how", ["torchdiffeq adjoint", "torchdiffeq direct"])
def test_toy_flow(peer, how):
    side = rows.ToySide.make(32)
    peer.prepare("toy", side.arrays(), end_time=10.0, scale=0.1**0.5, tolerance=1e-6)
    ours = side.flow.log_prob(side.points, solver=Solver("dopri5", rtol=1e-6, atol=1e-6))
    assert np.allclose(ours, peer.outputs(how)["log_prob"], atol=1e-3)


@pytest.mark.parametrize(("dataset", "method", "batch"), images.IMAGES)
@pytest.mark.parametrize("how", ["euler 2", "dopri5"])
def test_image_classifier(peer, dataset, method, batch, how):
    side = images.ImageSide.make(dataset, method, 2)
    peer.prepare("image", side.arrays(), tolerance=1e-5, **side.layers())
    solver = Solver("euler", steps=2) if how == "euler 2" else Solver("dopri5", rtol=1e-5, atol=1e-5)
    ours = jnp.asarray(side.infer(solver)())
    _, solution = side.model(side.images, solver=solver)  # pyright: ignore[reportCallIssue]
    assert not np.allclose(solution.u, side.model.ode.lift(side.images), atol=1e-2)  # pyright: ignore[reportAttributeAccessIssue]
    assert np.allclose(ours, peer.outputs(how)["logits"], atol=1e-4)


@pytest.mark.parametrize("case", small_images.SMALL, ids=lambda case: f"{case.preset}-{case.dataset}")
def test_small_image_classifier(peer, case):
    side, design = small_images.SmallSide.build(case._replace(batch=2))
    peer.prepare("image", side.arrays(), tolerance=0.0, **small_images.describe_layers(design.architecture))
    ours = side.infer(Solver("euler", steps=2))()
    assert np.allclose(ours, peer.outputs("euler 2")["logits"], atol=1e-4)


def test_small_image_flow(peer):
    side, solver = small_images.FlowSide.make(3), Solver("bosh3", rtol=1e-5, atol=1e-5)
    peer.prepare("image flow", side.arrays(), alpha=1e-2, tolerance=1e-5)
    ours = side.evaluate(side.flow, solver).log_prob
    assert np.allclose(ours, peer.outputs("")["log_prob"], rtol=1e-4, atol=1e-2)


@pytest.mark.parametrize("case", small_images.CONVOLUTIONS, ids=str)
def test_convolution(peer, case):
    peer.prepare("convolution", case.arrays())
    _, (image, kernel) = case.gradient()()
    theirs = peer.outputs("")
    assert np.allclose(image, theirs["image"], rtol=1e-3, atol=1e-2)
    assert np.allclose(kernel, theirs["kernel"], rtol=1e-3, atol=1)  # sums of 30,000 products of size 100


@pytest.mark.parametrize("how", ["adjoint", "direct"])
def test_neural_cde(peer, how):
    """The same steps along the same path: what is left is rounding."""
    side = series.SeriesSide.make(4, 20, 3, 2)
    peer.prepare("cde", side.arrays())
    theirs, solver = peer.outputs(how), Solver("midpoint", steps=1)
    np.testing.assert_allclose(side.outputs(solver), theirs["logits"], atol=1e-5)
    if how == "direct":  # the continuous adjoint has the error of its own steps back
        _, gradient = side.gradient(solver)()
        scale = np.abs(theirs["gradient"]).max()
        np.testing.assert_allclose(gradient.ode.field.jacobian.weight, theirs["gradient"], atol=1e-5 * scale)


def test_a_neural_cde_that_is_trained_by_torchcde_is_ours_before_training(peer, tmp_path, monkeypatch):
    """Missing values, different lengths, a Jacobian that reads the path, a mean state and a start from a summary."""
    generator = np.random.default_rng(0)
    x = generator.normal(size=(40, 9, 2))
    x[generator.uniform(size=x.shape) < 0.4] = np.nan
    file = tmp_path / "waves.npz"
    np.savez(file, x=x, y=np.arange(40) % 2, lengths=generator.integers(4, 10, 40))
    monkeypatch.setattr("charax.paper.irregular.find_files", lambda name: (file, file))
    config, data = irregular.load_sized(irregular.make_config("BasicMotions", "cde", 0, 1, epochs=1))
    series_training.prepare_torchcde(config, data, peer)
    theirs = peer.outputs("test")["logits"]
    model = config.build_task(data.spec).build(split_key(jax.random.key(1))[0])
    times, values, lengths, _ = map(jnp.asarray, data.splits.test)
    ours = model(times, values, lengths, solver=Solver("midpoint", steps=1)).values
    np.testing.assert_allclose(ours, theirs, atol=1e-5)


def test_toy_flow_of_matching(peer):
    side = matching.MatchingSide.make(32, 16)
    peer.prepare("matching", side.arrays(), tolerance=1e-6)
    solver = Solver("dopri5", rtol=1e-6, atol=1e-6)
    times = jnp.linspace(0, 1, 32)
    _, velocity = side.flow.field(times, None, jnp.asarray(side.points), Condition(None, None))
    assert np.allclose(velocity, peer.outputs("torchcfm")["velocity"], atol=1e-5)
    ours = side.flow.log_prob(jnp.asarray(side.points), solver=solver)
    assert np.allclose(ours, peer.outputs("zuko")["log_prob"], atol=1e-3)
    for how in ("torchcfm sample", "zuko sample"):
        assert np.allclose(side.sample(solver)(), peer.outputs(how)["samples"], atol=1e-3)
