"""`charax select` and `charax reproduce ablation`: choosing the number of characteristic dimensions."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from charax.cli.app import Json, Sheet, app, reproduce, tell, with_spread
from charax.paper.ablation import AblationBudget
from charax.select import Selection
from charax.tasks.classification import ClassificationConfig

_COUNTED = (
    "AIC and BIC take the likelihood of the training samples under the chosen weights; every trained number is a "
    "parameter, every training sample an observation. Picked by the smallest of each, and by the best validation "
    "accuracy; the test part has no say."
)


@app.command(name="select")
def select(
    settings: ClassificationConfig,
    *,
    k: tuple[int, ...] = (1, 2, 4, 8),
    seeds: int = 3,
    output: Path | None = None,
    as_json: Json = False,
) -> None:
    """Choose the number k of characteristic dimensions: train each over seeds, compare validation, AIC and BIC.

    Interrupted, it goes on where it was when it is called again.

    Args:
        k: Numbers of dimensions to try.
        seeds: Runs for each of them.
        output: Folder of the runs, the table and the picture; by default runs/select-DATA-METHOD.
    """
    from charax.select import select_dimension
    from charax.train import make_progress

    folder = output or Path("runs") / f"select-{settings.label}"
    selection = select_dimension(settings, k, seeds=seeds, folder=folder, progress=make_progress())
    _tell([selection], folder, f"Choosing k for {settings.data}", note="", as_json=as_json)


@reproduce.command(name="ablation")
def reproduce_ablation(
    *,
    budget: AblationBudget = "smoke",
    dataset: tuple[str, ...] = (),
    k: tuple[int, ...] = (),
    seeds: int | None = None,
    output: Path | None = None,
    as_json: Json = False,
) -> None:
    """The paper's ablation: accuracy, test and training loss against k. Interrupted, it goes on where it was.

    Args:
        budget: smoke: digits, a minute. cpu: MNIST, smaller and shorter. paper: its own setting, for a GPU.
        dataset: Only these data sets.
        k: These numbers of dimensions instead of the budget's.
        seeds: Runs for each of them, instead of the budget's.
        output: Folder of the runs, the table and the picture; by default runs/ablation-BUDGET.
    """
    from charax.paper import ablation
    from charax.train import make_progress

    folder = output or Path("runs") / f"ablation-{budget}"
    result = ablation.run(budget, datasets=dataset, dimensions=k, seeds=seeds, folder=folder, progress=make_progress())
    note = f"Changed from the paper: {ablation.PLANS[budget].changed}. "
    _tell(result, folder, f"Ablation of k, budget {budget}", note=note, as_json=as_json)


def _tell(selections: Sequence[Selection], folder: Path, title: str, *, note: str, as_json: bool) -> None:
    from charax.plotting import draw_ablation

    rows = [row for selection in selections for row in selection.rows()]
    picked = {selection.tried[0].dataset: selection.picked() for selection in selections}
    # One data set is the usual case, and its answer needs no name.
    answer = {"rows": rows, "picked": next(iter(picked.values())) if len(picked) == 1 else picked}
    (folder / "ablation.json").write_text(json.dumps(answer, indent=2) + "\n")
    draw_ablation(selections, folder / "ablation.png")
    columns = [
        "data set",
        "k",
        "validation",
        "accuracy",
        "train loss",
        "test loss",
        "params",
        "AIC",
        "BIC",
        "picked by",
    ]
    cells = [_cells(row, picked[row["dataset"]]) for row in rows]
    sheet = Sheet(title, columns, cells, note + _COUNTED, words=1)
    sheet.write(folder / "ablation.md")
    if len(selections) == 1:  # on the terminal, one data set needs no column
        sheet = sheet._replace(columns=columns[1:], rows=[row[1:] for row in cells], words=0)
    pictures = f"Table and picture: {folder}/ablation.md, {folder}/ablation.png"
    tell(answer, sheet.table(pictures), as_json=as_json)


def _cells(row: dict[str, Any], picked: dict[Any, int]) -> list[str]:
    return [
        row["dataset"],
        str(row["k"]),
        f"{row['validation_mean']:.2%}",
        with_spread(row["accuracy_mean"], row["accuracy_sd"], ".2%"),
        f"{row['train_loss']:.4f}",
        f"{row['test_loss']:.4f}",
        f"{row['parameters']:,}",
        f"{row['aic']:,.0f}",
        f"{row['bic']:,.0f}",
        ", ".join(criterion for criterion, k in picked.items() if k == row["k"]),
    ]
