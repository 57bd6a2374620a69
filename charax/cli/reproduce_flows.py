"""`charax reproduce …` for densities."""

import json
from pathlib import Path

from charax.cli.app import Json, Sheet, or_dash, reproduce, tell, with_spread
from charax.models import FlowMethod
from charax.paper.table2 import Budget
from charax.paper.toy_flow import Recipe


@reproduce.command(name="toy-flow")
def reproduce_toy_flow(
    *,
    recipe: Recipe = "paper",
    seeds: int = 3,
    iterations: int = 1_000,
    output: Path | None = None,
    as_json: Json = False,
) -> None:
    """The paper's toy flow: two circles, a C-NODE of 2,136 parameters against a NODE of 5,034.

    Args:
        recipe: paper: its own settings. sharp: the same with sharper fields, and a larger learning rate that goes
            down to 0. timed: fields that read s too (2,152 and 4,546 parameters), and a larger rate still.
        seeds: Seeds per method.
        iterations: Steps of training.
        output: Folder of the runs, the table and the pictures; by default runs/toy-flow-RECIPE.
    """
    from charax.paper import toy_flow
    from charax.plotting import draw_dynamics, draw_run
    from charax.train import make_progress

    output = output or Path("runs") / f"toy-flow-{recipe}"
    result = toy_flow.run(recipe, seeds=seeds, iterations=iterations, folder=output, progress=make_progress())
    rows = result.rows()
    record = {"recipe": recipe, "iterations": iterations, "rows": rows}
    (output / "toy-flow.json").write_text(json.dumps(record, indent=2) + "\n")
    draw_dynamics({"": result.compared}, output / "toy-flow.png", metric="nll")
    for one in result.compared:
        draw_run(one.runs[0], one.runs[0].settings.prepare())
    sheet = Sheet(
        f"Two circles, recipe {recipe}, {iterations:,} iterations, {seeds} seeds",
        ["method", "test NLL", "NFE", "parameters", "s"],
        [
            [
                row["method"],
                with_spread(row["nll_mean"], row["nll_sd"], ".4f"),
                f"{row['nfe']:.0f}",
                f"{row['parameters']:,}",
                f"{row['seconds']:.0f}",
            ]
            for row in rows
        ],
        words=1,
    )
    sheet.write(output / "toy-flow.md")
    tell({"rows": rows}, sheet.table(f"Pictures: {output}/toy-flow.png, {output}/*/plots"), as_json=as_json)


@reproduce.command(name="tabular")
def reproduce_tabular(*, seeds: int = 5, output: Path = Path("runs/tabular"), as_json: Json = False) -> None:
    """Densities of iris, wine and breast cancer: a flow beside a Gaussian and a kernel density estimate.

    Args:
        seeds: Splits of every table.
        output: Folder of the table.
    """
    from charax.paper import tabular
    from charax.train import make_progress

    output.mkdir(parents=True, exist_ok=True)
    rows = tabular.run(seeds=seeds, progress=make_progress())
    (output / "tabular.json").write_text(json.dumps({"seeds": seeds, "rows": rows}, indent=2) + "\n")
    sheet = Sheet(
        f"Held-out log-likelihood of a row, mean of {seeds} splits",
        ["data set", "dimensions", "C-NODE flow", "Gaussian", "kernels", "NFE", "parameters", "s"],
        [
            [
                row["dataset"],
                str(row["dimensions"]),
                with_spread(row["log_likelihood_mean"], row["log_likelihood_sd"], ".3f"),
                f"{row['log_likelihood_gaussian']:.3f}",
                f"{row['log_likelihood_kernel']:.3f}",
                f"{row['nfe']:.0f}",
                f"{row['parameters']:,}",
                f"{row['seconds']:.0f}",
            ]
            for row in rows
        ],
        words=1,
    )
    sheet.write(output / "tabular.md")
    tell({"rows": rows}, sheet.table(f"Table: {output}/tabular.md"), as_json=as_json)


