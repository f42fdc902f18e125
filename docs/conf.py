"""How the site is built: `make docs`."""

import sys
from importlib.metadata import version as installed_version
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_extensions"))

from api_pages import all_members, class_names, file_names  # noqa: E402 (found by the line above)

project = "hubbub"
author = "The hubbub developers"
copyright = "The hubbub developers, Apache-2.0"
version = release = installed_version("hubbub")

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "mathml",
    "glossary_links",
    "api_pages",
    "command_reference",
    "executed_pages",
    "terminal_output",
]
templates_path = ["_templates"]
exclude_patterns = [
    "_build",
    "**/.ipynb_checkpoints",
    "gallery",
    "pictures-and-code/**.ipynb",
    "pictures-and-code/**.py",
]

# Pages are Markdown; those with code cells are executed, and what is kept of a run serves the next build.
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath", "attrs_inline"]
myst_heading_anchors = 4
nb_execution_mode = "cache"
nb_execution_raise_on_error = True
nb_execution_show_tb = True
nb_execution_timeout = 600

# Signatures have the types; sections have the meaning. A name in single backticks is code.
default_role = "public"
autosummary_generate = True
autosummary_context = {"shown_members": all_members()}
autosummary_filename_map = file_names()
python_maximum_signature_line_length = 80
python_use_unqualified_type_names = True
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
numpydoc_show_class_members = False
numpydoc_xref_param_type = True
numpydoc_xref_aliases = {name: f"hubbub.{name}" for name in class_names()}
numpydoc_xref_ignore = "all"
numpydoc_class_members_toctree = False

# The order of the gallery: its sections are folders, and in each a reader meets the simplest picture first.
GALLERY = {
    "estimates": ["yes_or_no", "categories", "ages", "joint", "map", "spikes", "iterations", "candidates"],
    "trust": ["band", "certainty", "resolved_ages", "resolved_map", "weights", "fakes"],
    "comparing": ["two_groups_answers", "two_groups", "trend", "districts"],
    "planning": ["plan", "mechanisms", "matrix", "error_probability"],
}


def gallery_place(script: str) -> int:
    """Return a script's place in the gallery."""
    names = [name for section in GALLERY.values() for name in section]
    return names.index(Path(script).stem.removeprefix("plot_"))


sphinx_gallery_conf = {
    "examples_dirs": ["gallery"],
    "gallery_dirs": ["pictures-and-code"],
    "subsection_order": [f"gallery/{section}" for section in GALLERY],
    "within_subsection_order": gallery_place,
    "filename_pattern": r"\.py$",
    "image_srcset": ["2x"],
    "thumbnail_size": (480, 320),
    "capture_repr": (),  # pictures speak for themselves
    "remove_config_comments": True,
    "show_memory": False,
    "write_computation_times": False,
    "show_signature": False,
    "min_reported_time": 1e9,
    "abort_on_example_error": True,
}

# Words whose meaning here is that of everyday speech are in the glossary, and not linked to it.
glossary_everyday_words = [
    "value",
    "row",
    "group",
    "source",
    "item",
    "output",
    "share",
    "level",
    "period",
    "truth",
    "figure",
]
glossary_everyday_words += [
    "claim",
    "fact",
    "progress",
    "position",
    "status",
    "family",
    "deal",
    "law",
    "kind",
    "reports",
    "unique",
]
glossary_everyday_words += [
    "region",
    "verdict",
    "span",
    "plan",
    "candidate",
    "reject",
    "report",
    "estimate",
    "band",
    "interval",
]
glossary_unlinked = (
    "pictures-and-code",
    "reference/api",
    "reference/commands",
    "reference/accuracy-cases",
    "reference/benchmarks",
    "index",
)

html_theme = "furo"
html_title = f"hubbub {version}"
html_static_path = ["_static"]
html_css_files = ["site.css", "gallery.css"]
html_js_files = ["accessible.js"]
html_copy_source = False
html_show_sourcelink = False
html_last_updated_fmt = None
html_math_renderer = "mathml"
html_theme_options = {"sidebar_hide_name": False, "navigation_with_keys": True, "top_of_page_buttons": []}
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
copybutton_line_continuation_character = "\\"
suppress_warnings = ["config.cache"]  # gallery options hold functions, which are not kept between builds
