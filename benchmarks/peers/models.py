"""The layers of the benchmarked models in PyTorch, with our weights: written from their published descriptions.

A case is made from our arrays; `run(how)` does once what is timed, `outputs(how)` gives what it computes, and `nfe` is
the number of evaluations of the last forward solve.
"""

import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torchdiffeq import odeint, odeint_adjoint


class Weights(nn.Module):
    """Our arrays as parameters, under our names."""

    def __init__(self, arrays: dict[str, np.ndarray], prefix: str):
        super().__init__()
        chosen = {name.removeprefix(prefix): value for name, value in arrays.items() if name.startswith(prefix)}
        self.values = nn.ParameterDict({self._key(name): torch.tensor(value) for name, value in chosen.items()})

    @staticmethod
    def _key(name: str) -> str:
        return name.replace(".", "/")

    def __getitem__(self, name: str) -> Tensor:
        return self.values[self._key(name)]

    def get(self, name: str) -> Tensor | None:
        """None where a layer has no such weight."""
        return self.values.get(self._key(name))

    def dense(self, layer: str, h: Tensor) -> Tensor:
        """An affine map of features."""
        return h @ self[f"{layer}.weight"] + self[f"{layer}.bias"]

    def conv(self, layer: str, h: Tensor) -> Tensor:
        """3x3, same padding, NCHW; our kernels are HWIO."""
        return F.conv2d(h, self[f"{layer}.kernel"].permute(3, 2, 0, 1), self.get(f"{layer}.bias"), padding=1)

    def pointwise(self, layer: str, h: Tensor) -> Tensor:
        """1x1 convolution."""
        return F.conv2d(h, self[f"{layer}.weight"].T[:, :, None, None], self[f"{layer}.bias"])

    def norm(self, layer: str, h: Tensor) -> Tensor:
        """Every channel of every image by itself, with or without a learned scale."""
        return F.instance_norm(h, weight=self.get(f"{layer}.scale"), bias=self.get(f"{layer}.shift"))


def _flatten(h: Tensor) -> Tensor:
    """In our order, channels last."""
    return h.permute(0, 2, 3, 1).flatten(1)


class Counted(nn.Module):
    """A field that counts its evaluations."""

    def __init__(self):
        super().__init__()
        self.nfe = 0


class DenseField(Counted):
    """tanh layers of (s, u)."""

    def __init__(self, arrays: dict[str, np.ndarray], depth: int):
        super().__init__()
        self.weights, self.depth = Weights(arrays, "network."), depth

    def forward(self, s: Tensor, u: Tensor) -> Tensor:
        """du/ds."""
        self.nfe += 1
        h = torch.cat([s.expand(len(u), 1).to(u), u], dim=1)
        for i in range(self.depth):
            h = self.weights.dense(f"layers.{2 * i}", h)
            h = torch.tanh(h) if i < self.depth - 1 else h
        return h


class TorchdynDense(nn.Module):
    """The same field behind torchdyn's signature."""

    def __init__(self, field: DenseField):
        super().__init__()
        self.field = field

    def forward(self, t, x, args=None):
        """du/ds; torchdyn looks for these names."""
        return self.field(torch.as_tensor(t), x)


class DenseCase:
    """Forward and gradient of a solve with dense layers: row 1."""

    def __init__(self, arrays: dict[str, np.ndarray], *, depth: int, tolerance: float):
        self.u0, self.tolerance = torch.tensor(arrays.pop("u0")), tolerance
        self.field = DenseField(arrays, depth)
        self.times = torch.tensor([0.0, 1.0])

    @property
    def nfe(self) -> int:
        """Evaluations of the last forward solve."""
        return self._forward

    def _solve(self, how: str) -> Tensor:
        self.field.nfe = 0
        if how == "torchdyn":
            from torchdyn.core import NeuralODE

            ode = NeuralODE(
                TorchdynDense(self.field),
                solver="dopri5",
                sensitivity="adjoint",
                atol=self.tolerance,
                rtol=self.tolerance,
                atol_adjoint=self.tolerance,
                rtol_adjoint=self.tolerance,
                return_t_eval=False,
            )
            end = ode(self.u0, self.times)[-1]
        else:
            solve = odeint_adjoint if how == "torchdiffeq adjoint" else odeint
            end = solve(self.field, self.u0, self.times, rtol=self.tolerance, atol=self.tolerance, method="dopri5")[-1]
        self._forward = self.field.nfe
        return end

    def run(self, how: str) -> None:
        """Forward and gradient."""
        self.field.zero_grad()
        self._solve(how).square().sum().backward()

    def outputs(self, how: str) -> dict[str, np.ndarray]:
        """The end, and the gradient of the first layer."""
        self.field.zero_grad()
        end = self._solve(how)
        end.square().sum().backward()
        return {"end": end.detach().numpy(), "gradient": self.field.weights["layers.0.weight"].grad.numpy()}


