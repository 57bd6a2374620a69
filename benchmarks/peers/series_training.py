"""A neural CDE that is trained with torchcde: our sizes, initial weights, series and settings."""

import math
import time

import numpy as np
import torch
import torch.nn.functional as F
import torchcde
from torch import Tensor

from benchmarks.peers.models import Counted, Weights


class ReadingField(Counted):
    """d(u, m) = (J(X, u) dX, u dt): J reads the observed values, and m accumulates the state."""

    def __init__(self, arrays: dict[str, np.ndarray]):
        super().__init__()
        self.weights = Weights(arrays, "ode.field.jacobian.jacobian.")
        self.path: torchcde.LinearInterpolation | None = None

    def forward(self, t: Tensor, z: Tensor) -> Tensor:
        """[batch, 2 state, channels]."""
        self.nfe += 1
        assert self.path is not None
        u = z[:, : z.shape[1] // 2]
        h = torch.tanh(self.weights.dense("body.layers.0", torch.cat([u, self.path.evaluate(t)], dim=1)))
        h = torch.tanh(self.weights.dense("body.layers.2", h))
        weight = self.weights["weight"]
        hidden, channels, state = weight.shape
        columns = (h @ weight.reshape(hidden, channels * state)).view(len(u), channels, state) + self.weights["bias"]
        mean = F.pad(u[:, :, None], (0, channels - 1))  # the time is the first channel
        return torch.cat([columns.transpose(1, 2), mean], dim=1)


class SeriesTrainingCase:
    """`run("train")` trains for all epochs; `outputs` gives the logits of the averaged weights for the test series."""

    def __init__(
        self,
        arrays: dict[str, np.ndarray],
        *,
        epochs: int,
        batch_size: int,
        steps: int,
        learning_rate: float,
        weight_decay: float,
        clip: float,
        ema: float,
        drop: float,
        noise: float,
        count_scale: float,
        seed: int,
    ):
        torch.manual_seed(seed)
        take = lambda part: [torch.tensor(arrays.pop(f"{part} {name}")) for name in ("times", "values", "lengths")]
        self.train, self.test = take("train"), take("test")
        self.labels = torch.tensor(arrays.pop("train targets")).long()
        self.field = ReadingField(arrays)
        self.lift, self.head = Weights(arrays, "ode.lift."), Weights(arrays, "head.")
        self.epochs, self.batch_size, self.steps, self.ema = epochs, batch_size, steps, ema
        self.clip, self.drop, self.noise, self.count_scale = clip, drop, noise, count_scale
        self.parameters = [*self.field.parameters(), *self.lift.parameters(), *self.head.parameters()]
        self.optimizer = torch.optim.AdamW(self.parameters, lr=learning_rate, weight_decay=weight_decay)
        self.learning_rate, self.cpu_seconds, self.nfe = learning_rate, 0.0, 0

    def run(self, how: str) -> None:
        """Train, and leave the averaged weights."""
        began, averages, number = time.process_time(), [p.detach().clone() for p in self.parameters], 0
        for _ in range(self.epochs):
            often = -(-self.steps * self.batch_size // len(self.labels))
            order = torch.cat([torch.randperm(len(self.labels)) for _ in range(often)])
            for rows in order[: self.steps * self.batch_size].view(self.steps, -1):
                self._step(rows, number)
                decay = min(self.ema, (1 + number) / (10 + number))
                torch._foreach_lerp_(averages, [p.detach() for p in self.parameters], 1 - decay)
                number += 1
        for parameter, average in zip(self.parameters, averages, strict=True):
            parameter.data.copy_(average)
        self.cpu_seconds = time.process_time() - began

    def outputs(self, how: str) -> dict[str, np.ndarray]:
        """Of the test series."""
        with torch.no_grad():
            logits = self._logits(*self.test)
        return {"logits": logits.numpy(), "cpu_seconds": np.asarray(self.cpu_seconds)}

    def _step(self, rows: Tensor, number: int) -> None:
        times, values, lengths = (array[rows] for array in self.train)
        fraction = self.drop * torch.rand(len(rows), 1, 1)
        values = torch.where(torch.rand(values.shape) < fraction, math.nan, values)
        values = values + self.noise * torch.randn(values.shape)
        self.optimizer.param_groups[0]["lr"] = self._rate(number)
        self.optimizer.zero_grad()
        F.cross_entropy(self._logits(times, values, lengths), self.labels[rows]).backward()
        torch.nn.utils.clip_grad_norm_(self.parameters, self.clip)
        self.optimizer.step()

    def _rate(self, number: int) -> float:
        """A linear warm-up over a tenth of the steps, then a cosine to zero."""
        total = self.epochs * self.steps
        warmup = max(1, total // 10)
        if number < warmup:
            return self.learning_rate * (0.01 + 0.99 * number / warmup)
        return self.learning_rate * 0.5 * (1 + math.cos(math.pi * (number - warmup) / (total - warmup)))

    def _logits(self, times: Tensor, values: Tensor, lengths: Tensor) -> Tensor:
        grid = times[lengths.argmax()]  # regular times: those of every series are the first of them
        used = torch.arange(len(grid)) < lengths[:, None]
        observed = used[:, :, None] & ~torch.isnan(values)
        # As torchcde's documentation has it: the time and counts of observations are channels, and behind its end a
        # series stays constant. torchcde fills missing values in loops of Python, which would take most of the time.
        last = torch.take_along_dim(times, lengths[:, None] - 1, dim=1)
        filled = fill_linearly(values.nan_to_num(), observed, grid)
        counts = self.count_scale * observed.cumsum(dim=1)
        joined = torch.cat([torch.where(used, times, last)[:, :, None], filled, counts], dim=2)
        path = torchcde.LinearInterpolation(torchcde.linear_interpolation_coeffs(joined, grid), grid)
        self.field.path, self.field.nfe = path, 0
        start = self.lift.dense("layer", torch.cat([joined[:, 0], summarize(times, values, lengths)], dim=1))
        end = torchcde.cdeint(
            X=path,
            func=self.field,
            z0=torch.cat([start, torch.zeros_like(start)], dim=1),
            t=path.interval,
            adjoint=False,
            method="midpoint",
            # At a kink the derivative of the piece that begins.
            options={"grid_constructor": lambda func, y0, t: grid, "perturb": True},
        )[:, -1]
        self.nfe = self.field.nfe
        state, total = end.chunk(2, dim=1)
        duration = last - times[:, :1]
        mean = torch.where(duration > 0, total / torch.where(duration > 0, duration, 1), state)
        return torch.cat([state, mean], dim=1) @ self.head["weight"] + self.head["bias"]


def fill_linearly(values: Tensor, observed: Tensor, grid: Tensor) -> Tensor:
    """Lines between the observations of a channel, constant before the first and after the last; 0 without any."""
    row = torch.arange(len(grid))[None, :, None]
    before = torch.where(observed, row, -1).cummax(dim=1).values
    after = torch.where(observed, row, len(grid)).flip(1).cummin(dim=1).values.flip(1)
    before, after = torch.where(before < 0, after, before), torch.where(after == len(grid), before, after)
    nothing = (before < 0) | (before == len(grid))
    before, after = (each.clamp(0, len(grid) - 1) for each in (before, after))
    left, right = (torch.take_along_dim(values, each, dim=1) for each in (before, after))
    width = grid[after] - grid[before]
    share = torch.where(width > 0, (grid[None, :, None] - grid[before]) / torch.where(width > 0, width, 1), 0)
    return torch.where(nothing, 0, left + share * (right - left))


def summarize(times: Tensor, values: Tensor, lengths: Tensor) -> Tensor:
    """The features of our `summary_features`."""
    observed = (torch.arange(values.shape[1]) < lengths[:, None])[:, :, None] & ~torch.isnan(values)
    filled, count = values.nan_to_num() * observed, observed.sum(dim=1).clamp_min(1)
    mean = filled.sum(dim=1) / count
    std = (((filled - mean[:, None]) * observed).square().sum(dim=1) / count + 1e-6).sqrt()
    both = observed[:, 1:] & observed[:, :-1]
    change = (filled.diff(dim=1).abs() * both).sum(dim=1) / both.sum(dim=1).clamp_min(1)
    share = observed.sum(dim=1) / lengths[:, None]
    duration = torch.take_along_dim(times, lengths[:, None] - 1, dim=1) - times[:, :1]
    return torch.cat([mean, std, change, share, duration], dim=1)
