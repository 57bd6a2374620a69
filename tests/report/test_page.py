"""Reports without a browser: what is in the file, and the intervals of metrics."""

import json
import re
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import plotly.graph_objects as go
import pytest

from charax.plotting import Details, Section
from charax.report import Interval, metric_intervals, write_report
from charax.report._curves import learning_curves, log_ticks, run_colors
from charax.report._html import block, content, write_page
from charax.report._page import matching_note, short_names
from charax.report._tables import spell_interval, table
from charax.train import LoopConfig, Splits, TrainedModel
from tests.train.line_task import LineTask, Points


def payload_of(html: str) -> dict:
    (data,) = re.findall(r"<script type='application/json'>(.*?)</script>", html, re.DOTALL)
    return json.loads(data)


def test_a_section_is_data_that_no_cell_can_break_out_of():
    image = np.array([[0.0, 1.0], [0.5, 1.0]])
    details = Details(["image", "class"], {"0": [(image, "</script><b>")]}, "Click.")
    section = Section("Title", "1 < 2", go.Figure(go.Scatter(x=[1], y=[2])), details, frame_label="t")
    html = content(section)
    assert "<p>1 &lt; 2</p>" in html
    payload = payload_of(html)
    assert payload["details"]["rows"]["0"][0][1] == "</script><b>"
    assert payload["details"]["rows"]["0"][0][0]["image"].startswith("data:image/png;base64,")
    assert payload["along"] == "t"
    assert "template" not in payload["layout"]
    assert "<i>" not in block("<i>", [("<i>", "")])


def test_a_page_names_no_other_file_or_host(tmp_path):
    write_page(tmp_path / "deep" / "page.html", "mine", block("Part", [(None, "text")]))
    page = (tmp_path / "deep" / "page.html").read_text()
    own = page.replace(page[page.index("<script>") : page.rindex("<script>")], "")  # without plotly's own program
    assert not re.search(r"(src|href)=(?![\"']?(#|data:))", own)
    assert "http" not in own
    assert "<title>charax: mine</title>" in page
    assert not list(tmp_path.rglob("*.part"))


def test_runs_are_named_by_what_tells_them_apart(tmp_path):
    assert short_names([tmp_path / "a" / "one", tmp_path / "b" / "two"]) == ["one", "two"]
    assert short_names([tmp_path / "a" / "one", tmp_path / "b" / "one"]) == ["a/one", "b/one"]


def history(*values: float) -> list[dict]:
    return [{"epoch": i + 1, "loss": value, "validation_loss": 2 * value} for i, value in enumerate(values)]


def test_learning_curves_have_both_splits_of_every_run_in_the_colours_of_the_methods():
    run = lambda method, *values: SimpleNamespace(epochs=history(*values), config=SimpleNamespace(method=method))
    runs = [run("node", 3.0, 2.0), run("c-node", 1.0, 0.5)]
    figure = learning_curves(runs, ["one", "two"], ("loss", "accuracy"))
    assert [trace.name for trace in figure.data] == [
        "one, training",
        "one, validation",
        "two, training",
        "two, validation",
    ]
    assert list(figure.data[3].y) == [2.0, 1.0]
    assert figure.layout.yaxis.type == "log"
    assert list(figure.layout.yaxis.ticktext) == ["0.2", "0.5", "1", "2", "5", "10"]
    assert len(set(run_colors(runs))) == 2
    assert run_colors(runs) == run_colors([*runs, runs[0]])[:2]  # a third run does not change the colour of a method
    assert len(set(run_colors([*runs, runs[0]]))) == 3
    assert len(set(run_colors([runs[0]] * 4))) == 4
    assert learning_curves(runs, ["one", "two"], ("nfe",)) is None


def test_an_axis_has_ticks_whatever_its_range():
    flat = SimpleNamespace(epochs=history(1.1, 1.2), config=SimpleNamespace(method="node"))
    assert learning_curves([flat], ["one"], ("loss",)).layout.yaxis.type is None  # no power of ten in between
    assert log_ticks(1e-6, 1.0) == pytest.approx([1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1])
    nll = SimpleNamespace(epochs=[{**row, "validation_nll": 1.0} for row in flat.epochs], config=flat.config)
    assert learning_curves([nll], ["one"], ("loss",)).layout.yaxis.title.text == "negative log-likelihood"
    assert learning_curves([nll, flat], ["one", "two"], ("loss",)).layout.yaxis.title.text == "loss"


def test_the_training_loss_of_flow_matching_is_said_to_be_another_one():
    run = lambda objective: SimpleNamespace(config=SimpleNamespace(objective=objective))
    assert matching_note([run("likelihood"), SimpleNamespace(config=SimpleNamespace())]) == ""
    assert "loss of its own" in matching_note([run("likelihood"), run("matching")])


class Share(LineTask):
    """Its only metric is the share of large heights."""

    def metrics(self, model, batch):
        return {"loss": jnp.asarray(batch.y), "large": (jnp.asarray(batch.y) > 0.5).astype(float)}

    def summary(self, best, test):
        return {
            "large": test["test_large"],
            "twice": 2 * test["test_large"],
            "validation_large": best["validation_large"],
            "objective": "a share",
            **({"shock_time": 1.5} if "shock" in test else {}),
        }


def test_intervals_are_those_of_a_share(line):
    n, share = 400, 0.25
    test = Points(np.zeros((n, 1), np.float32), (np.arange(n) < share * n).astype(np.float32))
    run = SimpleNamespace(
        trained=TrainedModel(Share(line.task.solver, line.task.spec), line.task.build(jax.random.key(0))),
        splits=Splits(test, test, test),
        config=SimpleNamespace(loop=LoopConfig(batch_size=64)),
        best_epoch={"validation_large": 0.3},
        history=[{"test_large": share, "shock": 1}],
    )
    found = metric_intervals(run)
    half = 1.96 * np.sqrt(share * (1 - share) / n)
    assert found["large"].lower == pytest.approx(share - half, abs=0.006)
    assert found["large"].upper == pytest.approx(share + half, abs=0.006)
    assert found["twice"].upper / 2 == pytest.approx(found["large"].upper)
    assert found["validation_large"] == Interval(0.3, None, None)
    assert found["shock_time"] == Interval(1.5, None, None)  # known, but no mean over samples
    assert "objective" not in found  # a text has no interval


def test_a_metric_is_shown_with_its_interval_and_sorts_as_a_number():
    assert spell_interval(Interval(0.98, 0.96, 0.99)) == (
        "<span data-value='0.98'>0.9800</span><small>0.9600 to 0.9900</small>"
    )
    assert spell_interval(Interval(None, None, None)) == spell_interval(None) == "-"
    assert 'class="sortable"' in table(["a"], [["1"]], sortable=True)


def test_a_report_needs_a_run(tmp_path):
    with pytest.raises(ValueError, match="at least one run"):
        write_report([], tmp_path / "report.html")
    assert not list(tmp_path.iterdir())