@reproduce.command(name="kinetic")
def reproduce_kinetic(
    *,
    data: str = "checkerboard",
    method: FlowMethod = "c-node",
    sharpness: float | None = None,
    weight: float = 1.5,
    seeds: int = 3,
    output: Path = Path("runs/kinetic"),
    as_json: Json = False,
) -> None:
    """What a price on kinetic energy saves: a flow with it and without. Interrupted, it goes on where it was.

    Args:
        data: What `charax train density` learns: circles, moons, pinwheel, checkerboard, or the path of a file.
        method: The field of the flow.
        sharpness: How sharply the field may change, as in `charax train density`.
        weight: The price: the weight of the kinetic energy beside the NLL.
        seeds: Seeds of each.
        output: Folder of the runs, the table and the picture.
    """
    from charax.paper import kinetic
    from charax.plotting import draw_kinetic
    from charax.train import make_progress

    result = kinetic.run(
        data=data,
        method=method,
        sharpness=sharpness,
        weight=weight,
        seeds=seeds,
        folder=output,
        progress=make_progress(),
    )
    rows = result.rows()
    (output / "kinetic.json").write_text(json.dumps({"sharpness": sharpness, "rows": rows}, indent=2) + "\n")
    draw_kinetic(result, output / "kinetic.png")
    sheet = Sheet(
        f"A price on kinetic energy: {method} flow of {data}, {seeds} seeds",
        ["weight", "test NLL", "of the first", "NFE", "of the first", "parameters", "s"],
        [
            [
                f"{row['kinetic']:g}",
                with_spread(row["nll_mean"], row["nll_sd"], ".4f"),
                f"{row['nll_ratio']:.1%}",
                f"{row['nfe']:.1f}",
                f"{row['nfe_ratio']:.0%}",
                f"{row['parameters']:,}",
                f"{row['seconds']:.0f}",
            ]
            for row in rows
        ],
        words=0,
    )
    sheet.write(output / "kinetic.md")
    tell({"rows": rows}, sheet.table(f"Table and picture: {output}/kinetic.md, {output}/kinetic.png"), as_json=as_json)


@reproduce.command(name="table2")
def reproduce_table2(
    *,
    budget: Budget = "smoke",
    dataset: tuple[str, ...] = (),
    method: tuple[FlowMethod, ...] = (),
    seeds: int | None = None,
    output: Path | None = None,
    as_json: Json = False,
) -> None:
    """The paper's Table 2: bits/dim, evaluations and parameters of flows. Interrupted, it goes on where it was.

    Args:
        budget: smoke: digits, to see that it runs. cpu: digits and small MNIST. paper: its own setting, for a GPU.
        dataset: Only these data sets.
        method: Only these methods.
        seeds: Seeds per row, instead of the budget's.
        output: Folder of the runs, the table and the pictures; by default runs/table2-BUDGET.
    """
    from charax.paper import table2
    from charax.plotting import draw_dynamics, draw_run
    from charax.train import make_progress

    folder = output or Path("runs") / f"table2-{budget}"
    result = table2.run(budget, datasets=dataset, methods=method, seeds=seeds, folder=folder, progress=make_progress())
    rows = result.rows()
    (folder / "table2.json").write_text(
        json.dumps({"budget": budget, "changed": result.changed, "rows": rows}, indent=2) + "\n"
    )
    draw_dynamics({"": result.compared}, folder / "table2.png", metric="bits_per_dim")
    for one in result.compared:
        draw_run(one.runs[0], one.runs[0].settings.prepare())
    sheet = Sheet(
        f"Table 2, budget {budget}",
        ["data set", "method", "bits/dim", "paper's", "NFE", "paper's", "parameters", "paper's", "s"],
        [
            [
                row["dataset"],
                row["method"],
                with_spread(row["bits_per_dim_mean"], row["bits_per_dim_sd"], ".3f"),
                or_dash(row["bits_per_dim_paper"], ".2f"),
                or_dash(row["nfe"], ".0f"),
                or_dash(row["nfe_paper"], ".0f"),
                or_dash(row["parameters"], ",.0f"),
                or_dash(row["parameters_paper"], ",.0f"),
                or_dash(row["seconds"], ".0f"),
            ]
            for row in rows
        ],
        f"Changed from the paper: {result.changed}.",
    )
    sheet.write(folder / "table2.md")
    pictures = f"Table and pictures: {folder}/table2.md, {folder}/table2.png, {folder}/*/plots"
    tell({"rows": rows}, sheet.table(pictures), as_json=as_json)
