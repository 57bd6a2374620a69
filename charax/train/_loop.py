"""The training loop."""

import json
import math
import time
from collections import deque
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array, Float, Int

from charax.train import _processes as processes
from charax.train._ahead import begin
from charax.train._batches import Batch, count_samples
from charax.train._checkpoints import Checkpoints, Position, truncate_lines
from charax.train._config import BATCH_SIZE, EPOCHS, LEARNING_RATE, LoopConfig, OptimizerConfig, Splits
from charax.train._devices import Devices
from charax.train._evaluation import Evaluation
from charax.train._failure import catch_failed_solve
from charax.train._feed import make_feed, permute_samples
from charax.train._folder import explain_failed_write, find_checkpoints
from charax.train._json import read_json_lines
from charax.train._parameters import flatten_model
from charax.train._process import share_cores, small_products
from charax.train._progress import AbstractProgress, Silent
from charax.train._sharing import read_whole
from charax.train._step import MAX_SKIPPED_STEPS, StepMetrics, TrainState, initial_state, make_epoch, make_optimizer
from charax.train._stopping import Diverged, Interrupted, SaveError, StopRequest, listen
from charax.train._task import AbstractTask

_STEPS_IN_FLIGHT = 2
"""Steps that are dispatched before the first of them is looked at."""


class FitResult(NamedTuple):
    """The outcome of training.

    ```python
    from charax import FitResult

    result = FitResult(model=None, history=[{"epoch": 1, "loss": 0.3}, {"test_loss": 0.4}], seconds=2.0)
    assert result.history[-1]["test_loss"] == 0.4
    ```
    """

    model: eqx.Module
    """The model with the best weights, as selected on the validation split."""
    history: list[dict[str, Any]]
    """One row of metrics per epoch, and a last one with those of the test split."""
    seconds: float
    """Wall-clock time, summed over all interruptions."""


class _Prepared(NamedTuple):
    stage: int
    order: Int[np.ndarray, "steps batch"]
    train: Batch


class _Saved(NamedTuple):
    state: TrainState
    best: Float[Array, "parameters"]


def fit(
    task: AbstractTask,
    splits: Splits,
    loop: LoopConfig | None = None,
    optimizer: OptimizerConfig | None = None,
    *,
    folder: Path | None = None,
    progress: AbstractProgress | None = None,
) -> FitResult:
    """Train on the train split, select the best weights on the validation split, and evaluate the test split once.

    Args:
        task: What to learn.
        splits: The data.
        loop: Epochs, mini-batches, seed, early stopping, checkpoints.
        optimizer: Learning rate, weight decay, schedule, clipping, weight averaging.
        folder: Where to keep `metrics.jsonl` and checkpoints. If there are checkpoints, training resumes from the
            newest: the same config gives the same metrics, however often the run was interrupted.
        progress: Where to report; nowhere if left out.

    Returns:
        The trained model and the metrics.

    Raises:
        Diverged: If too many steps in a row had to be skipped.
        Interrupted: If a signal asked for it; the state is saved.

    ```python
    import charax
    from charax.train import LoopConfig, fit

    config = charax.ClassificationConfig(method="node", width=4)
    data = config.load_data()
    fitted = fit(config.build_task(data.spec), data.splits, LoopConfig(epochs=1))
    assert fitted.history[-1]["test_accuracy"] <= 1
    ```
    """
    training = _Training(
        task, splits, loop or LoopConfig(), optimizer or OptimizerConfig(), folder, progress or Silent()
    )
    with listen(shared=processes.count() > 1) as request:
        return training.run(request)


