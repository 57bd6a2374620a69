"""Rows 8 and 9: what users run on CPUs, 16 to 32 channels on grids of 8x8 to 16x16."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.images import ImageSide
from benchmarks.peers.process import Peer
from benchmarks.rows import Asked, Row, arrays_of, compare
from charax.data import Split, Standardizer
from charax.models import Design, ImageArchitecture, find_design
from charax.models.flows import AbstractTrace, FlowResult, Hutchinson, ImageFlowDesign, MultiScaleFlow, plan_scales
from charax.nn import convolve
from charax.solve import Solver
from charax.tasks.classification import ClassificationSpec, ClassificationTask
from charax.train import Devices, flatten_model
from charax.train._process import share_cores
from charax.train._step import clipped_adamw, make_epoch, start_state


class SmallImages(NamedTuple):
    """A preset on a kind of images."""

    preset: str
    dataset: str
    shape: tuple[int, int, int]
    batch: int


SMALL = (
    SmallImages("small", "digits", (8, 8, 1), 64),
    SmallImages("small", "svhn", (32, 32, 3), 128),
    SmallImages("cpu", "mnist", (28, 28, 1), 128),
    SmallImages("ode", "svhn", (16, 16, 3), 128),
)


class SmallSide(ImageSide):
    """The C-NODE of a preset on our side."""

    @classmethod
    def build(cls, case: SmallImages) -> tuple["SmallSide", Design]:
        """Random images: the time does not depend on what they show."""
        design = find_design(case.preset, "c-node", case.shape, dataset=case.dataset)
        model = design.architecture.build(case.shape, 10, key=jax.random.key(3))
        images = jax.random.uniform(jax.random.key(1), (case.batch, *case.shape))
        return cls(case.dataset, "c-node", model, images, jnp.arange(case.batch) % 10), design

    def train(self, design: Design) -> Callable[[], Any]:
        """A step of the training loop, on as many cores as it would take, from the same weights."""
        spec = ClassificationSpec(self.images.shape[1:], tuple("0123456789"), Standardizer((0.0,), (1.0,)))
        task = ClassificationTask(architecture=design.architecture, solver=design.solver, spec=spec)
        devices = Devices(most=share_cores(len(self.images), wanted=task.shares_cores))
        params, unflatten = flatten_model(self.model)
        optimizer, average = clipped_adamw(1e-3, 5e-4, 1.0), devices.average if task.is_separable else None
        start = partial(start_state, optimizer, metrics=("accuracy", "failed", "nfe"), ema=None)
        state = devices.replicate(start(params, jax.random.key_data(jax.random.key(0))))
        step = jax.jit(make_epoch(task, unflatten, optimizer, None, average), out_shardings=devices.replicated)
        batch = devices.assemble(Split(np.asarray(self.images), np.asarray(self.labels)))
        return lambda: step(state, batch, None)


def describe_layers(architecture: ImageArchitecture) -> dict[str, Any]:
    """What the peer has to know besides the weights."""
    return {
        "style": architecture.style,
        "directions": architecture.characteristic_dim,
        "inner": architecture.velocity_activation,
        "outer": architecture.velocity_output,
        "pool": architecture.pool,
        "patch": architecture.patch,
    }


def how_to_solve(solver: Solver) -> str:
    """The peer's name of a solver."""
    return str(solver.method) if solver.steps is None else f"euler {solver.steps}"


class FixedDirection(AbstractTrace):
    """Hutchinson's estimator along one direction of signs, which depends on the shape only: the same on both sides."""

    hutchinson: Hutchinson = Hutchinson()

    def draw(self, key, u):
        return (jnp.asarray(_signs(u.shape), u.dtype)[None],)

    def __call__(self, f, u, probes):
        return self.hutchinson(f, u, probes)


def _signs(shape: tuple[int, ...]) -> np.ndarray:
    return np.random.default_rng(0).choice([-1.0, 1.0], size=shape).astype(np.float32)


