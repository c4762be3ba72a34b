"""The settings of the documentation site: `sphinx-build -W -n -b html docs docs/_build/html`.

The reference is generated from the package (docs/_ext/reference) when a build starts, the tutorials are copies of the
notebooks. A built page loads nothing from the network.
"""

import os
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE / "_ext"), str(HERE.parent)]

from numpydoc.xref import DEFAULT_LINKS  # noqa: E402

import agent_eval_schema  # noqa: E402

project = "agent_eval_schema"
copyright = "the authors of agent_eval_schema"
version = release = agent_eval_schema.__version__

extensions = [
    "sphinx.ext.autodoc",
    "numpydoc",
    "myst_nb",
    "sphinx_design",
    "sphinx_copybutton",
    "reference",
]
exclude_patterns = ["_build", "_ext"]
nitpicky = True

myst_enable_extensions = ["colon_fence", "deflist", "attrs_block"]
myst_heading_anchors = 3
nb_execution_mode = "off"
nb_ipywidgets_js: dict[str, dict[str, str]] = {}  # which would come from a CDN
suppress_warnings = ["mystnb.unknown_mime_type"]

autodoc_typehints = "none"  # the sections Parameters and Returns have the types
autodoc_member_order = "bysource"
numpydoc_show_class_members = False  # each member is documented below its class
numpydoc_xref_param_type = True
numpydoc_xref_ignore = "all"  # except public names: those of Python are in its documentation, which is not read
DEFAULT_LINKS.clear()
numpydoc_xref_aliases = {name: f"agent_eval_schema.{name}" for name in agent_eval_schema.__all__}
add_module_names = False
default_role = "public"
toc_object_entries = False

copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
copybutton_only_copy_prompt_lines = True

html_theme = "pydata_sphinx_theme"
html_title = project
html_baseurl = os.environ.get("READTHEDOCS_CANONICAL_URL", "https://agent-eval-schema.github.io/agent-eval-schema/")
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_search_scorer = str(HERE / "_static" / "scorer.js")
html_js_files = [("filter.js", {"defer": "defer"})]
templates_path = ["_templates"]
html_additional_pages = {"404": "404.html"}
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "logo": {"text": project},
    "navbar_align": "left",
    "navbar_end": ["theme-switcher"],
    "header_links_before_dropdown": 6,
    "footer_start": ["copyright"],
    "footer_end": [],
    "show_toc_level": 2,
    "navigation_depth": 3,
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
html_sidebars: dict[str, list[str]] = {
    name: [] for name in ("index", "install", "quickstart", "comparison", "faq", "glossary", "changelog", "versioning")
}
