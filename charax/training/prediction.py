"""What a trained classifier says about new inputs."""

import csv
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from charax.data import read_inputs
from charax.models import Classifier
from charax.training.classification import ClassificationTask
from charax.training.export import load_model


class Predictions(NamedTuple):
    """A name for every input, and the probability of every class."""

    names: list[str]
    classes: tuple[str, ...]
    probabilities: Float[np.ndarray, "n classes"]

    def rows(self) -> list[list[str]]:
        """The name of each input, its most probable class, and all probabilities."""
        return [
            [name, self.classes[int(np.argmax(row))], *(f"{value:.6g}" for value in row)]
            for name, row in zip(self.names, self.probabilities, strict=True)
        ]

    def write(self, path: Path) -> None:
        """Write a CSV file with a header."""
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["input", "class", *(f"probability of {name}" for name in self.classes)])
            writer.writerows(self.rows())


def predict(run: Path | str, inputs: Path | str) -> Predictions:
    """Classify what is in a file or folder with the model of a run."""
    task, model = load_model(run)
    if not isinstance(task, ClassificationTask) or not isinstance(model, Classifier):
        raise ValueError(f"{run} holds no classifier, so it has no classes to predict")
    raw, names = read_inputs(inputs, shape=task.input_shape, columns=task.columns, white=task.normalisation.white)
    return Predictions(names, task.classes, task.predict(model, raw))