class ToyField(Counted):
    """The paper's toy flow: velocity and joint Jacobian of u, with the exact trace."""

    def __init__(self, arrays: dict[str, np.ndarray]):
        super().__init__()
        self.velocity, self.jacobian = Weights(arrays, "field.velocity.network."), Weights(arrays, "field.jacobian.")

    def value(self, u: Tensor) -> Tensor:
        """du/ds."""
        a = u
        for i in (0, 2):
            a = torch.tanh(self.velocity.dense(f"layers.{i}", a))
        a = self.velocity.dense("layers.4", a)
        h = u
        for i in (0, 2):
            h = torch.tanh(self.jacobian.dense(f"body.layers.{i}", h))
        columns = torch.einsum("bh,hkc->bkc", h, self.jacobian["weight"]) + self.jacobian["bias"]
        return torch.einsum("bkc,bk->bc", columns, a)

    def forward(self, s: Tensor, state: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        """The value and the trace of its Jacobian."""
        self.nfe += 1
        u = state[0]
        with torch.enable_grad():
            u = u.requires_grad_(True)
            du = self.value(u)
            trace = sum(torch.autograd.grad(du[:, i].sum(), u, create_graph=True)[0][:, i] for i in range(u.shape[1]))
        return du, trace[:, None]


class ToyCase:
    """An iteration of the toy flow: negative log-likelihood and its gradient: row 3."""

    def __init__(self, arrays: dict[str, np.ndarray], *, end_time: float, scale: float, tolerance: float):
        self.points, self.scale, self.tolerance = torch.tensor(arrays.pop("points")), scale, tolerance
        self.field, self.times = ToyField(arrays), torch.tensor([0.0, end_time])

    @property
    def nfe(self) -> int:
        """Evaluations of the last forward solve."""
        return self._forward

    def _log_prob(self, how: str) -> Tensor:
        self.field.nfe = 0
        solve = odeint_adjoint if how == "torchdiffeq adjoint" else odeint
        start = (self.points.clone(), torch.zeros(len(self.points), 1))
        u, trace = solve(self.field, start, self.times, rtol=self.tolerance, atol=self.tolerance, method="dopri5")
        self._forward = self.field.nfe
        normal = -0.5 * (u[-1] / self.scale).square().sum(1) - u.shape[-1] * (
            math.log(self.scale) + 0.5 * math.log(2 * math.pi)
        )
        return normal + trace[-1, :, 0]

    def run(self, how: str) -> None:
        """Loss and gradient."""
        self.field.zero_grad()
        (-self._log_prob(how).mean()).backward()

    def outputs(self, how: str) -> dict[str, np.ndarray]:
        """The log-densities."""
        return {"log_prob": self._log_prob(how).detach().numpy()}


class ImageField(Counted):
    """dx/ds from (s, image), times k convolutional networks of u."""

    ACTIVATIONS = {  # noqa: RUF012
        "hard-tanh": F.hardtanh,
        "identity": lambda h: h,
        "relu6": F.relu6,
        "log-sigmoid": F.logsigmoid,
        "hard-sigmoid": F.hardsigmoid,
    }

    def __init__(self, arrays: dict[str, np.ndarray], *, style: str, directions: int, inner: str, outer: str):
        super().__init__()
        self.velocity = Weights(arrays, "ode.field.velocity.network.")
        self.networks = nn.ModuleList([Weights(arrays, f"ode.field.jacobian.networks.{i}.") for i in range(directions)])
        self.style, self.inner, self.outer = style, self.ACTIVATIONS[inner], self.ACTIVATIONS[outer]
        self.image = torch.zeros(0)

    def _speed(self, s: Tensor) -> Tensor:
        w = self.velocity
        h = torch.cat([s.expand(len(self.image), 1, *self.image.shape[2:]).to(self.image), self.image], dim=1)
        h = w.conv("layers.0", h) if self.style == "grey" else w.pointwise("layers.0", h)
        h = w.conv("layers.2", self.inner(h))
        return self.outer(w.dense("layers.6", _flatten(w.pointwise("layers.4", self.inner(h)))))

    def _derivative(self, w: Weights, u: Tensor) -> Tensor:
        h = w.norm("layers.0", u)
        h = F.relu(w.pointwise("layers.1", h) if self.style == "grey" else w.conv("layers.1", h))
        return w.pointwise("layers.6", w.norm("layers.5", F.relu(w.conv("layers.3", h))))

    def forward(self, s: Tensor, u: Tensor) -> Tensor:
        """du/ds."""
        self.nfe += 1
        a = self._speed(s)
        return sum(a[:, i, None, None, None] * self._derivative(w, u) for i, w in enumerate(self.networks))


class ImageClassifier(nn.Module):
    """Stem, lift, solve, readout."""

    def __init__(self, arrays: dict[str, np.ndarray], *, pool: int, patch: int = 1, **field):
        super().__init__()
        self.field, self.pool, self.patch = ImageField(arrays, **field), pool, patch
        self.lift, self.head, self.stem = (Weights(arrays, prefix) for prefix in ("ode.lift.", "head.", "stem."))

    def forward(self, image: Tensor, how: str, tolerance: float) -> Tensor:
        """Logits."""
        image = self._prepare(image)
        self.field.image, self.field.nfe = image, 0
        u = self.lift.conv("layer", image) if self.lift.get("layer.kernel") is not None else image
        if how.startswith("euler"):
            steps = int(how.split()[1])
            u = odeint(self.field, u, torch.tensor([0.0, 1.0]), method="euler", options={"step_size": 1 / steps})[-1]
        else:
            solve, times = odeint_adjoint if how == "dopri5" else odeint, torch.tensor([0.0, 1.0])
            u = solve(self.field, u, times, rtol=tolerance, atol=tolerance, method=how)[-1]
        self.forward_nfe = self.field.nfe
        h = F.adaptive_avg_pool2d(self.head.pointwise("layers.0", u), self.pool)
        return self.head.dense("layers.3", _flatten(h))

    def _prepare(self, image: Tensor) -> Tensor:
        """Patches of pixels as channels, in our order, and the convolution of the stem."""
        if self.patch > 1:
            missing = [(-side) % self.patch for side in image.shape[2:]]
            image = F.pad(image, (0, missing[1], 0, missing[0]))
            batch, channels, height, width = image.shape
            rows, columns = height // self.patch, width // self.patch
            squares = image.reshape(batch, channels, rows, self.patch, columns, self.patch)
            image = squares.permute(0, 3, 5, 1, 2, 4).reshape(batch, -1, rows, columns)
        layer = f"layers.{int(self.patch > 1)}"
        return image if self.stem.get(f"{layer}.kernel") is None else self.stem.conv(layer, image)


class ImageCase:
    """A training step, or inference, of one of the paper's classifiers: rows 2 and 4."""

    def __init__(self, arrays: dict[str, np.ndarray], *, tolerance: float, **model):
        self.image = torch.tensor(arrays.pop("images")).permute(0, 3, 1, 2).contiguous()
        self.labels = torch.tensor(arrays.pop("labels")).long()
        self.model, self.tolerance = ImageClassifier(arrays, **model), tolerance
        # All the work of a step, and none of its effect: the weights, and with them the evaluations, stay as they are.
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=0.0, weight_decay=5e-4)

    @property
    def nfe(self) -> int:
        """Evaluations of the last forward solve."""
        return self.model.forward_nfe

    def run(self, how: str) -> None:
        """A step of AdamW, or a forward pass if `how` begins with `infer`."""
        if how.startswith("infer "):
            with torch.no_grad():
                self.model(self.image, how.removeprefix("infer "), self.tolerance)
            return
        self.optimizer.zero_grad()
        F.cross_entropy(self.model(self.image, how, self.tolerance), self.labels).backward()
        self.optimizer.step()

    def outputs(self, how: str) -> dict[str, np.ndarray]:
        """The logits."""
        with torch.no_grad():
            return {"logits": self.model(self.image, how, self.tolerance).numpy()}


