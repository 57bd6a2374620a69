"""The report of a classifier: confusion matrix, characteristics, trajectories."""

import numpy as np
from jaxtyping import Float, Int

from charax.models import Classifier, ClassifierEnsemble, first_member
from charax.plotting import (
    Cell,
    Details,
    Section,
    confusion_figure,
    confusion_matrix,
    curve_sections,
    follow,
)
from charax.tasks.classification._task import ClassificationTask
from charax.train import Splits

_PER_CLASS = 12
_PER_CELL = 24
_COLUMNS = 8


def report_classifier(
    task: ClassificationTask, model: Classifier | ClassifierEnsemble, splits: Splits
) -> list[Section]:
    """Everything that moves about a classifier; of several, the curves are those of the first."""
    test, classes = splits.test, task.spec.classes
    sections = [_confusion_section(task, model, splits)]
    chosen = np.concatenate([np.flatnonzero(test.targets == label)[:_PER_CLASS] for label in range(len(classes))])
    followed = follow(first_member(model), test.inputs[chosen], task.solver)
    each = "test sample, coloured by its class"
    labels = np.asarray(test.targets[chosen])
    return [*sections, *curve_sections(followed, labels, classes, each=each, ending="The readout reads u(1).")]


def _confusion_section(task: ClassificationTask, model: Classifier | ClassifierEnsemble, splits: Splits) -> Section:
    spec, test = task.spec, splits.test
    raw = spec.standardizer.inverse(test.inputs)
    probabilities = task.probabilities(model, raw)
    answered = np.isfinite(probabilities).all(axis=1)
    targets, predicted = np.asarray(test.targets), np.where(answered, probabilities.argmax(axis=1), -1)
    counts = confusion_matrix(targets[answered], predicted[answered], len(spec.classes))
    figure = confusion_figure(counts, spec.classes)
    wrong = int((predicted != targets).sum())
    failed = "" if answered.all() else f" {int((~answered).sum())} solves failed and are not counted."
    text = f"{wrong:,} of {len(targets):,} test samples are classified wrongly.{failed}"
    details = _samples_behind(task, raw, probabilities, targets, predicted)
    return Section("Confusion matrix", text, figure, details)


def _samples_behind(
    task: ClassificationTask,
    raw: Float[np.ndarray, "n *shape"],
    probabilities: Float[np.ndarray, "n classes"],
    targets: Int[np.ndarray, "n"],
    predicted: Int[np.ndarray, "n"],
) -> Details:
    spec = task.spec
    images = raw.ndim == 4
    names = spec.encoder.feature_names if spec.encoder else [f"x{i + 1}" for i in range(raw[0].size)]
    columns = ["image" if images else "row", "true", "predicted", "probability"]
    columns += [] if images else list(names[:_COLUMNS])
    rows: dict[str, list[list[Cell]]] = {}
    # The least certain first: they are the ones to look at.
    for i in np.argsort(np.nan_to_num(probabilities.max(axis=1))):
        if predicted[i] < 0:
            continue
        cell = rows.setdefault(f"{targets[i]}/{predicted[i]}", [])
        if len(cell) == _PER_CELL:
            continue
        sample: Cell = _image(raw[i], spec.standardizer.max_value) if images else f"{i + 1}"
        values = [] if images else [f"{value:.4g}" for value in raw[i].ravel()[:_COLUMNS]]
        names_of = spec.classes[targets[i]], spec.classes[predicted[i]]
        cell.append([sample, *names_of, f"{probabilities[i, predicted[i]]:.3f}", *values])
    errors = [key for key in rows if key.split("/")[0] != key.split("/")[1]]
    return Details(
        columns, rows, "Click on a cell to see its test samples.", max(errors, key=lambda k: len(rows[k]), default=None)
    )


def _image(raw: Float[np.ndarray, "height width channels"], max_value: float | None) -> Float[np.ndarray, "..."]:
    image = np.clip(raw / (max_value or float(raw.max()) or 1.0), 0, 1)
    return image[..., 0] if image.shape[-1] != 3 else image
