"""Stride-one, same-padded 2-D convolution that is fast on CPUs in every direction of differentiation.

XLA's own weight gradient of a convolution is an order of magnitude slower than its forward pass on a
CPU, and far worse inside a loop, which is where an ODE solver puts it. Convolution is bilinear in
(image, kernel), so two primitives are closed under differentiation:

    convolve(image, kernel)          transposes to  convolve (in the image) and correlate (in the kernel)
    correlate(image, cotangent)      transposes to  convolve (in both)

Both are ordinary bilinear JAX primitives, so forward mode, reverse mode, their compositions to any
order, `vmap`, `jit` and sharding all work; nothing here is a `custom_vjp`.

That is for CPUs; on other platforms both are XLA's own convolutions. Wide 3x3 convolutions of many pixels go through
`winograd`, which takes about half the time.
"""

from functools import partial

import jax.numpy as jnp
from jax import lax, linear_transpose, vmap
from jax.core import ShapedArray
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir, xla
from jaxtyping import Array, Float

from charax.nn._winograd import convolve_tiles, correlate_tiles, is_worthwhile

_LAYOUT = ("NHWC", "HWIO", "NHWC")


def convolve(
    image: Float[Array, "batch height width channels_in"],
    kernel: Float[Array, "rows columns channels_in channels_out"],
) -> Float[Array, "batch height width channels_out"]:
    """Convolve NHWC images with an HWIO kernel, with stride 1 and zero padding that keeps the size of the images.

    ```python
    import jax.numpy as jnp
    from charax.nn import convolve

    assert convolve(jnp.ones((2, 8, 8, 3)), jnp.ones((3, 3, 3, 5))).shape == (2, 8, 8, 5)
    ```

    Args:
        image: Images.
        kernel: A kernel with odd sides.

    Returns:
        Images of the same size.

    Raises:
        ValueError: If a side of the kernel is even.
    """
    rows, columns = kernel.shape[:2]
    if rows % 2 == 0 or columns % 2 == 0:
        raise ValueError(f"the kernel must have odd sides to keep the image's size, got {rows}x{columns}")
    dtype = jnp.result_type(image, kernel)
    return _convolve_p.bind(image.astype(dtype), kernel.astype(dtype))


def _flip(kernel):
    """The kernel of the transposed convolution."""
    return kernel[::-1, ::-1].swapaxes(-1, -2)


# ---- convolve -------------------------------------------------------------------------------------


def _convolve_plain(image, kernel):
    return lax.conv_general_dilated(image, kernel, (1, 1), "SAME", dimension_numbers=_LAYOUT)


def _convolve_cpu(image, kernel):
    batch, height, width, _ = image.shape
    if is_worthwhile(batch * height * width, kernel.shape[2], kernel.shape[3], *kernel.shape[:2]):
        return convolve_tiles(image, kernel)
    channels_in, channels_out = kernel.shape[2:]
    more_in, more_out = _more_channels(channels_in, channels_out)
    if more_in:
        image = jnp.pad(image, ((0, 0), (0, 0), (0, 0), (0, more_in)))
    if more_in or more_out:
        kernel = jnp.pad(kernel, ((0, 0), (0, 0), (0, more_in), (0, more_out)))
    return _convolve_plain(image, kernel)[..., :channels_out]


def _more_channels(channels_in: int, channels_out: int) -> tuple[int, int]:
    """How many channels of zeros make XLA's convolution on a CPU faster.

    XLA (jaxlib 0.10) takes two to nine times as long for input channels that are no multiple of four, and leaves
    convolutions from and to at most 16 channels to a slower library.
    """
    if channels_in <= 2 or channels_out >= 48:
        return 0, 0
    return -channels_in % 4, 20 - channels_out if max(channels_in, channels_out) <= 16 else 0


def _convolve_shape(image, kernel):
    return ShapedArray((*image.shape[:3], kernel.shape[3]), image.dtype)