class FlowSide(NamedTuple):
    """The C-NODE flow of images of `charax train density`, preset `small`, with 17 levels of grey as in digits."""

    flow: MultiScaleFlow
    images: jax.Array

    @classmethod
    def make(cls, batch: int) -> "FlowSide":
        """Random images of 8x8 pixels."""
        design = ImageFlowDesign("c-node", width=24, depth=2, levels=17, alpha=1e-2)
        flow = design.build((8, 8, 1), key=jax.random.key(3))
        return cls(flow, jax.random.uniform(jax.random.key(1), (batch, 8, 8, 1)))

    def arrays(self) -> dict[str, np.ndarray]:
        """For the peer: weights, images and the direction of the trace for every shape of the state."""
        shapes = [shape for scale in plan_scales(self.flow.shape) for shape in scale if shape is not None]
        signs = {"direction." + "x".join(map(str, shape)): _signs((len(self.images), *shape)) for shape in shapes}
        return arrays_of(self.flow) | signs | {"images": np.asarray(self.images)}

    def evaluate(self, flow: MultiScaleFlow, solver: Solver) -> FlowResult:
        """The log-densities of pixels in (0, 1), and the evaluations of all solves."""
        return flow.forward(self.images, solver=solver, trace=FixedDirection())

    def gradient(self, solver: Solver) -> Callable[[], Any]:
        """The loss and its gradient."""
        params, static = eqx.partition(self.flow, eqx.is_inexact_array)
        step = jax.jit(
            jax.value_and_grad(lambda params: -self.evaluate(eqx.combine(params, static), solver).log_prob.mean()),
        )
        return lambda: step(params)


def row8_flow(peer: Peer) -> Iterator[Row]:
    """The loss of the flow of preset `small` and its gradient."""
    side, solver = FlowSide.make(64), Solver("bosh3", rtol=1e-2, atol=1e-2)
    peer.prepare("image flow", side.arrays(), alpha=1e-2, tolerance=1e-2)
    nfe = int(np.max(side.evaluate(side.flow, solver).nfe))  # pyright: ignore[reportArgumentType, reportCallIssue]
    asked = [Asked("torchdiffeq", "bosh3", 1.3, side.gradient(solver))]
    yield from compare(
        8, "flow of preset small, 8x8, batch 64, bosh3, gradient", asked, peer, nfe, repetitions=7, inner=1
    )


def row8(peer: Peer) -> Iterator[Row]:
    """A training step of the presets: two Euler steps, or bosh3 at 1e-2, with all activations kept by the peer.

    Ours is the loop's own, which shares a mini-batch of images among the cores.
    """
    for case in SMALL:
        side, design = SmallSide.build(case)
        assert isinstance(design.architecture, ImageArchitecture)
        solver, how = design.solver, how_to_solve(design.solver)
        peer.prepare("image", side.arrays(), tolerance=float(solver.rtol), **describe_layers(design.architecture))
        evaluations = eqx.filter_jit(lambda model, images, solver=solver: model(images, solver=solver)[1].stats.nfe)
        nfe = int(np.max(evaluations(side.model, side.images)))
        name = f"preset {case.preset}, {case.dataset} {case.shape[0]}x{case.shape[1]}, batch {case.batch}, {how}"
        asked = [Asked("torchdiffeq", how, 1.3, side.train(design))]
        yield from compare(8, f"{name}, training step", asked, peer, nfe, repetitions=7, inner=1)
    yield from row8_flow(peer)


class Convolution(NamedTuple):
    """Images and a 3x3 kernel."""

    batch: int
    side: int
    channels_in: int
    channels_out: int

    def arrays(self) -> dict[str, np.ndarray]:
        """For the peer."""
        random = np.random.default_rng(0)
        image = random.normal(size=(self.batch, self.side, self.side, self.channels_in))
        kernel = random.normal(size=(3, 3, self.channels_in, self.channels_out))
        return {"image": image.astype(np.float32), "kernel": kernel.astype(np.float32)}

    def gradient(self) -> Callable[[], Any]:
        """The sum of squares and its gradients with respect to both."""
        arrays = {name: jnp.asarray(array) for name, array in self.arrays().items()}
        loss = lambda image, kernel: jnp.sum(convolve(image, kernel) ** 2)
        both = jax.jit(jax.value_and_grad(loss, (0, 1)))
        return lambda: both(arrays["image"], arrays["kernel"])


CONVOLUTIONS = (
    Convolution(128, 14, 16, 32),
    Convolution(128, 14, 32, 32),
    Convolution(64, 8, 16, 24),
    Convolution(64, 8, 24, 24),
    Convolution(128, 16, 3, 20),
    Convolution(128, 16, 20, 20),
)


def row9(peer: Peer) -> Iterator[Row]:
    """3x3 convolutions with the gradients of image and kernel."""
    for case in CONVOLUTIONS:
        peer.prepare("convolution", case.arrays())
        name = f"convolution {case.batch}, {case.side}x{case.side}, {case.channels_in} to {case.channels_out}, gradient"
        yield from compare(9, name, [Asked("PyTorch", "", 1.2, case.gradient())], peer, 0, repetitions=15, inner=3)
