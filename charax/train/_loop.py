"""The one training loop."""

import json
import math
import time
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array, Float

from charax.train._checkpoints import Checkpoints, Position, cut_lines
from charax.train._config import LoopConfig, OptimizerConfig
from charax.train._devices import Devices
from charax.train._evaluation import make_evaluation
from charax.train._process import small_products
from charax.train._progress import AbstractProgress, Silent
from charax.train._step import GIVE_UP_AFTER, Report, State, initial_state, make_optimizer, make_step
from charax.train._stopping import Diverged, Interrupted, StopRequest, listen
from charax.train._task import Batch, Problem, count_samples

_RUN_AHEAD = 2  # steps that are handed out before the first of them is looked at


class Fitted(NamedTuple):
    """What training leaves: the model that validation chose, and the course of it."""

    model: eqx.Module
    history: list[dict[str, Any]]
    """A row of metrics per epoch, and last the one of the test part."""
    seconds: float


class _Saved(NamedTuple):
    state: State
    best: Float[Array, "parameters"]


def fit(
    problem: Problem,
    loop: LoopConfig | None = None,
    optimizer: OptimizerConfig | None = None,
    *,
    folder: Path | None = None,
    progress: AbstractProgress | None = None,
) -> Fitted:
    """Train on the one part, choose by the next, and look at the last once, at the end.

    With a `folder`, `metrics.jsonl` and checkpoints are kept there, and a folder that has checkpoints is
    gone on with: the same settings give the same metrics, however often the run was interrupted.
    `train` shows it in use.
    """
    training = _Training(problem, loop or LoopConfig(), optimizer or OptimizerConfig(), folder, progress or Silent())
    with listen() as request:
        return training.run(request)


