"""What the metrics mean that are printed, for `--help`."""

from collections.abc import Mapping
from types import MappingProxyType

_NFE = "evaluations of the field in a forward solve"
_COVERED = "fraction of the test values inside the 95% prediction interval"
_RMSE = (
    "root mean squared error, in the units of the target; of several targets without units, and per target in its own"
)
_DEVIATION = "mean of |error| / |value|, in percent; large where values are close to 0"
_ERROR = "mean |error| in percent of the mean |value|"

METRICS: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "classify": {
            "loss": "cross entropy",
            "accuracy": "fraction of the test samples whose most probable class is right",
            "nfe": _NFE,
        },
        "regress": {
            "loss": "negative log-likelihood of standardized targets, up to a constant",
            "rmse": _RMSE,
            "r2": "1 - squared error / squared distance from the mean of the training rows",
            "covered": _COVERED,
            "nfe": _NFE,
        },
        "density": {
            "loss": "nll or bits per dim; with --objective matching, the flow matching loss of the training steps",
            "nll": "negative log-likelihood of a sample, of standardized columns for tables; lower is better",
            "bits_per_dim": "negative log2-likelihood of an image per pixel and channel; lower is better",
            "nfe": _NFE,
        },
        "pde": {
            "loss": "mean squared error, in units of the scale of the values",
            "deviation_percent": _DEVIATION,
            "error_percent": _ERROR,
            "lost": "fraction of the test points to which no learned characteristic leads",
            "shock_time": "when characteristics of a learned equation first cross",
            "covered": f"{_COVERED}, of a learned equation",
        },
        "forecast": {
            "loss": "negative log-likelihood of standardized values, up to a constant",
            "deviation_percent": _DEVIATION,
            "error_percent": _ERROR,
            "scaled_rmse": "with --history, root mean squared error in standard deviations of the training values",
            "rmse": "with --history and one value, the same in its units",
            "covered": _COVERED,
            "nfe": _NFE,
        },
        "series": {
            "loss": "cross entropy, or the squared error of the standardized target with --regression",
            "accuracy": "fraction of the test series whose most probable class is right",
            "rmse": _RMSE,
            "nfe": _NFE,
        },
    }
)
"""The metrics of each task by name, in the order of their printing."""


def explain_metrics(task: str) -> str:
    """Explain the metrics of a task, one per line; an empty text if it has no explanations."""
    lines = [f"- {name.replace('_', ' ')}: {meaning}." for name, meaning in METRICS.get(task, {}).items()]
    return "\n".join(["Metrics of the test split; the validation split selects the weights:", *lines]) if lines else ""
