"""The shapes of the scales of a multi-scale flow."""

Shape = tuple[int, int, int]


def plan_scales(shape: tuple[int, ...]) -> list[tuple[Shape, Shape | None]]:
    """Plan the scales of a multi-scale flow.

    ```python
    from charax.models.flows import plan_scales

    assert plan_scales((28, 28, 1)) == [((28, 28, 1), (14, 14, 4)), ((14, 14, 2), (7, 7, 8)), ((7, 7, 4), None)]
    ```

    Args:
        shape: The shape of an image: height, width, channels.

    Returns:
        For every scale the shapes before and after its squeeze; None after the last, which has no squeeze.

    Raises:
        ValueError: If the shape is not that of an image, or its side cannot be halved evenly.
    """
    if len(shape) != 3 or min(shape) < 1:
        raise ValueError(f"a multi-scale flow is for images [height, width, channels], got the shape {tuple(shape)}")
    height, width, channels = shape
    scales: list[tuple[Shape, Shape | None]] = []
    while min(height, width) >= 8:
        if height % 2 or width % 2:
            raise ValueError(
                f"{height}x{width} pixels cannot be squeezed to half the side: crop or pad the images of "
                f"{shape[0]}x{shape[1]} to a side that halves evenly, such as 8, 14, 28 or 32"
            )
        after = (height // 2, width // 2, 4 * channels)
        scales.append(((height, width, channels), after))
        height, width, channels = height // 2, width // 2, 2 * channels
    return [*scales, ((height, width, channels), None)]
