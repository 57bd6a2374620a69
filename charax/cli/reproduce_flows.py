"""`charax reproduce …` for densities."""

import json
from pathlib import Path

from rich.table import Table

from charax.cli.app import Json, or_dash, reproduce, tell


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
    from charax.plots import draw_nll, draw_run
    from charax.training import make_progress

    result = toy_flow.run(seeds=seeds, iterations=iterations, folder=output, progress=make_progress())
    rows = result.rows()
    (output / "toy-flow.json").write_text(json.dumps({"iterations": iterations, "rows": rows}, indent=2) + "\n")
    draw_nll(result.compared, "nll", output / "toy-flow.png")
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