def _convolve_batched(arguments, axes):
    image, kernel = arguments
    image_axis, kernel_axis = axes
    if kernel_axis is None:
        return _fold(lambda folded: _convolve_p.bind(folded, kernel), image, image_axis)
    kernel = jnp.moveaxis(kernel, kernel_axis, 0)
    if image_axis is None:
        # One image, many kernels: more output channels.
        many, *sides, channels_in, channels_out = kernel.shape
        wide = jnp.moveaxis(kernel, 0, 3).reshape(*sides, channels_in, many * channels_out)
        out = _convolve_p.bind(image, wide)
        return out.reshape(*out.shape[:-1], many, channels_out), out.ndim - 1
    images = jnp.moveaxis(image, image_axis, 0)
    return lax.map(lambda pair: _convolve_p.bind(*pair), (images, kernel)), 0


# ---- correlate ------------------------------------------------------------------------------------


def _correlate_plain(image, cotangent, *, rows, columns):
    kernel = jnp.zeros((rows, columns, image.shape[3], cotangent.shape[3]), image.dtype)
    (gradient,) = linear_transpose(partial(_convolve_plain, image), kernel)(cotangent)
    return gradient


def _correlate_cpu(image, cotangent, *, rows, columns):
    # The correlation of an image with a cotangent of the output is the gradient of the kernel. A few images at a time
    # stay in the cache between the copies and the products, which makes it up to twice as fast as all at once.
    batch, height, width, channels_in = image.shape
    if is_worthwhile(batch * height * width, channels_in, cotangent.shape[3], rows, columns):
        return correlate_tiles(image, cotangent)
    few = _few_images(batch, height * width, min(channels_in, cotangent.shape[3]))
    chunks, rest = divmod(batch, few)
    if chunks < 2:
        return _correlate_few(image, cotangent, rows, columns)

    def add(total, pair):
        image, cotangent = pair
        return total + _correlate_few(image, cotangent, rows, columns), None

    split = lambda array: array[: batch - rest].reshape(chunks, few, *array.shape[1:])
    start = jnp.zeros((rows, columns, channels_in, cotangent.shape[3]), image.dtype)
    total, _ = lax.scan(add, start, (split(image), split(cotangent)))
    if rest:
        total, _ = add(total, (image[batch - rest :], cotangent[batch - rest :]))
    return total


