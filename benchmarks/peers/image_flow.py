"""The multi-scale C-NODE flow of images in PyTorch: row 8."""

import math
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torchdiffeq import odeint

from benchmarks.peers.models import Counted, Weights, _flatten


class ImageFlowField(Counted):
    """A velocity of (s, u) times a joint Jacobian of u, with Hutchinson's estimate of the trace along one direction."""

    def __init__(self, arrays: dict[str, np.ndarray], prefix: str):
        super().__init__()
        self.velocity = Weights(arrays, f"{prefix}field.velocity.network.")
        self.jacobian = Weights(arrays, f"{prefix}field.jacobian.")
        self.root_time = nn.Parameter(torch.tensor(arrays[f"{prefix}root_time"]))
        self.hidden = sum(name.startswith(f"{prefix}field.jacobian.body.") for name in arrays) // 2
        self.direction = torch.zeros(0)

    def value(self, s: Tensor, u: Tensor) -> Tensor:
        """du/ds."""
        w, h = self.velocity, torch.cat([s.expand(len(u), 1, *u.shape[2:]), u], dim=1)
        for i in (0, 2):
            h = F.softplus(w.conv(f"layers.{i}", h))
        a = w.dense("layers.6", _flatten(w.pointwise("layers.4", h)))
        h = u
        for i in range(self.hidden):
            h = F.softplus(self.jacobian.conv(f"body.layers.{2 * i}", h))
        weight = torch.einsum("bk,hkc->bhc", a, self.jacobian["weight"])
        return torch.einsum("bhxy,bhc->bcxy", h, weight) + (a @ self.jacobian["bias"])[:, :, None, None]

    def forward(self, t: Tensor, state: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        """The value and the trace of its Jacobian, over the unit interval of t."""
        self.nfe += 1
        end = self.root_time**2
        with torch.enable_grad():
            u = state[0] if state[0].requires_grad else state[0].requires_grad_(True)
            du = end * self.value(end * t, u)
            (product,) = torch.autograd.grad(du, u, self.direction, create_graph=True)
        return du, (product * self.direction).flatten(1).sum(1, keepdim=True)


class ImageFlowCase:
    """The negative log-likelihood of images and its gradient, with all activations kept."""

    def __init__(self, arrays: dict[str, np.ndarray], *, alpha: float, tolerance: float):
        self.image = torch.tensor(arrays.pop("images")).permute(0, 3, 1, 2).contiguous()
        self.directions = {name: arrays.pop(name) for name in list(arrays) if name.startswith("direction.")}
        self.alpha, self.tolerance = alpha, tolerance
        prefixes = sorted({name[: name.index("field.")] for name in arrays if "field." in name})
        self.flows = nn.ModuleDict({prefix.replace(".", "/"): ImageFlowField(arrays, prefix) for prefix in prefixes})

    @property
    def nfe(self) -> int:
        """Evaluations of the last forward solves."""
        return self._forward

    def _apply(self, name: str, u: Tensor) -> tuple[Tensor, Tensor]:
        """The state at the end of one flow, and the integral of the trace."""
        field: Any = self.flows[f"{name}/0/"]
        field.nfe = 0
        signs = self.directions["direction." + "x".join(map(str, (u.shape[2], u.shape[3], u.shape[1])))]
        field.direction = torch.tensor(signs).permute(0, 3, 1, 2).contiguous()
        # The error of the trace is not controlled, on either side.
        norm = lambda state: state[0].square().mean().sqrt()
        u, trace = odeint(
            field,
            (u, torch.zeros(len(u), 1)),
            torch.tensor([0.0, 1.0]),
            rtol=self.tolerance,
            atol=self.tolerance,
            method="bosh3",
            options={"norm": norm},
        )
        self._forward += field.nfe
        return u[-1], trace[-1, :, 0]

    def _log_prob(self) -> Tensor:
        self._forward = 0
        s = self.alpha + (1 - 2 * self.alpha) * self.image
        u = torch.log(s) - torch.log1p(-s)
        total = (math.log(1 - 2 * self.alpha) - torch.log(s) - torch.log1p(-s)).flatten(1).sum(1)
        scales, parts = len({name.split("/")[1] for name in self.flows}), []
        for i in range(scales):
            u, trace = self._apply(f"scales/{i}/before", u)
            total = total + trace
            if i < scales - 1:
                u, trace = self._apply(f"scales/{i}/after", F.pixel_unshuffle(u, 2))
                total = total + trace
                u, factored_out = u.chunk(2, dim=1)
                parts.append(factored_out)
        z = torch.cat([part.flatten(1) for part in (*parts, u)], dim=1)
        return total - 0.5 * z.square().sum(1) - 0.5 * z.shape[1] * math.log(2 * math.pi)

    def run(self, how: str) -> None:
        """Loss and gradient."""
        self.flows.zero_grad()
        (-self._log_prob().mean()).backward()

    def outputs(self, how: str) -> dict[str, np.ndarray]:
        """The log-densities."""
        return {"log_prob": self._log_prob().detach().numpy()}