class ConvolutionCase:
    """A 3x3 convolution with both gradients: row 9."""

    nfe = 0

    def __init__(self, arrays: dict[str, np.ndarray]):
        self.image = torch.tensor(arrays["image"]).permute(0, 3, 1, 2).contiguous().requires_grad_(True)
        self.kernel = torch.tensor(arrays["kernel"]).permute(3, 2, 0, 1).contiguous().requires_grad_(True)

    def run(self, how: str) -> None:
        """The sum of squares and its gradients."""
        self.image.grad = self.kernel.grad = None
        F.conv2d(self.image, self.kernel, padding=1).square().sum().backward()

    def outputs(self, how: str) -> dict[str, np.ndarray]:
        """The gradients, in our layout."""
        self.run(how)
        assert self.image.grad is not None
        assert self.kernel.grad is not None
        return {
            "image": self.image.grad.permute(0, 2, 3, 1).numpy(),
            "kernel": self.kernel.grad.permute(2, 3, 1, 0).numpy(),
        }


class CDEField(Counted):
    """J(u), one column per channel of the path."""

    def __init__(self, arrays: dict[str, np.ndarray]):
        super().__init__()
        self.weights = Weights(arrays, "ode.field.jacobian.")

    def forward(self, t: Tensor, u: Tensor) -> Tensor:
        """[batch, state, channels]."""
        self.nfe += 1
        h = torch.tanh(self.weights.dense("body.layers.0", u))
        h = torch.tanh(self.weights.dense("body.layers.2", h))
        weight = self.weights["weight"]
        hidden, channels, state = weight.shape
        columns = (h @ weight.reshape(hidden, channels * state)).view(len(u), channels, state) + self.weights["bias"]
        return columns.transpose(1, 2)


