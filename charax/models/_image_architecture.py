"""Classifiers of images: the layers of the paper's, for any image size, width and characteristic dimension."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import jax
from jaxtyping import PRNGKeyArray

from charax.fields import NetworkVelocity
from charax.models._architecture import AbstractArchitecture
from charax.models._classifier import Classifier
from charax.models._lift import AbstractLift, Identity, InputLayer, PositionVelocity, ZeroAugment
from charax.models._methods import build_neural_ode, parse_method
from charax.models._names import JacobianForm
from charax.nn import Apply, AveragePool, Chain, Conv, Flatten, InstanceNorm, Linear, Network, Patches, split_key

Style = Literal["grey", "colour"]


@dataclass(frozen=True)
class ImageArchitecture(AbstractArchitecture):
    """A convolutional classifier with any of the eight methods.

    ```python
    import jax
    from charax.models import ImageArchitecture

    small = ImageArchitecture("c-node", style="grey", width=8, augment_dim=4, characteristic_dim=2, pool=4)
    logits, _ = small.build((8, 8, 1), 10, key=jax.random.key(0))(jax.numpy.ones((5, 8, 8, 1)))
    assert logits.shape == (5, 10)
    ```
    """

    method: str
    """One of `METHOD_NAMES`."""
    style: Style
    """The layers: "grey" for those of the paper's MNIST models, "colour" for those of its CIFAR-10 models."""
    width: int
    """The number of hidden channels."""
    augment_dim: int
    """The number of channels that ANODE, IL-NODE and second-order models add to the image's."""
    characteristic_dim: int
    """The number k of characteristic dimensions."""
    pool: int
    """The side of the grid that the final state is pooled to."""
    activation: str = "relu"
    """The name of the activation function."""
    velocity_width: int = 4
    """The number of hidden channels of the velocity."""
    velocity_activation: str = "hard-tanh"
    """The name of the velocity's activation function."""
    velocity_output: str = "identity"
    """The name of the activation function of the velocity's output."""
    patch: int = 1
    """The side of the patches of pixels that are joined into channels first, so that the state has a smaller grid."""
    stem: int = 0
    """The number of channels that a convolution makes of those, for every method alike; 0 for no convolution."""
    jacobian: JacobianForm = "separate"
    """The form of the Jacobian."""

    def build(self, shape: tuple[int, ...], classes: int, *, key: PRNGKeyArray) -> Classifier:
        if len(shape) != 3:
            raise ValueError(f"this architecture is for images [height, width, channels], and the inputs have {shape}")
        height, width = -(-shape[0] // self.patch), -(-shape[1] // self.patch)
        patch_channels = shape[2] * self.patch**2
        image_channels = self.stem or patch_channels
        if self.pool > min(height, width):
            raise ValueError(f"a grid of {height}x{width} cannot be pooled to {self.pool}x{self.pool}: lower pool")
        parts = parse_method(self.method)
        lift_key, velocity_key, network_key, head_key = split_key(key, 4)
        lift, channels = self._lift(parts.lift, image_channels, lift_key)
        velocity = NetworkVelocity(
            self._velocity_network(1 + image_channels, height * width, velocity_key),
            self.characteristic_dim,
            reads=("s", "context"),
        )
        network = _NETWORKS[self.style]
        ode = build_neural_ode(
            parts,
            lift,
            channels,
            velocity=velocity,
            network=lambda inputs, outputs, key: network(inputs, self.width, outputs, self.activation, key),
            jacobian=self.jacobian,
            reads=("u",),
            key=network_key,
        )
        return Classifier(ode, self._head(channels, classes, head_key), self._stem(patch_channels, lift_key))

    def hidden_size(self, shape: tuple[int, ...]) -> int:
        height, width = (-(-side // self.patch) for side in shape[:2])
        return height * width * self.width

    def _stem(self, channels: int, key: PRNGKeyArray) -> Network | None:
        join = [] if self.patch == 1 else [Patches(self.patch)]
        learn = [Conv(channels, self.stem, key=jax.random.fold_in(key, 1))] if self.stem else []
        return Chain(*join, *learn) if join or learn else None

    def _lift(self, name: str, image: int, key: PRNGKeyArray) -> tuple[AbstractLift, int]:
        """Build the lift; return the number of channels of its state, too."""
        state = image + self.augment_dim
        if name == "node":
            return Identity(), image
        if name == "anode":
            return ZeroAugment(self.augment_dim), state
        if name == "il-node":
            return InputLayer(Conv(image, state, bias=False, key=key)), state
        # As many velocities as positions: 11 + 11 for the paper's 16 + 5 on MNIST, its own 21 + 21 on CIFAR-10.
        position = (state + 1) // 2
        return PositionVelocity(InputLayer(Conv(image, position, bias=False, key=key))), 2 * position

    def _velocity_network(self, inputs: int, pixels: int, key: PRNGKeyArray) -> Network:
        """dx/ds from s and the image: k numbers per image."""
        width, act, keys = self.velocity_width, Apply(self.velocity_activation), split_key(key, 4)
        if self.style == "grey":
            first, second = Conv(inputs, width, bias=False, key=keys[0]), Conv(width, width, bias=False, key=keys[1])
        else:
            first, second = Linear(inputs, width, key=keys[0]), Conv(width, width, key=keys[1])
        return Chain(
            first,
            act,
            second,
            act,
            Linear(width, 3, key=keys[2]),
            Flatten(),
            Linear(3 * pixels, self.characteristic_dim, key=keys[3]),
            Apply(self.velocity_output),
        )

    def _head(self, channels: int, classes: int, key: PRNGKeyArray) -> Network:
        squeeze_key, key = split_key(key)
        return Chain(
            Linear(channels, 6, key=squeeze_key),
            AveragePool(self.pool),
            Flatten(),
            Linear(6 * self.pool**2, classes, key=key),
        )


def _grey_network(channels: int, width: int, outputs: int, activation: str, key: PRNGKeyArray) -> Chain:
    """F(C, W) of the MNIST models."""
    keys = split_key(key, 3)
    return Chain(
        InstanceNorm(channels),
        Linear(channels, width, key=keys[0]),
        Apply(activation),
        Conv(width, width, key=keys[1]),
        Apply(activation),
        InstanceNorm(width),
        Linear(width, outputs, key=keys[2]),
    )


def _colour_network(channels: int, width: int, outputs: int, activation: str, key: PRNGKeyArray) -> Chain:
    """G(C, W) of the CIFAR-10 and SVHN models."""
    keys = split_key(key, 3)
    return Chain(
        InstanceNorm(channels, affine=True),
        Conv(channels, width, bias=False, key=keys[0]),
        Apply(activation),
        Conv(width, width, bias=False, key=keys[1]),
        Apply(activation),
        InstanceNorm(width, affine=True),
        Linear(width, outputs, key=keys[2]),
    )


_NETWORKS: dict[Style, Callable[[int, int, int, str, PRNGKeyArray], Chain]] = {
    "grey": _grey_network,
    "colour": _colour_network,
}
