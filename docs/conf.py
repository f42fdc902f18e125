"""How the site is built: `make docs`."""

import sys
from importlib.metadata import version as installed_version
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_extensions"))

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
    "executed_pages",
    "terminal_output",
]
exclude_patterns = ["_build", "**/.ipynb_checkpoints", "gallery", "pictures-and-code/*.ipynb", "pictures-and-code/*.py"]

# Pages are Markdown; those with code cells are executed, and what is kept of a run serves the next build.
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath", "attrs_inline"]
myst_heading_anchors = 4
nb_execution_mode = "cache"
nb_execution_raise_on_error = True
nb_execution_show_tb = True
nb_execution_timeout = 600

# Signatures have the types; sections have the meaning.
autosummary_generate = True
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

sphinx_gallery_conf = {
    "examples_dirs": ["gallery"],
    "gallery_dirs": ["pictures-and-code"],
    "filename_pattern": r"\.py$",
    "remove_config_comments": True,
    "show_memory": False,
    "write_computation_times": False,
    "show_signature": False,
    "min_reported_time": 1e9,
    "abort_on_example_error": True,
}

html_theme = "furo"
html_title = f"hubbub {version}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sourcelink = False
html_last_updated_fmt = None
html_math_renderer = "mathml"
html_theme_options = {"sidebar_hide_name": False, "navigation_with_keys": True, "top_of_page_buttons": []}
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
copybutton_line_continuation_character = "\\"
suppress_warnings = ["config.cache"]  # gallery options hold functions, which are not kept between builds