class _Training:
    def __init__(
        self,
        problem: Problem,
        loop: LoopConfig,
        optimizer: OptimizerConfig,
        folder: Path | None,
        progress: AbstractProgress,
    ):
        self.problem, self.settings, self.folder, self.progress = problem, loop, folder, progress
        self.samples = count_samples(problem.train)
        self.devices = Devices()
        # Less data than one batch is one batch; what does not fill a batch waits for another epoch's order.
        self.batch_size = min(loop.batch_size, self.samples // self.devices.number * self.devices.number)
        self.devices.check(max(self.batch_size, 1))
        self.steps_per_epoch = self.samples // self.batch_size
        transform = make_optimizer(optimizer, epochs=loop.epochs, steps_per_epoch=self.steps_per_epoch)
        batch = self._batch(np.arange(self.batch_size))
        state, rebuild = initial_state(problem.task, batch, transform, seed=loop.seed, ema=optimizer.ema)
        self.state: State = self.devices.copy(state)
        self.best = self.state.evaluated.copy()  # the state's buffers are given away with the next step
        self.rebuild = rebuild
        self.position = Position()
        self.learning_rate = optimizer.learning_rate
        # The backward solve of backsolve can fail only as an exception, and the state must outlive that.
        self.may_raise = problem.task.solver.adjoint == "backsolve"
        step = make_step(problem.task, rebuild, transform, optimizer.ema)
        has_images = any(leaf.ndim > 3 for leaf in jax.tree.leaves(batch))
        self.step: Callable[[State, Batch], tuple[State, Report]] = jax.jit(
            step,
            donate_argnums=() if self.may_raise else 0,
            compiler_options=None if has_images else small_products(),
        )
        self.evaluate = make_evaluation(problem.task, rebuild, self.batch_size, self.devices)
        self.history: list[dict[str, Any]] = []
        self.checkpoints: Checkpoints | None = None

    def run(self, request: StopRequest) -> Fitted:
        if self.folder is not None:
            self._go_on()
        began = time.monotonic() - self.position.seconds
        self.progress.start(self.settings.epochs, self.steps_per_epoch, self.batch_size)
        try:
            while self.position.epoch < self.settings.epochs and not self._is_patience_over():
                self._run_epoch(request, began)
        finally:
            self.progress.stop()
        if self.checkpoints is not None:
            self.checkpoints.close()
        test = self.evaluate(self.best, self.problem.test)
        seconds = time.monotonic() - began
        self.history.append(
            {
                **{f"test_{name}": _plain(value) for name, value in test.items()},
                "best_epoch": self.position.best_epoch,
                "seconds": seconds,
            }
        )
        return Fitted(eqx.filter_jit(self.rebuild)(self.best), self.history, seconds)

    def _run_epoch(self, request: StopRequest, began: float) -> None:
        epoch, every = self.position.epoch, self.settings.checkpoint_steps
        order = np.random.default_rng([self.settings.seed, epoch]).permutation(self.samples)
        waiting: deque[Report] = deque()
        for i in range(self.position.step, self.steps_per_epoch):
            self.position = replace(self.position, step=i, seconds=time.monotonic() - began)
            if request.number is not None:
                self._save()
                raise Interrupted(self._how_to_go_on(), request.number)
            if every is not None and i and (epoch * self.steps_per_epoch + i) % every == 0:
                self._save()
            batch = self._batch(order[i * self.batch_size : (i + 1) * self.batch_size])
            waiting.append(self._make_step(batch))
            if len(waiting) > _RUN_AHEAD:
                self._look_at(waiting.popleft(), i)
        while waiting:
            self._look_at(waiting.popleft(), self.steps_per_epoch)
        self._end_epoch(began)

    def _make_step(self, batch: Batch) -> Report:
        if not self.may_raise:
            self.state, report = self.step(self.state, batch)
            return report
        try:
            state, report = jax.block_until_ready(self.step(self.state, batch))
        except jax.errors.JaxRuntimeError as error:
            if "EquinoxRuntimeError" not in str(error):  # anything but a failed solve
                raise
            state = self.state.skip()
            report = Report(np.float32(np.nan), {"failed": np.float32(1)}, state.streak)  # pyright: ignore[reportArgumentType]
        self.state = state
        return report

    def _look_at(self, report: Report, step: int) -> None:
        if int(report.streak) >= GIVE_UP_AFTER:
            raise Diverged(self._what_is_wrong(report))
        self.progress.step(self.position.epoch, step, report)

    def _end_epoch(self, began: float) -> None:
        task, counted = self.problem.task, int(self.state.counted)
        trained = {name: float(value) / counted if counted else math.nan for name, value in self.state.sums.items()}
        validation = self.evaluate(self.state.evaluated, self.problem.validation)
        score = validation[task.chosen_by] * (1 if task.higher_is_better else -1)
        epoch = self.position.epoch + 1
        best = -math.inf if self.position.best_score is None else self.position.best_score
        if math.isfinite(score) and score >= best:
            # Of weights that do equally well the later ones are kept; patience does not take that for progress.
            self.best = self.state.evaluated.copy()  # the state's buffers are given away with the next step
            improved = epoch if score > best else self.position.improved_epoch
            self.position = replace(self.position, best_score=score, best_epoch=epoch, improved_epoch=improved)
        seconds = time.monotonic() - began
        row = {
            "epoch": epoch,
            "step": int(self.state.step),
            **{name: _plain(value) for name, value in trained.items()},
            **{f"validation_{name}": _plain(value) for name, value in validation.items()},
            "skipped": int(self.state.skipped),
            "seconds": seconds,
        }
        self.history.append(row)
        self.state = self.state.start_epoch()
        self.position = replace(self.position, epoch=epoch, step=0, lines=len(self.history), seconds=seconds)
        if self.folder is not None:
            with (self.folder / "metrics.jsonl").open("a") as file:
                file.write(json.dumps(row) + "\n")
            self._save()
        self.progress.epoch(row)

    def _batch(self, rows: np.ndarray) -> Batch:
        return self.devices.share(jax.tree.map(lambda leaf: leaf[rows], self.problem.train))

    def _is_patience_over(self) -> bool:
        patience = self.settings.patience
        return patience is not None and self.position.epoch - self.position.improved_epoch >= patience

    def _go_on(self) -> None:
        assert self.folder is not None
        metrics, folder = self.folder / "metrics.jsonl", self.folder / "checkpoints"
        if folder.exists():
            self.checkpoints = Checkpoints(folder, self.progress.say)
            found = self.checkpoints.restore(_Saved(self.state, self.best))
            if found is not None:
                saved, self.position = found
                self.state, self.best = self.devices.copy(saved.state), self.devices.copy(saved.best)
        cut_lines(metrics, self.position.lines)
        self.history = [json.loads(line) for line in metrics.read_text().splitlines()]

    def _save(self) -> None:
        if self.folder is None:
            return
        if self.checkpoints is None:
            self.checkpoints = Checkpoints(self.folder / "checkpoints", self.progress.say)
        number = self.position.epoch * self.steps_per_epoch + self.position.step
        self.checkpoints.save(number, _Saved(self.state, self.best), self.position)

    def _how_to_go_on(self) -> str:
        if self.folder is None:
            return "interrupted"
        return f"interrupted and saved; go on with: charax resume {self.folder}"

    def _what_is_wrong(self, report: Report) -> str:
        step = int(self.state.step)
        if float(report.metrics["failed"]) > 0:
            solver = self.problem.task.solver
            steps = (
                f"take more than {solver.steps} steps"
                if solver.steps is not None
                else f"loosen the tolerance (rtol {float(solver.rtol):.0e})"
            )
            cause = f"the solve failed each time: {steps}, or lower the learning rate ({self.learning_rate:g})"
        else:
            cause = (
                f"the loss or its gradient was not finite each time: lower the learning rate ({self.learning_rate:g}), "
                "take more or smaller steps of the solver, or look for extreme values in the data"
            )
        kept = "" if self.folder is None else f" The last good checkpoint is in {self.folder / 'checkpoints'}."
        return f"{GIVE_UP_AFTER} steps in a row were skipped, up to step {step}: {cause}.{kept}"


def _plain(value: float) -> float | None:
    """JSON has no infinity."""
    return value if math.isfinite(value) else None
