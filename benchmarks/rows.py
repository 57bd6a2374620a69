"""What a row is, and rows 1 and 3: what is timed on our side, and what the peer is asked to do."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import diffrax as dfx
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.peers.process import Peer
from benchmarks.timing import Timed, interleave, timed
from charax.fields import PlainField
from charax.models.flows import VectorFlowDesign
from charax.nn import mlp
from charax.solve import Solver
from charax.train import name_arrays, small_products


class Row(NamedTuple):
    """One comparison. Times are medians in seconds; the ratio is the peer's to ours."""

    row: int
    case: str
    peer: str | None
    ours_seconds: float
    peer_seconds: float | None
    ratio: float | None
    nfe_ours: int | None
    nfe_peer: int | None
    target: float | None = None
    spread: dict[str, Any] | None = None
    """Lowest and highest of both sides, and the number of repetitions."""
    extra: dict[str, Any] | None = None


class Asked(NamedTuple):
    """What the peer does for one row, and the ratio that is to be reached."""

    peer: str
    how: str
    target: float | None
    ours: Callable[[], Any]
    steps: int = 1
    """Steps of training that a call of ours takes."""


def arrays_of(model: eqx.Module) -> dict[str, np.ndarray]:
    """Our weights by name."""
    return name_arrays(eqx.filter(model, eqx.is_inexact_array))


