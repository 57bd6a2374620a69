"""Figures of a classifier: the characteristics it learned."""

from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl
import numpy as np
from jaxtyping import Float, Int

from charax.models import Classifier
from charax.plotting import CLASSES, follow, save_figure
from charax.plotting._curve_sections import spread_curves
from charax.tasks.classification._task import ClassificationTask
from charax.train import Splits

_PER_CLASS = 12


def plot_classifier(task: ClassificationTask, model: Classifier, splits: Splits, folder: Path) -> list[Path]:
    """The learned characteristics of some test samples, if there are any."""
    if not model.ode.field.characteristic_dim:
        return []
    test, classes = splits.test, task.spec.classes
    chosen = np.concatenate([np.flatnonzero(test.targets == label)[:_PER_CLASS] for label in range(len(classes))])
    x = follow(model, test.inputs[chosen], task.solver).x
    assert x is not None
    return [plot_learned_characteristics(x, test.targets[chosen], classes, folder / "characteristics.png")]


def plot_learned_characteristics(
    x: Float[np.ndarray, "points n k"], labels: Int[np.ndarray, "n"], classes: Sequence[str], path: Path
) -> Path:
    """The learned curves x(s), coloured by class: in the plane if k is at least 2, else over s.

    Curves that would lie on top of each other are shown as their differences from the mean curve.
    """
    curves, coincide = spread_curves(x)
    less = " minus their mean" if coincide else ""
    few, scale = len(classes) <= len(CLASSES), mpl.colormaps["viridis"]
    pick = lambda label: CLASSES[label] if few else scale(label / (len(classes) - 1))
    s = np.linspace(0, 1, len(x))
    with save_figure(path, width=8.4, height=3.6) as figure:
        axes = figure.subplots(1, 2)
        for i, label in enumerate(labels):
            across, up = (curves[:, i, 0], curves[:, i, 1]) if x.shape[2] > 1 else (s, curves[:, i, 0])
            axes[0].plot(across, up, color=pick(int(label)), linewidth=0.9, alpha=0.7)
            # The ends by themselves, which may be close together at the scale of the whole curves.
            end = x[-1, i, :2] if x.shape[2] > 1 else (int(label), x[-1, i, 0])
            axes[1].plot(*end, "o", color=pick(int(label)), markersize=4)
        titles = (f"learned characteristics x(s){less}, test samples", "end points x(1)")
        for axis, title in zip(axes, titles, strict=True):
            axis.locator_params(axis="x", nbins=5)
            axis.set_xlabel("$x_1$" if x.shape[2] > 1 else "s" if axis is axes[0] else "class")
            axis.set_ylabel("$x_2$" if x.shape[2] > 1 else "x")
            axis.set_title(title)
        for label, name in list(enumerate(classes))[:20]:
            axes[1].plot([], [], "o", color=pick(label), label=name)
        axes[1].legend(loc="upper left", bbox_to_anchor=(1, 1), title="class")
    return path
