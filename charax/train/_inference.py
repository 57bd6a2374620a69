"""Use a trained model: evaluate, predict, sample."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from charax.train._export import load_model
from charax.train._precision import computing_in
from charax.train._predictions import GeneratedSamples, Predictions
from charax.train._run import load_run
from charax.train._task import AbstractTask


def evaluate(folder: Path | str, split: str = "test", *, data: Path | str | None = None) -> dict[str, Any]:
    """Evaluate a trained model on a split of its data, or on new samples with the right answers.

    Args:
        folder: The folder of the run.
        split: train, validation or test.
        data: A file or folder of new samples, instead of a split.

    Returns:
        The metrics by name, and what else the task can say: 95% confidence intervals, and for classes their precision
        and recall and the confusion matrix.

    Raises:
        ValueError: If there is no such split, its data have changed since training, or something cannot be read.

    ```python
    import tempfile
    import charax
    from charax.train import train

    config = charax.ClassificationConfig(method="node", width=4, loop=charax.LoopConfig(epochs=1))
    with tempfile.TemporaryDirectory() as folder:
        train(config, f"{folder}/run")
        assert 0 <= charax.evaluate(f"{folder}/run", "validation")["accuracy"] <= 1
    ```
    """
    return load_run(folder).evaluate_in_full(split, data=data)


def predict(
    folder: Path | str,
    inputs: Path | str,
    *,
    strict: bool = False,
    class_name: str | None = None,
    keep: Sequence[str] | Literal["all"] = (),
) -> Predictions:
    """Predict for new inputs with the model of a run.

    Args:
        folder: The folder of the run.
        inputs: A file or folder of inputs.
        strict: Raise if one of the rows has no answer, instead of marking it.
        class_name: The class to condition on, if the model is conditional.
        keep: Columns of the inputs that are put before the predictions, or "all" of them.

    Returns:
        A table with one row per input.

    Raises:
        ValueError: If the inputs cannot be used.
        RuntimeError: With `strict`, if a row has no answer.

    ```python
    import tempfile
    import numpy as np
    import charax
    from charax.train import train

    config = charax.ClassificationConfig(method="node", width=4, loop=charax.LoopConfig(epochs=1))
    with tempfile.TemporaryDirectory() as folder:
        train(config, f"{folder}/run")
        np.savez(f"{folder}/new.npz", x=np.zeros((2, 8, 8, 1), np.float32))
        predictions = charax.predict(f"{folder}/run", f"{folder}/new.npz")
    assert len(predictions.rows) == 2
    ```
    """
    task, model = load_model(folder)
    _check_class(task, class_name)
    from charax.data import read_texts

    kept = read_texts(inputs, None if keep == "all" else keep) if keep else None  # before the model is run
    with computing_in(model):
        predictions = task.predict(model, Path(inputs), strict=strict, class_name=class_name)
    return predictions if kept is None else predictions.keep(kept.names, kept.rows)


def sample(
    folder: Path | str,
    n: int,
    *,
    seed: int = 0,
    temperature: float = 1.0,
    class_name: str | None = None,
    context: Path | None = None,
    guidance: float = 0.0,
) -> GeneratedSamples:
    """Draw samples from the density of a run.

    Args:
        folder: The folder of the run.
        n: Number of samples.
        seed: Seed of the samples.
        temperature: Multiplies the standard deviation of the base distribution.
        class_name: The class to sample from, if the density is conditional; all of them in turn if left out.
        context: A table with the columns that the density is conditioned on, if there are any.
        guidance: Above 0, samples are more typical of their class, if it was hidden from some samples in training.

    Returns:
        The samples, in the units of the data.

    Raises:
        ValueError: If the model is not a density, or does not know the class.

    ```python
    import tempfile
    import charax
    from charax.train import train

    config = charax.DensityConfig(data="moons", method="node", width=4, loop=charax.LoopConfig(epochs=1))
    with tempfile.TemporaryDirectory() as folder:
        train(config, f"{folder}/run")
        samples = charax.sample(f"{folder}/run", 3)
    assert samples.values.shape == (3, 2)
    ```
    """
    task, model = load_model(folder)
    _check_class(task, class_name)
    with computing_in(model):
        return task.sample(
            model, n, seed=seed, temperature=temperature, class_name=class_name, context=context, guidance=guidance
        )


def _check_class(task: AbstractTask, class_name: str | None) -> None:
    known = task.conditional_classes
    if class_name is None or class_name in known:
        return
    if not known:
        raise ValueError("this model is not conditional: leave --class out, or train with --conditional")
    raise ValueError(f"the model does not know the class {class_name!r}; choose from {', '.join(known)}")
