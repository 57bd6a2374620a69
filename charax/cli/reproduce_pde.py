"""`charax reproduce pde`."""

from pathlib import Path
from typing import Any

from charax.cli.app import Json, Sheet, or_dash, reproduce, tell, with_spread
from charax.paper.pde import PdeBudget, PdeMethod


@reproduce.command(name="pde")
def reproduce_pde(
    *,
    budget: PdeBudget = "cpu",
    problem: tuple[str, ...] = (),
    method: tuple[PdeMethod, ...] = (),
    seeds: int | None = None,
    output: Path | None = None,
    as_json: Json = False,
) -> None:
    """The paper's PDE experiment, and three more problems. Interrupted, it goes on where it was.

    Args:
        budget: smoke: the paper's problem, one seed. cpu: four problems, five seeds. paper: the same, longer.
        problem: Only these problems.
        method: Only these methods; equation is the structured form, on Burgers' equation.
        seeds: Seeds per row, instead of the budget's.
        output: Folder of the runs, the table and the pictures; by default runs/pde-BUDGET.
    """
    from charax.paper import pde
    from charax.plotting import draw_deviations, draw_run
    from charax.train import make_progress

    folder = output or Path("runs") / f"pde-{budget}"
    result = pde.run(budget, problems=problem, methods=method, seeds=seeds, folder=folder, progress=make_progress())
    answer = result.to_json()
    for one in result.learned:
        draw_run(one.runs[0], one.runs[0].settings.prepare())
    if result.equation is not None:
        draw_run(result.equation.runs[0], result.equation.runs[0].settings.prepare())
    if answer["rows"]:
        draw_deviations(answer["rows"], folder / "deviations.png")
    sheet = Sheet(
        f"Learned PDEs, budget {budget}: mean relative deviation in %",
        ["problem", "method", "deviation", "paper's", "later times", "parameters", "s"],
        [
            [
                row["problem"],
                row["method"],
                with_spread(row["deviation_percent_mean"], row["deviation_percent_sd"], ".3f"),
                or_dash(row["deviation_percent_paper"], ".2f"),
                with_spread(row["extrapolation_percent_mean"], row["extrapolation_percent_sd"], ".3f"),
                f"{row['parameters']:,}",
                f"{row['seconds']:.0f}",
            ]
            for row in answer["rows"]
        ],
        _describe_equation(answer.get("equation")),
    )
    sheet.write(folder / "pde.md")
    pictures = f"Table and pictures: {folder}/pde.md, {folder}/deviations.png, {folder}/*/plots"
    tell(answer, sheet.table(pictures), as_json=as_json)


def _describe_equation(equation: dict[str, Any] | None) -> str:
    if equation is None:
        return ""
    return (
        f"Structured form on Burgers' equation, {equation['seeds']} seeds: the learned velocity is within "
        f"{equation['velocity_error_percent_max']:.2f}% of u."
    )
