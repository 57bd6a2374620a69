"""What must be true of the stored results of every experiment."""

from typing import Any


def check_propositions(answer: dict[str, Any]) -> None:
    crossing = answer["intersecting"]
    assert crossing["construction_error"] <= 1e-6
    assert crossing["c_node_error"] <= 0.01
    assert crossing["node_error"] >= 0.4
    assert crossing["node_parameters"] >= crossing["c_node_parameters"]
    assert answer["homeomorphism"]["forward_error"] <= 1e-5
    assert answer["homeomorphism"]["inverse_error"] <= 1e-5
    assert answer["characteristics"]["error"] <= 1e-6
    assert answer["log_density"]["error"] <= 1e-6
    assert answer["log_density"]["error_when_conditioned"] > 1e-2
    assert "may not read u0" in answer["log_density"]["refusal"]


def check_table1(answer: dict[str, Any]) -> None:
    (row,) = answer["rows"]
    assert (row["dataset"], row["method"], row["nfe"]) == ("digits", "c-node", 2)  # two Euler steps
    assert [(each["training"], each["method"]) for each in answer["dynamics"]] == [
        ("adjoint", "c-node"),
        ("Euler", "c-node"),
    ]
    assert all(len(curve) == 1 for each in answer["dynamics"] for curve in each["validation_accuracy"])


def check_kinetic(answer: dict[str, Any]) -> None:
    plain, regularized = answer["rows"]
    assert (plain["kinetic"], plain["nll_ratio"], plain["nfe_ratio"]) == (0, 1, 1)
    assert regularized["kinetic"] == 1.5
    assert regularized["nll_ratio"] == regularized["nll_mean"] / plain["nll_mean"] != 1


def check_pde(answer: dict[str, Any]) -> None:
    (row,) = answer["rows"]
    assert (row["problem"], row["method"], row["deviation_percent_paper"]) == ("paper", "node-fair", None)
    assert row["extrapolation_percent_mean"] > 0
    assert row["parameters"] == 770


def check_equations(answer: dict[str, Any]) -> None:
    (row,) = answer["rows"]
    assert (row["problem"], row["noise"], row["method"]) == ("growth", 0.0, "mlp")
    assert row["error_beyond_percent"] > row["error_inside_percent"] > 0
    assert row["equation"] is row["right_terms"] is row["coefficient_error_percent"] is None  # it knows no equation
    assert row["coverage"] is row["coverage_shock_time"] is None
    assert row["parameters"] == 697


def check_timeseries(answer: dict[str, Any]) -> None:
    assert [row["interval"] for row in answer["rows"]] == [[n, n + 1] for n in range(6)]
    assert {round(row["deviation_percent_floor"], 2) for row in answer["rows"]} == {17.16}
    # No prediction can be better, but for the sampling error of 2,000 points.
    assert all(row["deviation_percent_mean"] > 0.95 * row["deviation_percent_floor"] for row in answer["rows"])
    assert {row["parameters"] for row in answer["rows"]} == {898}


def check_ablation(answer: dict[str, Any]) -> None:
    rows = answer["rows"]
    assert [row["k"] for row in rows] == [1, 2]
    assert rows[1]["parameters"] > rows[0]["parameters"]
    assert answer["picked"] == {
        "validation": max(rows, key=lambda row: row["validation_mean"])["k"],
        "aic": min(rows, key=lambda row: row["aic"])["k"],
        "bic": min(rows, key=lambda row: row["bic"])["k"],
    }


def check_uci(answer: dict[str, Any]) -> None:
    (row,) = answer["rows"]
    assert (row["dataset"], row["log_likelihood_mc_dropout"], row["splits"]) == ("yacht", -1.25, 1)
    assert row["log_likelihood_linear"] > row["log_likelihood_mean"]  # after one epoch, where the truth is linear


CLAIMS = {
    "propositions": check_propositions,
    "table1": check_table1,
    "kinetic": check_kinetic,
    "pde": check_pde,
    "equations": check_equations,
    "timeseries": check_timeseries,
    "ablation": check_ablation,
    "separations": lambda answer: [(row["variant"], row["k"]) for row in answer["rows"]] == [("c-node-k2-u0", 2)],
    "toy-flow": lambda answer: [row["method"] for row in answer["rows"]] == ["c-node", "node"],
    "tabular": lambda answer: [(row["dataset"], row["dimensions"]) for row in answer["rows"]] == [("iris", 4)],
    "uci": check_uci,
    "forecasts": lambda answer: (
        [row["method"] for row in answer["rows"]] == ["c-node", "persistence", "linear autoregression"]
        and all(row["scaled_rmse_mean"] > 0 and 0 <= row["covered_mean"] <= 1 for row in answer["rows"])
        # The C-NODE has had one epoch, and may cover nothing.
        and all(row["covered_mean"] > 0 for row in answer["rows"][1:])
    ),
    "irregular": lambda answer: 0 <= answer["rows"][0]["accuracy_mean"] <= 1 and answer["rows"][0]["nfe"] == 4,
    "table2": lambda answer: 0 < answer["rows"][0]["bits_per_dim_mean"] < 10,
}