class _Training:
    def __init__(
        self,
        task: AbstractTask,
        splits: Splits,
        loop: LoopConfig,
        optimizer: OptimizerConfig,
        folder: Path | None,
        progress: AbstractProgress,
    ):
        self.task, self.splits, self.loop, self.folder, self.progress = task, splits, loop, folder, progress
        self.samples = task.passes * count_samples(splits.train)
        batch_size = min(loop.batch_size or BATCH_SIZE, self.samples)
        self.devices = Devices(most=share_cores(batch_size, wanted=task.shares_cores))
        # Less data than one mini-batch is one mini-batch; what does not fill one waits for another epoch's order.
        self.epochs = loop.epochs or EPOCHS
        self.batch_size = min(batch_size, self.samples // self.devices.count * self.devices.count)
        self.devices.check(max(self.batch_size, 1))
        steps_per_pass = self.samples // self.batch_size
        self.steps_per_epoch = loop.steps_per_epoch or steps_per_pass
        if self.steps_per_epoch > steps_per_pass:
            raise ValueError(
                f"--steps-per-epoch {self.steps_per_epoch} is more than the {steps_per_pass} mini-batches of a pass "
                "over the training samples: give fewer, or more --epochs"
            )
        self.epochs_per_pass = steps_per_pass // self.steps_per_epoch
        transform = make_optimizer(optimizer, epochs=self.epochs, steps_per_epoch=self.steps_per_epoch)
        batch = jax.tree.map(lambda leaf: leaf[: self.batch_size], splits.train)
        state, unflatten = initial_state(task, batch, transform, seed=loop.seed, ema=optimizer.ema)
        self.state: TrainState = self.devices.replicate(state)
        self.best = self.state.evaluated.copy()  # the buffers of the state are donated to the next step
        self.unflatten = unflatten
        self.position = Position()
        self.learning_rate = optimizer.learning_rate or LEARNING_RATE
        # A backward solve can fail only as an exception, and the state must outlive that.
        self.may_raise = task.solver.adjoint == "backsolve"
        has_images = any(np.ndim(leaf) > 3 for leaf in jax.tree.leaves(batch))
        self.stage_epochs = [
            processes.compile_together(
                jax.jit(
                    make_epoch(
                        stage,
                        unflatten,
                        transform,
                        optimizer.ema,
                        self.devices.average if stage.is_separable and not self.may_raise else None,
                    ),
                    donate_argnums=() if self.may_raise else 0,
                    compiler_options={**stage.compiler_options, **({} if has_images else small_products())} or None,
                    out_shardings=self.devices.replicated,
                )
            )
            for _, stage in task.stages
        ]
        self.epoch = self.stage_epochs[0]
        self.next_epoch: Future[_Prepared] | None = None
        self.feed = make_feed(self.devices, splits.train)
        self.evaluate = Evaluation(task, unflatten, self.batch_size, self.devices)
        self.history: list[dict[str, Any]] = []
        self.checkpoints: Checkpoints | None = None

    def run(self, request: StopRequest) -> FitResult:
        if self.folder is not None:
            self._restore()
        began = time.monotonic() - self.position.seconds
        self.progress.start(self.epochs, self.steps_per_epoch, self.batch_size)
        try:
            self.evaluate.compile_ahead(self.state.evaluated, self.splits.validation)
            while self.position.epoch < self.epochs and not self._is_patience_exhausted():
                self._run_epoch(request, began)
        except SaveError as error:
            if request.number is None:
                raise
            # The signal is for all runs of a sweep, not only for this one, which fails.
            raise Interrupted(f"interrupted, and not saved: {error}", request.number) from error
        finally:
            self.progress.stop()
        if self.checkpoints is not None:
            self.checkpoints.close()
        model, found = self._refine(request)
        params, unflatten = flatten_model(model)
        params = self.devices.replicate(processes.broadcast(params))
        test = self.evaluate(params, self.splits.test)
        if self.devices.count > 1:
            model = unflatten(self.devices.localize(params))
        seconds = time.monotonic() - began
        self.history.append(
            {
                **{f"test_{name}": _finite(value) for name, value in test.items()},
                **found,
                **({"refined": True} if found else {}),
                "best_epoch": self.position.best_epoch,
                "seconds": seconds,
            }
        )
        return FitResult(model, self.history, seconds)

    def _refine(self, request: StopRequest) -> tuple[eqx.Module, dict[str, Any]]:
        """What comes after gradient descent; it begins again if it is interrupted between two of its stages."""

        def say(text: str) -> None:
            if request.number is not None:
                raise Interrupted(self._how_to_resume(), request.number)
            self.progress.say(text)

        refined = eqx.filter_jit(self.unflatten)(self.devices.localize(self.best))

        def refine() -> dict[str, Any]:
            nonlocal refined
            if type(self.task).refine is AbstractTask.refine:  # which needs no data
                return {}
            refined, found = self.task.refine(refined, read_whole(self.splits), say)
            return found

        found = processes.on_first(refine)
        return refined, found

    def _run_epoch(self, request: StopRequest, began: float) -> None:
        epoch, every = self.position.epoch, self.loop.checkpoint_steps
        self._start_epoch(epoch)
        waiting: deque[StepMetrics] = deque()
        for i in range(self.position.step, self.steps_per_epoch):
            self.position = replace(self.position, step=i, seconds=time.monotonic() - began)
            if request.is_due(epoch * self.steps_per_epoch + i):
                self._save()
                raise Interrupted(self._how_to_resume(), request.number or 0)
            if every is not None and i and (epoch * self.steps_per_epoch + i) % every == 0:
                self._save()
            waiting.append(self._take_step(i))
            if len(waiting) > _STEPS_IN_FLIGHT:
                self._report(waiting.popleft(), i)
        while waiting:
            self._report(waiting.popleft(), self.steps_per_epoch)
        self._end_epoch(began)

    def _start_epoch(self, epoch: int) -> None:
        stage, order, train = self._prepare(epoch) if self.next_epoch is None else self.next_epoch.result()
        # Processes share what is prepared, and must all do so at the same point of the program.
        ahead = epoch + 1 < self.epochs and processes.count() == 1
        self.next_epoch = begin(self._prepare, epoch + 1) if ahead else None
        self.epoch = self.stage_epochs[stage]
        self.feed.start_epoch(train, order, first=self.position.step)

    def _prepare(self, epoch: int) -> _Prepared:
        """The mini-batches of an epoch, which depend on its number only."""
        number, part = divmod(epoch, self.epochs_per_pass)
        order = permute_samples(self.splits.train, np.random.default_rng([self.loop.seed, number]), self.task.passes)
        samples = self.steps_per_epoch * self.batch_size
        order = order[part * samples : (part + 1) * samples].reshape(-1, self.batch_size)
        # The first stage has at least one epoch, however few there are.
        begun = [number for number, (after, _) in enumerate(self.task.stages) if epoch >= self._first_epoch(after)]
        stage, generator = self.task.stages[begun[-1]][1], np.random.default_rng([self.loop.seed, epoch, 1])
        return _Prepared(begun[-1], order, stage.prepare_epoch(self.splits.train, order, generator))

    def _first_epoch(self, after: float) -> int:
        return 0 if after == 0 else max(1, int(after * self.epochs))

    def _take_step(self, number: int) -> StepMetrics:
        data, rows = self.feed.step(number)
        if not self.may_raise:
            self.state, metrics = self.epoch(self.state, data, rows)
            return metrics
        result = catch_failed_solve(self.epoch, self.state, data, rows)
        if result is None:
            self.state = self.state.skip()
            nothing = np.full(1, np.nan, np.float32)
            return StepMetrics(nothing, {"failed": np.ones(1, np.float32)}, self.state.streak[None])  # pyright: ignore[reportArgumentType]
        self.state, metrics = result
        return metrics

    def _report(self, metrics: StepMetrics, step: int) -> None:
        if np.asarray(metrics.streak)[-1] >= MAX_SKIPPED_STEPS:  # an index of a JAX array would be a program
            raise Diverged(self._explain_divergence(metrics))
        self.progress.step(self.position.epoch, step, metrics)

    def _end_epoch(self, began: float) -> None:
        counted = int(self.state.counted)
        trained = {name: float(value) / counted if counted else math.nan for name, value in self.state.sums.items()}
        validation = self.evaluate(self.state.evaluated, self.splits.validation)
        score = validation[self.task.monitor] * (1 if self.task.higher_is_better else -1)
        epoch = self.position.epoch + 1
        best = -math.inf if self.position.best_score is None else self.position.best_score
        if math.isfinite(score) and (score >= best or self.loop.weights == "last"):
            # Of weights that do equally well the later ones are kept; early stopping does not count that as progress.
            self.best = self.state.evaluated.copy()  # the buffers of the state are donated to the next step
            improved = epoch if score > best else self.position.improved_epoch
            self.position = replace(
                self.position, best_score=max(score, best), best_epoch=epoch, improved_epoch=improved
            )
        seconds = time.monotonic() - began
        row = {
            "epoch": epoch,
            "step": int(self.state.step),
            **{name: _finite(value) for name, value in trained.items()},
            **{f"validation_{name}": _finite(value) for name, value in validation.items()},
            "skipped": int(self.state.skipped),
            "seconds": seconds,
        }
        self.history.append(row)
        self.state = self.state.start_epoch()
        self.position = replace(self.position, epoch=epoch, step=0, lines=len(self.history), seconds=seconds)
        if self.folder is not None:
            processes.on_first(lambda: self._write(row))
            self._save()
        self.progress.epoch(row)

    def _write(self, row: dict[str, Any]) -> None:
        assert self.folder is not None
        with explain_failed_write(self.folder), (self.folder / "metrics.jsonl").open("a") as file:
            file.write(json.dumps(row) + "\n")

    def _is_patience_exhausted(self) -> bool:
        patience = self.loop.patience
        return patience is not None and self.position.epoch - self.position.improved_epoch >= patience

    def _restore(self) -> None:
        assert self.folder is not None
        metrics, folder = self.folder / "metrics.jsonl", self.folder / "checkpoints"
        if processes.on_first(folder.exists):
            self.checkpoints = Checkpoints(folder, self.progress.say)
            found = self.checkpoints.restore(_Saved(self.state, self.best))
            if found is not None:
                saved, self.position = found
                self.state, self.best = self.devices.replicate(saved.state), self.devices.replicate(saved.best)

        def read_history() -> list[dict[str, Any]]:
            truncate_lines(metrics, self.position.lines)
            return read_json_lines(metrics)

        self.history = processes.on_first(read_history)

    def _save(self) -> None:
        if self.folder is None:
            return
        number = self.position.epoch * self.steps_per_epoch + self.position.step
        with explain_failed_write(self.folder):
            if not self.folder.is_dir():  # orbax would make it again
                raise FileNotFoundError(self.folder)
            if self.checkpoints is None:
                self.checkpoints = Checkpoints(self.folder / "checkpoints", self.progress.say)
            self.checkpoints.save(number, _Saved(self.state, self.best), self.position)

    def _how_to_resume(self) -> str:
        if self.folder is None:
            return "interrupted"
        return f"interrupted and saved; resume with: charax resume {self.folder}"

    def _explain_divergence(self, metrics: StepMetrics) -> str:
        step = int(self.state.step)
        if float(metrics.metrics["failed"][-1]) > 0:
            solver = self.task.solver
            steps = (
                f"take more than {solver.steps} steps"
                if solver.steps is not None
                else f"loosen the tolerance (rtol {float(solver.rtol):.0e})"
            )
            cause = f"the solve failed each time: {steps}, or lower the learning rate ({self.learning_rate:g})"
        else:
            cause = (
                f"the loss or its gradient was not finite each time: lower the learning rate ({self.learning_rate:g}), "
                "take more or smaller solver steps, or look for extreme values in the data"
            )
        kept = ""
        if self.folder is not None and find_checkpoints(self.folder):
            kept = f" The last good checkpoint is in {self.folder / 'checkpoints'}."
        return f"{MAX_SKIPPED_STEPS} steps in a row were skipped, up to step {step}: {cause}.{kept}"


def _finite(value: float) -> float | None:
    """JSON has no infinity."""
    return value if math.isfinite(value) else None