def _correlate_shares(image, cotangent, *, rows, columns, devices):
    """For CPUs that share the batch: a loop over all of it would gather every image on each of them."""
    batch, height, width, channels_in = image.shape
    channels_out = cotangent.shape[3]
    few = _few_images(batch // devices, height * width, min(channels_in, channels_out))
    chunks, rest = divmod(batch // devices, few)
    if is_worthwhile(batch * height * width, channels_in, channels_out, rows, columns):
        return correlate_tiles(image, cotangent)
    if batch % devices or chunks < 2:
        return _correlate_few(image, cotangent, rows, columns)
    correlate = vmap(partial(_correlate_few, rows=rows, columns=columns))
    shares = [array.reshape(devices, batch // devices, *array.shape[1:]) for array in (image, cotangent)]

    def split(share):
        return share[:, : chunks * few].reshape(devices, chunks, few, *share.shape[2:]).swapaxes(0, 1)

    start = jnp.zeros((devices, rows, columns, channels_in, channels_out), image.dtype)
    total, _ = lax.scan(lambda total, pair: (total + correlate(*pair), None), start, tuple(map(split, shares)))
    if rest:
        total += correlate(*(share[:, chunks * few :] for share in shares))
    return total.sum(axis=0)


def _few_images(batch, pixels, channels) -> int:
    """How many images to correlate at a time: what the cache holds, or fewer, down to half, that divide the batch."""
    most = max(1, (1024 if channels >= 16 else 4096) // pixels)
    return next((few for few in range(most, most // 2, -1) if batch % few == 0), most)


def _correlate_few(image, cotangent, rows, columns):
    # A shift of the one against the other is a shift of the image by columns and one of the cotangent by rows. One
    # product of the two has all of them, with fewer copies than patches and with wide factors also for few channels.
    across, down = _shifted(image, columns, axis=2), _shifted(cotangent, rows, axis=1)
    product = _flat(across).T @ _flat(down)
    return product.reshape(columns, image.shape[3], rows, cotangent.shape[3])[:, :, ::-1].transpose(2, 0, 1, 3)


def _shifted(image, number, axis):
    """The image shifted by -(number // 2) to number // 2 pixels along an axis, as channels."""
    size = image.shape[axis]
    padded = jnp.pad(image, [(number // 2,) * 2 if own == axis else (0, 0) for own in range(4)])
    return jnp.concatenate([lax.slice_in_dim(padded, i, i + size, axis=axis) for i in range(number)], axis=-1)


def _flat(image):
    return image.reshape(-1, image.shape[-1])


def _correlate_shape(image, cotangent, *, rows, columns):
    return ShapedArray((rows, columns, image.shape[3], cotangent.shape[3]), image.dtype)


def _correlate_batched(arguments, axes, *, rows, columns):
    image, cotangent = (
        jnp.broadcast_to(argument, (_size(arguments, axes), *argument.shape))
        if axis is None
        else jnp.moveaxis(argument, axis, 0)
        for argument, axis in zip(arguments, axes, strict=True)
    )
    bind = partial(_correlate_p.bind, rows=rows, columns=columns)
    return lax.map(lambda pair: bind(*pair), (image, cotangent)), 0


def _size(arguments, axes) -> int:
    return next(argument.shape[axis] for argument, axis in zip(arguments, axes, strict=True) if axis is not None)


def _fold(function, image, axis):
    """Run a batch-first function with one more batch axis by folding it into the batch."""
    image = jnp.moveaxis(image, axis, 0)
    many, batch = image.shape[:2]
    out = function(image.reshape(many * batch, *image.shape[2:]))
    return out.reshape(many, batch, *out.shape[1:]), 0


# ---- registration ---------------------------------------------------------------------------------


def _register(name, plain, cpu, shape, batched) -> Primitive:
    primitive = Primitive(name)
    primitive.def_impl(partial(xla.apply_primitive, primitive))
    primitive.def_abstract_eval(shape)
    mlir.register_lowering(primitive, mlir.lower_fun(plain, multiple_results=False))
    mlir.register_lowering(primitive, mlir.lower_fun(cpu, multiple_results=False), platform="cpu")
    batching.primitive_batchers[primitive] = batched
    return primitive


_convolve_p = _register("charax_convolve", _convolve_plain, _convolve_cpu, _convolve_shape, _convolve_batched)
_correlate_p = _register("charax_correlate", _correlate_plain, _correlate_cpu, _correlate_shape, _correlate_batched)


def _lower_correlate_for_cpus(context, *arguments, **sides):
    devices = getattr(context.module_context.axis_context, "num_devices", 1)
    correlate = _correlate_cpu if devices == 1 else partial(_correlate_shares, devices=devices)
    return mlir.lower_fun(correlate, multiple_results=False)(context, *arguments, **sides)


mlir.register_lowering(_correlate_p, _lower_correlate_for_cpus, platform="cpu")

ad.defbilinear(
    _convolve_p,
    lambda cotangent, image, kernel: _convolve_p.bind(cotangent, _flip(kernel)),
    lambda cotangent, image, kernel: _correlate_p.bind(
        image, cotangent, rows=kernel.aval.shape[0], columns=kernel.aval.shape[1]
    ),
)
ad.defbilinear(
    _correlate_p,
    lambda kernel, image, cotangent, **_: _convolve_p.bind(cotangent, _flip(kernel)),
    lambda kernel, image, cotangent, **_: _convolve_p.bind(image, kernel),
)


def is_product(primitive: Primitive, *_: object, **__: object) -> bool:
    """Whether an operation is a matrix product or a convolution: a policy for `jax.checkpoint`, to save these only."""
    return primitive in _PRODUCTS


_PRODUCTS = frozenset({_convolve_p, _correlate_p, lax.dot_general_p, lax.conv_general_dilated_p})
