"""`charax reproduce …`: the paper's tables and figures."""

import json
from pathlib import Path

from rich.table import Table

from charax.cli.app import Json, Sheet, or_dash, reproduce, tell, with_spread
from charax.models import Method
from charax.paper.table1 import Budget


@reproduce.command(name="propositions")
def reproduce_propositions(*, seed: int = 0, output: Path = Path("runs/propositions"), as_json: Json = False) -> None:
    """The paper's propositions in numbers, with a picture each.

    Args:
        seed: Seed of every random number.
        output: Folder for the pictures and the numbers.
    """
    from charax.paper import propositions
    from charax.plotting import draw_propositions

    output.mkdir(parents=True, exist_ok=True)  # before the work, so that a bad path is known at once
    result = propositions.run(seed=seed)
    answer = result.to_json()
    pictures = draw_propositions(result, output)
    (output / "propositions.json").write_text(json.dumps(answer, indent=2) + "\n")
    table = Table("proposition", "measured", title="The paper's propositions")
    table.add_column("value", justify="right")
    for proposition, numbers in answer.items():
        for i, (name, value) in enumerate((name, value) for name, value in numbers.items() if name != "refusal"):
            shown = f"{value:,}" if isinstance(value, int) else f"{value:.1e}"
            table.add_row("" if i else proposition.replace("_", " "), name.replace("_", " "), shown)
    table.caption = f"Pictures: {', '.join(str(picture) for picture in pictures)}"
    tell(answer, table, as_json=as_json)


@reproduce.command(name="table1")
def reproduce_table1(
    *,
    budget: Budget = "smoke",
    dataset: tuple[str, ...] = (),
    method: tuple[Method, ...] = (),
    seeds: int | None = None,
    table_only: bool = False,
    output: Path | None = None,
    as_json: Json = False,
) -> None:
    """The paper's Table 1: accuracy, evaluations and parameters of eight methods. Interrupted, it goes on where it was.

    Args:
        budget: smoke: digits without convolutions, a minute. demo: NODE and C-NODE on digits. cpu: the paper's data,
            narrower and shorter. long: NODE and C-NODE on the colour images, three seeds, minutes each. paper: its own
            setting, for a GPU.
        dataset: Only these data sets.
        method: Only these methods.
        seeds: Seeds per row, instead of the budget's.
        table_only: Leave out the second training of NODE and C-NODE, which only the figure needs.
        output: Folder of the runs, the table and the picture; by default runs/table1-BUDGET.
    """
    from charax.paper import table1
    from charax.plotting import draw_dynamics, draw_run
    from charax.train import make_progress

    folder = output or Path("runs") / f"table1-{budget}"
    result = table1.run(
        budget,
        datasets=dataset,
        methods=method,
        seeds=seeds,
        both_trainings=not table_only,
        folder=folder,
        progress=make_progress(),
    )
    rows = result.rows()
    record = {"budget": budget, "changed": result.changed, "rows": rows, "dynamics": result.curves()}
    (folder / "table1.json").write_text(json.dumps(record, indent=2) + "\n")
    draw_dynamics(result.dynamics, folder / "training-dynamics.png")
    pictures = f"{folder}/table1.md, {folder}/training-dynamics.png"
    if budget != "smoke":  # their pictures would take as long as the runs themselves
        for one in result.compared:
            draw_run(one.runs[0], one.runs[0].settings.prepare())
        pictures += f", {folder}/*/plots"
    sheet = Sheet(
        f"Table 1, budget {budget}",
        ["data set", "method", "accuracy", "paper's", "NFE", "paper's", "parameters", "paper's", "s"],
        [
            [
                row["dataset"],
                row["method"],
                with_spread(row["accuracy_mean"], row["accuracy_sd"], ".2%"),
                or_dash(row["accuracy_paper"], ".2%"),
                f"{row['nfe']:.0f}",
                or_dash(row["nfe_paper"], ".0f"),
                f"{row['parameters']:,}",
                or_dash(row["parameters_paper"], ",.0f"),
                f"{row['seconds']:.0f}",
            ]
            for row in rows
        ],
        f"Changed from the paper: {result.changed}.",
    )
    sheet.write(folder / "table1.md")
    tell({"rows": rows}, sheet.table(f"Table and pictures: {pictures}"), as_json=as_json)
