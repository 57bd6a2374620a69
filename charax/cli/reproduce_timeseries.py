"""`charax reproduce timeseries`."""

from pathlib import Path

from charax.cli.app import Json, Sheet, or_dash, reproduce, tell, with_spread
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
    from charax.paper import timeseries
    from charax.plotting import draw_intervals, draw_run
    from charax.train import make_progress

    result = timeseries.run(methods=method, seeds=seeds, epochs=epochs, folder=output, progress=make_progress())
    rows = [row for one in result for row in one.rows()]
    draw_intervals(rows, output / "intervals.png")
    for one in result:
        draw_run(one.runs[0], one.runs[0].settings.prepare())
    sheet = Sheet(
        "Time series with x hidden: mean relative deviation in %",
        ["method", "interval", "deviation", "paper's", "floor", "parameters"],
        [
            [
                row["method"],
                str(row["interval"]),
                with_spread(row["deviation_percent_mean"], row["deviation_percent_sd"], ".2f"),
                or_dash(row["deviation_percent_paper"], ".2f"),
                f"{row['deviation_percent_floor']:.1f}",
                f"{row['parameters']:,}",
            ]
            for row in rows
        ],
    )
    sheet.write(output / "timeseries.md")
    pictures = f"Table and pictures: {output}/timeseries.md, {output}/intervals.png, {output}/*/plots"
    tell({"rows": rows}, sheet.table(pictures), as_json=as_json)
