"""The toy flow of row 11 with torchcfm's objective and zuko's likelihood, with our weights."""

import math

import numpy as np
import torch
from torch import Tensor, nn
from torchcfm.conditional_flow_matching import ConditionalFlowMatcher, ExactOptimalTransportConditionalFlowMatcher
from torchdyn.core import NeuralODE
from zuko.transforms import FreeFormJacobianTransform

from benchmarks.peers.models import DenseField


class Reversed(nn.Module):
    """The field from noise to data, with torchdyn's signature."""

    def __init__(self, field: DenseField):
        super().__init__()
        self.field = field

    def forward(self, t, x, args=None):
        """du/ds; torchdyn looks for these names."""
        return -self.field(1 - torch.as_tensor(t), x)


class MatchingCase:
    """A training step by matching or by likelihood, and samples."""

    def __init__(self, arrays: dict[str, np.ndarray], *, tolerance: float):
        self.points, self.noise = (torch.tensor(arrays.pop(name)) for name in ("points", "noise"))
        self.field, self.tolerance = DenseField(arrays, depth=3), tolerance
        self.matchers = {
            "torchcfm": ConditionalFlowMatcher(sigma=0.0),
            "torchcfm ot": ExactOptimalTransportConditionalFlowMatcher(sigma=0.0),
        }
        self.optimizer = torch.optim.Adam(self.field.parameters(), lr=0.0)  # the weights stay what they are
        self.nfe = 0

    def network(self, t: Tensor, u: Tensor) -> Tensor:
        """du/ds at a time for every point."""
        h = torch.cat([t[:, None], u], dim=1)
        for i in range(3):
            h = self.field.weights.dense(f"layers.{2 * i}", h)
            h = torch.tanh(h) if i < 2 else h
        return h

    def run(self, how: str) -> None:
        """One step, or one batch of samples."""
        if how.endswith("sample"):
            with torch.no_grad():
                self._sample(how)
            return
        self.optimizer.zero_grad()
        if how == "zuko":
            loss = -self._log_prob().mean()
        else:
            t, position, velocity = self.matchers[how].sample_location_and_conditional_flow(
                self.points, torch.randn_like(self.points)
            )
            loss = (self.network(t, position) - velocity).square().mean()
            self.nfe = 1
        loss.backward()
        self.optimizer.step()

    def _transform(self) -> FreeFormJacobianTransform:
        return FreeFormJacobianTransform(
            self.field,
            t0=0.0,
            t1=1.0,
            phi=tuple(self.field.parameters()),
            atol=self.tolerance,
            rtol=self.tolerance,
            exact=True,
        )

    def _log_prob(self) -> Tensor:
        self.field.nfe = 0
        u, log_det = self._transform().call_and_ladj(self.points)
        self.nfe = self.field.nfe
        return -0.5 * u.square().sum(1) - math.log(2 * math.pi) + log_det

    def _sample(self, how: str) -> Tensor:
        self.field.nfe = 0
        if how == "zuko sample":
            found = self._transform().inv(self.noise)
        else:
            solve = NeuralODE(Reversed(self.field), solver="dopri5", atol=self.tolerance, rtol=self.tolerance)
            found = solve.trajectory(self.noise, t_span=torch.tensor([0.0, 1.0]))[-1]
        self.nfe = self.field.nfe
        return found

    def outputs(self, how: str) -> dict[str, np.ndarray]:
        """The field at points with times of their own, the log-densities, or samples."""
        if how.endswith("sample"):
            return {"samples": self._sample(how).detach().numpy()}
        if how == "zuko":
            return {"log_prob": self._log_prob().detach().numpy()}
        t = torch.linspace(0, 1, len(self.points))
        return {"velocity": self.network(t, self.points).detach().numpy()}
