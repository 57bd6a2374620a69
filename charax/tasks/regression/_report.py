"""The report of a regressor: predictions with intervals, residuals, characteristics, trajectories."""

import numpy as np
from jaxtyping import Float

from charax.models import first_member
from charax.plotting import C_NODE, EXACT, Details, Section, curve_sections, follow
from charax.tasks.regression._model import GaussianRegressor
from charax.tasks.regression._task import RegressionTask
from charax.train import Splits

_ROWS = 1000
_CURVES = 90
_COLUMNS = 10
_THIRDS = ("lower third of the target", "middle third", "upper third")


def report_regressor(task: RegressionTask, model: GaussianRegressor, splits: Splits) -> list[Section]:
    """Everything that moves about a regressor; of several models, the curves are those of the first."""
    observed = task.spec.target_standardizer.inverse(splits.test.targets)[:_ROWS]
    value, lower, upper = (part[:_ROWS] for part in task.standardized_values(model, splits.test.inputs[:_ROWS]))
    sections = [_prediction_section(task, splits, observed, value, lower, upper)]
    followed = follow(first_member(model.network), splits.test.inputs[:_CURVES], task.solver)
    first = observed[:_CURVES, 0]
    thirds = np.searchsorted(np.quantile(first, [1 / 3, 2 / 3]), first).astype(int)
    each = f"test row, coloured by {task.spec.targets[0]}"
    return [*sections, *curve_sections(followed, thirds, _THIRDS, each=each, ending="The readout reads u(1).")]


def _prediction_section(
    task: RegressionTask,
    splits: Splits,
    observed: Float[np.ndarray, "n targets"],
    value: Float[np.ndarray, "n targets"],
    lower: Float[np.ndarray, "n targets"],
    upper: Float[np.ndarray, "n targets"],
) -> Section:
    from plotly.subplots import make_subplots

    names = task.spec.targets
    figure = make_subplots(len(names), 2, column_widths=[0.6, 0.4], horizontal_spacing=0.12)
    keys = [str(i) for i in range(len(observed))]
    for j, name in enumerate(names, start=1):
        y, mean, low, high = (part[:, j - 1] for part in (observed, value, lower, upper))
        figure.add_scatter(
            x=y,
            y=mean,
            error_y={"type": "data", "array": high - mean, "arrayminus": mean - low, "thickness": 1, "width": 0},
            mode="markers",
            marker={"color": C_NODE, "size": 6, "opacity": 0.7},
            customdata=keys,
            name="test rows, 95% prediction intervals",
            showlegend=j == 1,
            row=j,
            col=1,
        )
        ends = [float(y.min()), float(y.max())]
        figure.add_scatter(
            x=ends, y=ends, mode="lines", line={"color": EXACT}, name="exact", showlegend=j == 1, row=j, col=1
        )
        figure.add_histogram(x=y - mean, marker_color=C_NODE, nbinsx=30, showlegend=False, row=j, col=2)
        figure.update_xaxes(title_text=f"observed {name}", row=j, col=1)
        figure.update_yaxes(title_text=f"predicted {name}", row=j, col=1)
        figure.update_xaxes(title_text=f"observed minus predicted {name}", row=j, col=2)
        figure.update_yaxes(title_text="test rows", row=j, col=2)
    figure.update_layout(height=380 * len(names))
    inside = np.mean((lower <= observed) & (observed <= upper))
    text = f"{inside:.0%} of {len(observed):,} test values lie in their 95% prediction intervals."
    return Section("Predictions", text, figure, _rows_behind(task, splits, observed, value))


def _rows_behind(task: RegressionTask, splits: Splits, observed: np.ndarray, value: np.ndarray) -> Details:
    raw = task.spec.standardizer.inverse(splits.test.inputs[: len(observed)])
    encoder = task.spec.encoder
    features = encoder.feature_names if encoder else [f"x{i + 1}" for i in range(raw.shape[1])]
    columns = [word for name in task.spec.targets for word in (f"observed {name}", f"predicted {name}")]
    spell = lambda numbers: [f"{number:.4g}" for number in numbers]
    rows = {
        str(i): [[*spell(np.stack([observed[i], value[i]], axis=1).ravel()), *spell(raw[i, :_COLUMNS])]]
        for i in range(len(observed))
    }
    return Details([*columns, *features[:_COLUMNS]], rows, "Click on a point to see its row.")
