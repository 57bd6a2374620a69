"""Reports in a real browser: the slider moves the picture, tables sort, cells show their samples, no errors."""

from pathlib import Path

import numpy as np
import plotly.graph_objects as go
import pytest
from plotly.subplots import make_subplots

from charax.plotting import C_NODE, Details, Section, moving_curves
from charax.report._html import block, content, write_page
from charax.report._tables import number, table

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")


@pytest.fixture(scope="module")
def page(tmp_path_factory) -> Path:
    """Two runs side by side, without the time that it takes to train them."""
    s = np.linspace(0, 1, 5)
    curves = np.stack([np.outer(s, [1.0, 2.0, 3.0]), np.outer(s**2, [3.0, 2.0, 1.0])], axis=-1)
    moving = Section("Curves", "Two.", moving_curves(curves, s, np.array([0, 1, 1]), ["a", "b"], ["x", "y"]))
    flat = Section("Lines", "One.", moving_curves(curves[..., :1], s, np.array([0, 1, 1]), ["a", "b"], ["x"]))
    heat = go.Figure(go.Heatmap(z=[[1, 2], [3, 4]], customdata=[["0/0", "0/1"], ["1/0", "1/1"]]))
    details = Details(["row", "class"], {"0/0": [("first", "a")], "1/1": [("last", "b")]}, "Click.", first="0/0")
    cells = Section("Cells", "Four.", heat, details)
    panels = make_subplots(1, 2)
    for column in (1, 2):
        panels.add_scatter(x=[0, 1], y=[0, 1], line={"color": C_NODE}, row=1, col=column)
    rows = [["one", number(10.0)], ["two", number(9.0)], ["three", number(None)]]
    path = tmp_path_factory.mktemp("report") / "report.html"
    body = [
        block("Metrics", [(None, table(["run", "loss"], rows, sortable=True))]),
        block("Lines", [("one", content(flat)), ("two", content(flat))]),
        block("Cells", [(None, content(cells))]),
        block("Panels", [(None, content(Section("Panels", "Two.", panels)))]),
        block("Curves", [("one", content(moving)), ("two", content(moving))]),
    ]
    write_page(path, "two runs", "\n".join(body))
    return path


def pictures(window) -> list[str]:
    return window.run("return [...document.querySelectorAll('#lines .scatterlayer')].map(each => each.innerHTML)")


def test_the_slider_moves_the_figures_of_all_runs(window, page):
    window.open(page)
    window.wait(lambda: window.run("return document.querySelectorAll('#lines [data-ready]').length === 2"))
    before = pictures(window)
    slider = window.find("#lines input")
    slider.send_keys("\ue014\ue014")  # the right arrow key, twice
    window.wait(lambda: window.run("return document.querySelectorAll('#lines [data-frame=\"0.5\"]').length === 2"))
    after = pictures(window)
    assert all(one != other for one, other in zip(before, after, strict=True))
    shown = window.run("return [...document.querySelectorAll('#lines output')].map(each => each.textContent)")
    assert shown == ["s = 0.5", "s = 0.5"]
    assert window.errors() == []


def test_a_figure_stays_drawn_when_it_is_scrolled_away_and_all_are_printed(window, page):
    """Figures are drawn when they come near; on paper all of them are."""
    window.open(page)
    window.wait(lambda: window.run("return document.querySelectorAll('#lines [data-ready]').length === 2"))
    drawn = lambda: window.run("return document.querySelectorAll('.plot[data-ready]').length")
    total = window.run("return document.querySelectorAll('.plot').length")
    window.run("document.querySelector('#metrics').style.marginTop = '9000px'")
    window.run("return new Promise(done => requestAnimationFrame(() => setTimeout(done, 300)))")
    assert window.run("return document.querySelectorAll('#lines [data-ready]').length") == 2
    assert 2 <= drawn() < total
    window.run("window.dispatchEvent(new Event('beforeprint'))")
    window.wait(lambda: drawn() == total)
    assert window.errors() == []


@pytest.mark.slow
def test_curves_in_space_are_drawn_and_played(window, page):
    window.open(page)
    window.run("document.querySelector('#curves').scrollIntoView()")
    window.wait(lambda: window.run("return document.querySelectorAll('#curves [data-ready] canvas').length >= 2"))
    window.find("#curves .controls button").click()
    window.wait(lambda: window.run("return document.querySelectorAll('#curves [data-frame=\"1\"]').length === 2"))
    assert window.errors() == []


