"""Building blocks that take whole batches: layers, activations and the convolution behind the image fields."""

from charax.nn.activations import ACTIVATIONS, Activation, Sharpened, find_activation
from charax.nn.convolution import convolve
from charax.nn.joining import apply_joined, join
from charax.nn.layers import Apply, AveragePool, Chain, Conv, Flatten, InstanceNorm, Linear, Network, Patches, mlp
from charax.nn.parameters import count_parameters

__all__ = [
    "ACTIVATIONS",
    "Activation",
    "Apply",
    "AveragePool",
    "Chain",
    "Conv",
    "Flatten",
    "InstanceNorm",
    "Linear",
    "Network",
    "Patches",
    "Sharpened",
    "apply_joined",
    "convolve",
    "count_parameters",
    "find_activation",
    "join",
    "mlp",
]
