"""Sphinx configuration; the hook and API reference are generated from the code by ``_ext/reference.py``."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

from pi_core import __version__

project = "Pi for Python"
author = "The Pi for Python authors"
release = version = __version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.intersphinx", "reference"]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = "Pi for Python"
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3

autodoc_member_order = "bysource"
autodoc_typehints = "none"
autodoc_default_options = {"members": True, "show-inheritance": False}
intersphinx_mapping = {}
nitpicky = True
nitpick_ignore_regex = [
    ("py:.*", r"(asyncio|pydantic|pluggy|click|collections|copy|enum|httpx|time|typing|Exception|CancelledError).*"),
    ("py:class", r"pi_core\._.*|pi_\w+\..*\._\w+"),
    ("py:obj", r"pi_core\..*\.[RT]"),
    ("py:exc", r"(TypeError|ValueError|KeyError|RuntimeError|AssertionError|BaseException|Exception)"),
]
