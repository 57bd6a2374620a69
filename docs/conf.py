"""The site: `make docs`. Pages are Markdown, examples are executed, the reference comes from the docstrings."""

import os
import sys
import typing
from pathlib import Path

from charax._version import __version__
from charax.plotting._style import STYLE

# jaxtyping then writes Array where it would write jaxlib._jax.Array.
typing.GENERATING_DOCUMENTATION = "charax"  # pyright: ignore[reportAttributeAccessIssue]
sys.path.insert(0, str(Path(__file__).parent / "_ext"))

project, author, release = "charax", "The charax developers", __version__
project_copyright = "The charax developers"
extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_copybutton", "charax_site"]
exclude_patterns = ["_build", "**/.ipynb_checkpoints", "results/**/*.md.part"]
default_role = "code"

html_theme = "furo"
html_title = "charax"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#0072b2", "color-brand-content": "#0072b2"},
    "dark_css_variables": {"color-brand-primary": "#56b4e9", "color-brand-content": "#56b4e9"},
}
html_show_sphinx = False

# Mathematics is written with Unicode, as in the docstrings: nothing is fetched to show it.
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3
# Words such as "shape" in the types of attributes are words, and no links to one of the attributes of that name.
# A page may be reached from the text of another instead of from the contents.
suppress_warnings = ["ref.python", "toc.not_included"]

# The figures of executed pages have the style of those that charax saves.
_style = Path(__file__).parent / "_build" / "matplotlibrc"
_style.parent.mkdir(exist_ok=True)
_style.write_text("".join(f"{name}: {value}\n" for name, value in STYLE.items()))
os.environ["MATPLOTLIBRC"] = str(_style)

nb_execution_mode = "cache"
nb_execution_cache_path = str(Path(__file__).parent / "_build" / "notebooks")
nb_execution_timeout = 600
nb_execution_raise_on_error = True
nb_merge_streams = True
nb_output_stderr = "remove"  # the compiler's messages

autodoc_default_options = {"members": True, "member-order": "bysource"}
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
napoleon_google_docstring = True
napoleon_numpy_docstring = False
