"""The picture of a report in README: `make demo`, then `python -m benchmarks.report_picture runs/demo/report.html`.

It shows the confusion matrices and the trajectories of the two runs, halfway along s. It needs Chromium and its driver.
"""

import base64
from pathlib import Path

import tyro

from tests.report.browser import open_browser

PICTURE = Path(__file__).parents[1] / "docs" / "_static" / "report.png"
SECTIONS = ("confusion-matrix", "trajectories-u-s")
WIDTH = 1400


def main(report: tyro.conf.Positional[Path], /, output: Path = PICTURE) -> None:
    """Take a picture of two sections of a report.

    Args:
        report: The report of two runs.
        output: The PNG file to write.
    """
    with open_browser() as page:
        page.use_theme("light")
        page.resize(WIDTH)
        page.open(report)
        page.run("document.querySelector('header').style.position = 'static'")
        for section in SECTIONS:
            page.run("document.getElementById(arguments[0]).scrollIntoView()", section)
            ready = f"return document.querySelectorAll('#{section} [data-ready]').length === 2"
            page.wait(lambda ready=ready: page.run(ready), seconds=120)
        slider = page.find(f"#{SECTIONS[-1]} input")
        steps = int(page.run("return arguments[0].max", slider))
        slider.send_keys("\ue014" * (steps // 2))  # the right arrow key
        middle = f"return document.querySelectorAll('#{SECTIONS[-1]} [data-frame=\"0.5\"]').length === 2"
        page.wait(lambda: page.run(middle), seconds=60)
        page.run("document.activeElement.blur()")
        top, bottom = page.run(_EDGES, SECTIONS[0], SECTIONS[-1])
        clip = {"x": 0, "y": top, "width": WIDTH, "height": bottom - top, "scale": 1}
        answer = page.driver.execute_cdp_cmd("Page.captureScreenshot", {"captureBeyondViewport": True, "clip": clip})
    output.write_bytes(base64.b64decode(answer["data"]))
    print(output)


_EDGES = """
const [first, last] = [...arguments].map(name => document.getElementById(name).getBoundingClientRect());
return [first.top + window.scrollY, last.bottom + window.scrollY];
"""

if __name__ == "__main__":
    tyro.cli(main)