class CDECase:
    """Interpolation, forward solve and gradient of a neural CDE by torchcde: row 10."""

    def __init__(self, arrays: dict[str, np.ndarray]):
        self.times, values = torch.tensor(arrays.pop("times")), torch.tensor(arrays.pop("values"))
        self.labels = torch.tensor(arrays.pop("labels"))
        time = self.times[None, :, None].expand(len(values), -1, 1)
        self.observed = torch.cat([time, values], dim=2)
        self.field = CDEField(arrays)
        self.lift, self.head = Weights(arrays, "ode.lift."), Weights(arrays, "head.")

    @property
    def nfe(self) -> int:
        """Evaluations of the last forward solve."""
        return self._forward

    def _logits(self, how: str) -> Tensor:
        import torchcde

        self.field.nfe = 0
        coefficients = torchcde.hermite_cubic_coefficients_with_backward_differences(self.observed, self.times)
        path = torchcde.CubicSpline(coefficients, self.times)
        start = self.lift.dense("layer", path.evaluate(self.times[0]))
        # A step between two observations; torchdiffeq takes a grid that is not uniform as a function.
        grid = lambda func, y0, t: self.times if t[0] < t[-1] else self.times.flip(0)
        options = {"grid_constructor": grid}
        extra = {"adjoint_options": options} if how == "adjoint" else {}
        end = torchcde.cdeint(
            X=path,
            func=self.field,
            z0=start,
            t=path.interval,
            adjoint=how == "adjoint",
            method="midpoint",
            options=options,
            **extra,
        )[:, -1]
        self._forward = self.field.nfe
        return end @ self.head["weight"] + self.head["bias"]

    def run(self, how: str) -> None:
        """Forward and gradient."""
        for part in (self.field, self.lift, self.head):
            part.zero_grad()
        F.cross_entropy(self._logits(how), self.labels).backward()

    def outputs(self, how: str) -> dict[str, np.ndarray]:
        """Logits, and the gradient of the Jacobian's last layer."""
        self.run(how)
        gradient = self.field.weights["weight"].grad
        return {"logits": self._logits(how).detach().numpy(), "gradient": gradient.numpy()}


CASES = {"dense": DenseCase, "toy": ToyCase, "image": ImageCase, "convolution": ConvolutionCase, "cde": CDECase}
