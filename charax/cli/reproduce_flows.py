"""`charax reproduce …` for densities."""

import json
from pathlib import Path

from rich.table import Table

from charax.cli.app import Json, or_dash, reproduce, tell
from charax.experiments.table2 import Budget
from charax.models import FlowMethod


@reproduce.command(name="toy-flow")
def reproduce_toy_flow(
    *, seeds: int = 3, iterations: int = 1_000, output: Path = Path("runs/toy-flow"), as_json: Json = False
) -> None:
    """The paper's toy flow: two circles, a C-NODE of 2,136 parameters against a NODE of 5,034.

    Args:
        seeds: Seeds per method.
        iterations: Steps of training.
        output: Folder of the runs, the table and the pictures.
    """
    from charax.experiments import toy_flow
    from charax.plots import draw_dynamics, draw_run
    from charax.training import make_progress

    result = toy_flow.run(seeds=seeds, iterations=iterations, folder=output, progress=make_progress())
    rows = result.rows()
    (output / "toy-flow.json").write_text(json.dumps({"iterations": iterations, "rows": rows}, indent=2) + "\n")
    draw_dynamics({"": result.compared}, output / "toy-flow.png", metric="nll")
    for one in result.compared:
        draw_run(one.runs[0], one.runs[0].settings.prepare())
    table = Table("method", title=f"Two circles, {iterations:,} iterations, {seeds} seeds")
    for column in ("test NLL", "NFE", "parameters", "seconds"):
        table.add_column(column, justify="right")
    for row in rows:
        spread = "" if row["nll_sd"] is None else f" ± {row['nll_sd']:.4f}"
        table.add_row(
            row["method"],
            f"{row['nll_mean']:.4f}{spread}",
            f"{row['nfe']:.0f}",
            f"{row['parameters']:,}",
            or_dash(row["seconds"], ".0f"),
        )
    table.caption = f"Pictures: {output}/toy-flow.png, {output}/*/plots"
    tell({"rows": rows}, table, as_json=as_json)


@reproduce.command(name="tabular")
def reproduce_tabular(*, seeds: int = 3, output: Path = Path("runs/tabular"), as_json: Json = False) -> None:
    """Densities of iris, wine and breast cancer: a flow beside a Gaussian and a kernel density estimate.

    Args:
        seeds: Splits of every table.
        output: Folder of the table.
    """
    from charax.experiments import tabular

    output.mkdir(parents=True, exist_ok=True)
    rows = tabular.run(seeds=seeds)
    (output / "tabular.json").write_text(json.dumps({"seeds": seeds, "rows": rows}, indent=2) + "\n")
    table = Table("data set", title=f"Held-out log-likelihood a row, mean of {seeds} splits")
    for column in ("dimensions", "C-NODE flow", "Gaussian", "kernels", "NFE", "parameters"):
        table.add_column(column, justify="right")
    for row in rows:
        table.add_row(
            row["dataset"],
            str(row["dimensions"]),
            *(f"{row[f'log_likelihood_{name}']:.3f}" for name in ("mean", "gaussian", "kernel")),
            f"{row['nfe']:.0f}",
            f"{row['parameters']:,}",
        )
    tell({"rows": rows}, table, as_json=as_json)


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
    from charax.experiments import table2
    from charax.plots import draw_dynamics, draw_run
    from charax.training import make_progress

    folder = output or Path("runs") / f"table2-{budget}"
    result = table2.run(budget, datasets=dataset, methods=method, seeds=seeds, folder=folder, progress=make_progress())
    rows = result.rows()
    (folder / "table2.json").write_text(
        json.dumps({"budget": budget, "changed": result.changed, "rows": rows}, indent=2) + "\n"
    )
    draw_dynamics({"": result.compared}, folder / "table2.png", metric="bits_per_dim")
    for one in result.compared:
        draw_run(one.runs[0], one.runs[0].settings.prepare())
    table = Table("data set", "method", title=f"Table 2, budget {budget}")
    for column in ("bits/dim", "in the paper", "NFE", "in the paper", "parameters", "in the paper", "seconds"):
        table.add_column(column, justify="right")
    for row in rows:
        spread = "" if row["bits_per_dim_sd"] is None else f" ± {row['bits_per_dim_sd']:.3f}"
        table.add_row(
            row["dataset"],
            row["method"],
            or_dash(row["bits_per_dim_mean"], ".3f") + spread,
            or_dash(row["bits_per_dim_paper"], ".2f"),
            or_dash(row["nfe"], ".0f"),
            or_dash(row["nfe_paper"], ".0f"),
            or_dash(row["parameters"], ",.0f"),
            or_dash(row["parameters_paper"], ",.0f"),
            or_dash(row["seconds"], ".0f"),
        )
    table.caption = f"Changed from the paper: {result.changed}. Pictures: {folder}/table2.png, {folder}/*/plots"
    tell({"rows": rows}, table, as_json=as_json)
