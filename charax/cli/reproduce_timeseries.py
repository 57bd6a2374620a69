"""`charax reproduce timeseries`."""

from pathlib import Path

from rich.table import Table

from charax.cli.app import Json, or_dash, reproduce, tell
from charax.models import ForecastMethod


@reproduce.command(name="timeseries")
def reproduce_timeseries(
    *,
    method: tuple[ForecastMethod, ...] = (),
    seeds: int = 5,
    epochs: int = 12,
    output: Path = Path("runs/timeseries"),
    as_json: Json = False,
) -> None:
    """The paper's time series: six intervals, with its numbers and the floor. Interrupted, it goes on where it was.

    Args:
        method: Only these methods.
        seeds: Seeds per method.
        epochs: Epochs of 50 steps each.
        output: Folder of the runs, the table and the pictures.
    """
    from charax.experiments import timeseries
    from charax.plots import draw_intervals, draw_run
    from charax.training import make_progress

    result = timeseries.run(methods=method, seeds=seeds, epochs=epochs, folder=output, progress=make_progress())
    rows = [row for one in result for row in one.rows()]
    draw_intervals(rows, output / "intervals.png")
    for one in result:
        draw_run(one.runs[0], one.runs[0].settings.prepare())
    table = Table("method", "interval", title="Time series with x hidden: mean relative deviation in %")
    for column in ("deviation", "in the paper", "floor", "parameters"):
        table.add_column(column, justify="right")
    for row in rows:
        sd = row["deviation_percent_sd"]
        table.add_row(
            row["method"],
            str(row["interval"]),
            f"{row['deviation_percent_mean']:.2f}" + ("" if sd is None else f" ± {sd:.2f}"),
            or_dash(row["deviation_percent_paper"], ".2f"),
            f"{row['deviation_percent_floor']:.1f}",
            f"{row['parameters']:,}",
        )
    table.caption = f"Pictures: {output}/intervals.png, {output}/*/plots"
    tell({"rows": rows}, table, as_json=as_json)
