"""Figures that move, and colours that are told apart without colour vision."""

import itertools

import numpy as np
import pytest

from charax.plotting import (
    C_NODE,
    EXACT,
    FAIR_NODE,
    NODE,
    class_colors,
    method_color,
    moving_curves,
    principal_directions,
)

# Viénot, Brettel and Mollon: what remains of linear RGB without one kind of cones, and full vision.
VISIONS = {
    "full": np.eye(3),
    "protanopia": np.array([[0.11238, 0.88762, 0], [0.11238, 0.88762, 0], [0.00401, -0.00401, 1]]),
    "deuteranopia": np.array([[0.29275, 0.70725, 0], [0.29275, 0.70725, 0], [-0.02234, 0.02234, 1]]),
    "tritanopia": np.array([[1, 0.14461, -0.14461], [0, 0.85924, 0.14076], [0, 0.85924, 0.14076]]),
}
RGB_TO_XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])


def lab(color: str, vision: np.ndarray) -> np.ndarray:
    """CIE L*a*b*, in which equal distances look about equally different."""
    rgb = np.array([int(color[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    xyz = RGB_TO_XYZ @ np.clip(vision @ linear, 0, 1) / (RGB_TO_XYZ @ np.ones(3))
    x, y, z = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


@pytest.mark.parametrize("vision", VISIONS)
@pytest.mark.parametrize("pair", list(itertools.combinations([NODE, C_NODE, EXACT], 2)))
def test_methods_and_exact_values_are_told_apart_without_colour_vision(vision, pair):
    one, other = (lab(color, VISIONS[vision]) for color in pair)
    assert np.linalg.norm(one - other) > 25  # just noticeable is about 2


def test_every_method_has_the_colour_of_its_kind():
    plain = ("node", "node-fair", "anode", "il-node", "2nd-order")
    assert {method_color(method) for method in plain} == {NODE}
    assert {method_color(method) for method in ("c-node", "anode+c-node", "2nd-order+c-node", "equation")} == {C_NODE}
    assert FAIR_NODE not in (NODE, C_NODE)


def test_directions_are_those_of_most_variance():
    random = np.random.default_rng(0)
    hidden = random.normal(size=(5, 40, 2)) * [3.0, 1.0]
    mixing, _ = np.linalg.qr(random.normal(size=(6, 6)))
    states = (hidden @ mixing[:2]).reshape(5, 40, 2, 3)
    coordinates, names = principal_directions(states, dim=2)
    np.testing.assert_allclose(np.abs(coordinates - coordinates.mean((0, 1))).std((0, 1))[0], 1.8, atol=0.5)
    assert sum(int(name.split("(")[1].rstrip("%)")) for name in names) == 100
    few, names = principal_directions(hidden, dim=3)
    assert few.shape == hidden.shape
    assert names == ["u<sub>1</sub>", "u<sub>2</sub>"]


@pytest.mark.parametrize(("dim", "kind"), [(1, "scatter"), (2, "scatter3d"), (3, "scatter3d"), (5, "scatter3d")])
def test_points_move_along_their_curves(dim, kind):
    s = np.linspace(0, 1, 4)
    curves = np.random.default_rng(0).normal(size=(4, 6, dim))
    labels = np.array([0, 0, 2, 2, 2, 0])
    figure = moving_curves(curves, s, labels, ["a", "b", "c"], [f"x{i}" for i in range(dim)])
    assert {trace.type for trace in figure.data} == {kind}
    assert [trace.name for trace in figure.data if trace.showlegend] == ["a", "c"]
    assert [frame.name for frame in figure.frames] == ["0", "0.333", "0.667", "1"]
    shown = "z" if dim >= 3 else "y"
    expected = curves[2][labels == 2][:, min(dim, 3) - 1 if dim >= 3 else 0]
    np.testing.assert_allclose(getattr(figure.frames[2].data[1], shown), expected, rtol=1e-6)


@pytest.mark.parametrize("count", [2, 10, 11, 40])
def test_classes_have_different_colours(count):
    assert len(set(class_colors(count))) == count