def compare(
    row: int, case: str, asked: list[Asked], peer: Peer, nfe: int, *, repetitions: int, inner: int
) -> Iterator[Row]:
    """Time ours and the peer's in turn."""
    runs: dict[str, Timed] = {}
    evaluations: dict[str, int] = {}

    def run_peer(how: str) -> float:
        answer = peer.run(how, inner)
        evaluations[how] = answer["nfe"]
        return answer["seconds"]

    for one in asked:
        runs[f"ours {one.peer}"] = timed(one.ours, max(inner // one.steps, 1), one.steps)
        runs[f"peer {one.peer}"] = partial(run_peer, one.how)
    times = interleave(runs, repetitions=repetitions)
    for one in asked:
        ours, theirs = times[f"ours {one.peer}"], times[f"peer {one.peer}"]
        yield Row(
            row=row,
            case=case,
            peer=one.peer,
            ours_seconds=ours["median"],
            peer_seconds=theirs["median"],
            ratio=theirs["median"] / ours["median"],
            nfe_ours=nfe,
            nfe_peer=evaluations[one.how],
            target=one.target,
            spread={"ours": ours, "peer": theirs},
        )


# ---- row 1: dense fields ----------------------------------------------------------------------------------------

DENSE = {(200, 32): (20.0, 6.0), (512, 64): (10.0, 3.0), (512, 256): (4.0, 1.2)}
"""The ratio to reach against torchdiffeq's adjoint and direct gradients, for (batch, width)."""


class DenseSide(NamedTuple):
    """A field of width-wide tanh layers on our side."""

    field: PlainField
    u0: jax.Array

    @classmethod
    def make(cls, batch: int, width: int) -> "DenseSide":
        """State and hidden layers are all `width` wide."""
        field = PlainField(mlp([1 + width, width, width, width], key=jax.random.key(0)))
        return cls(field, jax.random.normal(jax.random.key(1), (batch, width)))

    def arrays(self) -> dict[str, np.ndarray]:
        """For the peer."""
        return arrays_of(self.field) | {"u0": np.asarray(self.u0)}

    def gradient(self, solver: Solver) -> Callable[[], Any]:
        """Forward and gradient with respect to all weights."""
        params, static = eqx.partition(self.field, eqx.is_inexact_array)
        loss = lambda params, u0: jnp.sum(solver.solve(eqx.combine(params, static), u0).u ** 2)
        step = jax.jit(jax.value_and_grad(loss), compiler_options=small_products())
        return lambda: step(params, self.u0)

    def bare(self, tolerance: float) -> tuple[Callable[[], Any], int]:
        """The same by hand on diffrax, with its defaults, and its evaluations."""
        params, static = eqx.partition(self.field, eqx.is_inexact_array)

        def solve(params, u0) -> dfx.Solution:
            network = eqx.combine(params, static).network
            return dfx.diffeqsolve(
                dfx.ODETerm(lambda s, u, _: network(jnp.concatenate([jnp.broadcast_to(s, (len(u), 1)), u], axis=1))),
                dfx.Dopri5(),
                0.0,
                1.0,
                0.01,
                u0,
                stepsize_controller=dfx.PIDController(tolerance, tolerance),
            )

        loss = lambda params, u0: jnp.sum(solve(params, u0).ys[-1] ** 2)  # pyright: ignore[reportOptionalSubscript]
        step = jax.jit(jax.value_and_grad(loss), compiler_options=small_products())
        attempts = int(jax.jit(lambda params, u0: solve(params, u0).stats["num_steps"])(params, self.u0))
        return lambda: step(params, self.u0), 1 + 6 * attempts


def row1(peer: Peer) -> Iterator[Row]:
    """Dense fields against torchdiffeq, torchdyn and bare diffrax."""
    tolerance = 1e-5
    solver = Solver("dopri5", rtol=tolerance, atol=tolerance)
    for (batch, width), (adjoint, direct) in DENSE.items():
        side = DenseSide.make(batch, width)
        peer.prepare("dense", side.arrays(), depth=3, tolerance=tolerance)
        ours = side.gradient(solver)
        nfe = int(np.asarray(solver.solve(side.field, side.u0).stats.nfe).max())
        case = f"{batch} x {width}, {1 + width}-{width}-{width}-{width} tanh, dopri5 {tolerance:g}, gradient"
        asked = [
            Asked("torchdiffeq adjoint", "torchdiffeq adjoint", adjoint, ours),
            Asked("torchdiffeq direct", "torchdiffeq direct", direct, ours),
            Asked("torchdyn adjoint", "torchdyn", None, ours),
        ]
        yield from compare(1, case, asked, peer, nfe, repetitions=7, inner=3)
        bare, nfe_bare = side.bare(tolerance)
        times = interleave({"ours": timed(ours, 10), "diffrax": timed(bare, 10)}, repetitions=21)
        yield Row(
            1,
            case,
            "diffrax",
            times["ours"]["median"],
            times["diffrax"]["median"],
            times["diffrax"]["median"] / times["ours"]["median"],
            nfe,
            nfe_bare,
            0.95,
            {"ours": times["ours"], "peer": times["diffrax"]},
        )


# ---- row 3: the toy flow ----------------------------------------------------------------------------------------


class ToySide(NamedTuple):
    """The paper's toy C-NODE flow on our side."""

    flow: Any
    points: jax.Array

    @classmethod
    def make(cls, points: int) -> "ToySide":
        """2,136 parameters, t from 10 to 0, base N(0, 0.1)."""
        design = VectorFlowDesign("c-node", width=32, timed=False, end_time=10.0, scale=0.1**0.5)
        flow = design.build((2,), key=jax.random.key(0))
        return cls(flow, 0.5 * jax.random.normal(jax.random.key(1), (points, 2)))

    def arrays(self) -> dict[str, np.ndarray]:
        """For the peer."""
        return arrays_of(self.flow) | {"points": np.asarray(self.points)}

    def gradient(self, solver: Solver) -> Callable[[], Any]:
        """The loss of an iteration and its gradient."""
        params, static = eqx.partition(self.flow, eqx.is_inexact_array)
        loss = lambda params, u: -eqx.combine(params, static).log_prob(u, solver=solver).mean()
        step = jax.jit(jax.value_and_grad(loss), compiler_options=small_products())
        return lambda: step(params, self.points)


def row3(peer: Peer) -> Iterator[Row]:
    """An iteration of the toy flow, direct and adjoint."""
    side, tolerance = ToySide.make(1_024), 1e-5
    peer.prepare("toy", side.arrays(), end_time=10.0, scale=0.1**0.5, tolerance=tolerance)
    solver = Solver("dopri5", rtol=tolerance, atol=tolerance)
    ours = side.gradient(solver)
    nfe = int(np.max(side.flow.forward(side.points, solver=solver).nfe))
    asked = [
        Asked("torchdiffeq direct", "torchdiffeq direct", 4.0, ours),
        Asked("torchdiffeq adjoint", "torchdiffeq adjoint", 5.0, ours),
    ]
    case = f"toy flow, 1,024 points, k = 8, dopri5 {tolerance:g}, exact trace, gradient"
    yield from compare(3, case, asked, peer, nfe, repetitions=7, inner=2)
