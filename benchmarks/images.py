"""Rows 2 and 4: the paper's image classifiers."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax

from benchmarks.peers.process import Peer
from benchmarks.rows import Asked, Row, arrays_of, compare
from charax.models import paper_architecture, paper_classifier
from charax.solve import Solver


class ImageSide(NamedTuple):
    """One of the paper's classifiers on our side."""

    dataset: str
    method: str
    model: eqx.Module
    images: jax.Array
    labels: jax.Array

    @classmethod
    def make(cls, dataset: str, method: str, batch: int) -> "ImageSide":
        """Random images: the time does not depend on what they show.

        The weights are those of seed 3: with seed 0 the ReLU6 at the end of the MNIST model's velocity is 0, and
        nothing would move.
        """
        shape = {"mnist": (28, 28, 1), "cifar10": (32, 32, 3)}[dataset]
        model = paper_classifier(dataset, method, key=jax.random.key(3))
        images = jax.random.uniform(jax.random.key(1), (batch, *shape))
        return cls(dataset, method, model, images, jnp.arange(batch) % 10)

    def arrays(self) -> dict[str, np.ndarray]:
        """For the peer."""
        return arrays_of(self.model) | {"images": np.asarray(self.images), "labels": np.asarray(self.labels)}

    def layers(self) -> dict[str, Any]:
        """What the peer has to know besides the weights."""
        architecture = paper_architecture(self.dataset, self.method)
        return {
            "style": architecture.style,
            "directions": architecture.characteristic_dim,
            "inner": architecture.velocity_activation,
            "outer": architecture.velocity_output,
            "pool": architecture.pool,
        }

    def step(self, solver: Solver) -> Callable[[], Any]:
        """A step of AdamW from the same weights."""
        params, static = eqx.partition(self.model, eqx.is_inexact_array)
        optimizer = optax.adamw(1e-3, weight_decay=5e-4)
        state = optimizer.init(params)

        @jax.jit
        def step(params, state, images, labels):
            def loss(params):
                logits, _ = eqx.combine(params, static)(images, solver=solver)
                return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()

            gradient = jax.grad(loss)(params)
            updates, state = optimizer.update(gradient, state, params)
            return optax.apply_updates(params, updates), state

        return lambda: step(params, state, self.images, self.labels)

    def infer(self, solver: Solver) -> Callable[[], Any]:
        """Logits."""
        forward = eqx.filter_jit(lambda model, images: model(images, solver=solver)[0])
        return lambda: forward(self.model, self.images)


IMAGES = (("mnist", "c-node", 256), ("cifar10", "il-node+c-node", 64))


def row2(peer: Peer) -> Iterator[Row]:
    """A training step: one Euler step, ten, and dopri5 at 1e-3 with the adjoint."""
    for dataset, method, batch in IMAGES:
        side = ImageSide.make(dataset, method, batch)
        peer.prepare("image", side.arrays(), tolerance=1e-3, **side.layers())
        for how, solver, target, repetitions in (
            # Both sides keep all activations, as PyTorch always does.
            ("euler 1", Solver("euler", steps=1, adjoint="direct"), 1.5, 5),
            ("euler 10", Solver("euler", steps=10, adjoint="direct"), 1.5, 3),
            # The peer solves the adjoint back; ours goes back over its own steps, which is exact and bounded in memory.
            ("dopri5", Solver("dopri5", rtol=1e-3, atol=1e-3), 2.5, 1),
        ):
            case = f"{dataset} {method}, batch {batch}, training step, {how}"
            solution = eqx.filter_jit(lambda m, x, solver=solver: m(x, solver=solver)[1].stats.nfe)
            nfe = int(np.max(solution(side.model, side.images)))
            asked = [Asked("torchdiffeq", how, target, side.step(solver))]
            yield from compare(2, case, asked, peer, nfe, repetitions=repetitions, inner=1)


def row4(peer: Peer) -> Iterator[Row]:
    """Inference: images per second with two Euler steps."""
    side, solver = ImageSide.make("mnist", "c-node", 256), Solver("euler", steps=2)
    peer.prepare("image", side.arrays(), tolerance=1e-3, **side.layers())
    asked = [Asked("torchdiffeq", "infer euler 2", None, side.infer(solver))]
    for row in compare(4, "mnist c-node, batch 256, inference, euler 2", asked, peer, 2, repetitions=5, inner=1):
        assert row.peer_seconds is not None
        yield row._replace(
            extra={"images_per_second": 256 / row.ours_seconds, "images_per_second_peer": 256 / row.peer_seconds}
        )