def test_a_click_shows_the_samples_behind_a_cell(window, page):
    window.open(page)
    window.run("document.querySelector('#cells').scrollIntoView()")
    window.wait(lambda: window.run("return document.querySelector('#cells [data-ready]')"))
    assert window.find("#cells .details td").text == "first"
    window.run(
        "document.querySelector('#cells .plot').emit('plotly_click', {points: [{customdata: arguments[0]}]})", "1/1"
    )
    assert window.find("#cells .details td").text == "last"
    window.run("document.querySelector('#cells .plot').emit('plotly_click', {points: [{customdata: '0/1'}]})")
    assert "none here" in window.find("#cells .details").text


def test_the_table_sorts_by_numbers(window, page):
    window.open(page)
    rows = "[...document.querySelectorAll('.sortable tbody tr')]"
    order = lambda: window.run(f"return {rows}.map(row => row.cells[0].textContent)")
    button = window.find("th:nth-child(2) button")
    button.click()
    assert order() == ["two", "one", "three"]
    button.click()
    assert order() == ["one", "two", "three"]
    assert window.find("th:nth-child(2)").get_attribute("aria-sort") == "descending"


@pytest.mark.parametrize(("theme", "width"), [("light", 1400), ("dark", 400)])
def test_it_fits_the_window_and_takes_its_theme(theme, width, window, page):
    window.use_theme(theme)
    window.resize(width)
    window.open(page)
    window.wait(lambda: window.run("return document.querySelector('[data-ready]')"))
    assert not window.is_too_wide()
    background = window.run("return getComputedStyle(document.body).backgroundColor")
    assert (background == "rgb(255, 255, 255)") == (theme == "light")
    window.run("document.querySelector('#panels').scrollIntoView()")
    window.wait(lambda: window.run("return document.querySelector('#panels [data-ready]')"))
    stroke = window.run("return document.querySelector('#panels .js-line').style.stroke")
    assert stroke == ("rgb(0, 114, 178)" if theme == "light" else "rgb(86, 180, 233)")
    smallest = window.run(
        "return Math.min(...[...document.querySelectorAll('text, td, p, small, label, button, a')]"
        ".map(each => parseFloat(getComputedStyle(each).fontSize)))"
    )
    assert smallest >= 8 * 96 / 72  # eight points
    window.find("#theme").click()
    assert window.run("return document.documentElement.dataset.theme") != theme
    assert window.errors() == []


def test_a_box_in_space_is_no_wider_than_a_narrow_window(window, page):
    window.resize(400)
    window.open(page)
    window.run("document.querySelector('#curves').scrollIntoView()")
    window.wait(lambda: window.run("return document.querySelector('#curves [data-ready]')"))
    place = window.run("return document.querySelector('#curves .plot').getBoundingClientRect()")
    assert place["height"] < 1.1 * place["width"]
    window.resize(1400)


@pytest.mark.parametrize(("width", "rows"), [(1400, 1), (400, 2)])
def test_panels_side_by_side_are_stacked_in_a_narrow_window(width, rows, window, page):
    window.resize(width)
    window.open(page)
    window.run("document.querySelector('#panels').scrollIntoView()")
    window.wait(lambda: window.run("return document.querySelector('#panels [data-ready]')"))
    places = window.run("return [...document.querySelectorAll('#panels .subplot')].map(e => e.getBoundingClientRect())")
    assert len({round(place["top"] / 50) for place in places}) == rows
    window.resize(1400)


SITE = Path(__file__).parents[2] / "docs" / "_build" / "html"


@pytest.mark.skipif(not (SITE / "index.html").exists(), reason="the site is not built: make docs")
@pytest.mark.parametrize("width", [1400, 400])
def test_the_site_needs_no_network_and_fits_the_window(width, window):
    window.resize(width)
    for page in ("index.html", "learn/equation.html", "reference/api/charax.solve.html"):
        window.open(SITE / page)
        assert not window.is_too_wide(), page
        loaded = window.run("return performance.getEntriesByType('resource').map(each => each.name)")
        assert [name for name in loaded if not name.startswith(("file:", "data:"))] == []
        broken = window.run("return [...document.images].filter(each => !each.naturalWidth).map(each => each.src)")
        assert broken == []
        assert window.errors() == []
