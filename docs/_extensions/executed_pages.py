"""Pages with code cells: how they are run, what of their cells is shown how, and the notebook that readers download.

A cell of `!commands` is shown as a terminal with a prompt, and one that begins with `%%writefile NAME` as the file it
writes. `|| true` behind a command that is meant to fail is not shown. A cell with the tag `remove-cell` is run and not
shown; if it ends with a dictionary of texts, the page's sentences take them by their names: {value}`name`. A cell with
the tag `site-only` is not in the notebook, nor is one with `remove-cell`. The option `:alt:` of a cell describes its
picture to those who cannot see it.
"""

from __future__ import annotations

import ast
import hashlib
import json
import os
import re
import sysconfig
from pathlib import Path
from typing import Any

import nbformat
from docutils import nodes
from docutils.parsers.rst.states import Inliner
from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.util import logging

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
BUILD = ROOT / "build" / "notebooks"
LANGUAGES = {".toml": "toml", ".py": "python", ".sh": "bash", ".json": "json", ".sql": "sql"}
HIDDEN = {"remove-cell", "site-only"}  # tags of cells that a downloaded notebook is without
MAY_FAIL = re.compile(r"[ \t]*\|\| true$", flags=re.MULTILINE)
VALUE = re.compile(r"\{value\}`([^`]+)`")
ASIDE = re.compile(r"\s*\(\[[^\]]+\]\((?!https?:)[^)]*\)\)")  # ([how](other-page.md))
LINK = re.compile(r"(?<!!)\[([^\]]+)\]\((?!https?:)[^)]*\)")
STARTUP = """import sys
sys.path.append({folder!r})
from cell_terminal import use_terminal
from report_picture import report_picture
use_terminal(get_ipython())
"""
log = logging.getLogger(__name__)


class ValueNode(nodes.inline):
    """A text that a cell of the page computes."""


def digest() -> str:
    """Return a digest of hubbub's code: what was kept of a run is no use once that has changed."""
    total = hashlib.sha256()
    for path in sorted((ROOT / "src" / "hubbub").rglob("*.py")):
        total.update(path.read_bytes())
    return total.hexdigest()[:16]


def prepare(_: Sphinx, config: Config) -> None:
    """Let cells find the commands of this environment, fail when a command fails, and be run again for other code."""
    os.environ["PATH"] = os.pathsep.join([sysconfig.get_path("scripts"), os.environ.get("PATH", "")])
    profile = BUILD / "ipython" / "profile_default"
    (profile / "startup").mkdir(parents=True, exist_ok=True)
    (profile / "startup" / "site.py").write_text(STARTUP.format(folder=str(HERE)))
    os.environ["IPYTHONDIR"] = str(profile.parent)  # the reader's own settings are no part of the site, either
    config.nb_execution_cache_path = str(BUILD / "runs" / digest())
    config.nb_execution_in_temp = True
    config.nb_merge_streams = False  # it would drop what a terminal erases, progress bars among it


def keep_out_of_the_site(app: Sphinx) -> None:
    """Let executed notebooks and their pictures be written beside the site, not into it."""
    app.env.mystnb_config = app.env.mystnb_config.copy(output_folder=str(BUILD / "pages"))


def executed(docname: str) -> Any:
    """Return the notebook of a page as it was run, or None for a page without cells."""
    path = BUILD / "pages" / f"{docname}.ipynb"
    return nbformat.read(path, as_version=4) if path.exists() else None


def tags(cell: Any) -> set[str]:
    """Return the tags of a cell."""
    return set(cell.metadata.get("tags", ()))


def values(notebook: Any) -> dict[str, str]:
    """Return the texts that hidden cells of a notebook computed for its sentences."""
    found: dict[str, str] = {}
    for cell in notebook.cells:
        for output in cell.get("outputs", ()) if "remove-cell" in tags(cell) else ():
            if output.output_type == "execute_result":
                told = ast.literal_eval(output.data["text/plain"])
                found |= told if isinstance(told, dict) else {}
    return found


def value_role(
    _: str, raw: str, text: str, __: int, ___: Inliner, *____: Any, **_____: Any
) -> tuple[list[nodes.Node], list[nodes.system_message]]:
    """Stand for a text until the page was run."""
    return [ValueNode(raw, text)], []


def fill_values(document: nodes.document, known: dict[str, str]) -> None:
    """Replace names by the texts that cells computed; where nothing was run, by dots."""
    for node in list(document.findall(ValueNode)):
        name = node.astext()
        if known and name not in known:
            log.warning("no hidden cell computes {value}`%s`", name, location=node)
        node.replace_self(nodes.Text(known.get(name, "…")))


def show_cells(document: nodes.document) -> None:
    """Show cells of commands as a terminal, and those that write a file as that file."""
    for container in list(document.findall(nodes.container)):
        if "cell_input" not in container["classes"]:
            continue
        for block in list(container.findall(nodes.literal_block)):
            source = block.astext()
            if source.startswith("!"):
                shown = re.sub(r"^!", "$ ", MAY_FAIL.sub("", source), flags=re.MULTILINE)
                replace(block, shown, "console")
            elif source.startswith("%%writefile "):
                first, _, rest = source.partition("\n")
                name = first.split()[-1]
                replace(block, rest, LANGUAGES.get(Path(name).suffix, "text"))
                caption = f'<div class="code-block-caption file-name"><code>{name}</code></div>'
                block.parent.insert(block.parent.index(block), nodes.raw("", caption, format="html"))
                drop_message(container)


def describe_pictures(document: nodes.document) -> None:
    """Give pictures of cells the description that the cell has."""
    for cell in document.findall(nodes.container):
        if cell.get("nb_element") == "cell_code":
            text = cell.get("cell_metadata", {}).get("alt", "What the code above draws")
            for image in cell.findall(nodes.image):
                image["alt"] = text


def replace(block: nodes.literal_block, text: str, language: str) -> None:
    """Give a block another text."""
    block.rawsource = text
    block.children = []
    block += nodes.Text(text)
    block["language"] = language


def drop_message(cell_input: nodes.container) -> None:
    """Leave out "Writing study.toml": the page shows it."""
    outputs = cell_input.next_node(nodes.container, descend=False, siblings=True)
    if outputs is not None and "cell_output" in outputs["classes"]:
        outputs.parent.remove(outputs)


def offer_notebook(document: nodes.document, docname: str) -> None:
    """Offer the page as a notebook below its title."""
    name = Path(docname).name
    link = f'<a href="{name}.ipynb" download>Download this page as a notebook</a>'
    html = f'<p class="notebook-download">{link} and run it yourself.</p>'
    section = next(document.findall(nodes.section))
    section.insert(1, nodes.raw("", html, format="html"))


def finish_page(app: Sphinx, document: nodes.document) -> None:
    """Show cells as readers know them, fill in what they computed, and offer the notebook."""
    docname = app.env.docname
    if not any("cell" in each["classes"] for each in document.findall(nodes.container)):
        return
    notebook = executed(docname)
    fill_values(document, values(notebook))
    show_cells(document)
    describe_pictures(document)
    if docname.startswith("tutorials/"):
        offer_notebook(document, docname)


def notebook_text(text: str, known: dict[str, str]) -> str:
    """Return the text of a page for a notebook: plain Markdown, without links to other pages of the site."""
    filled = VALUE.sub(lambda found: known.get(found[1], "…"), text)
    without = re.sub(r"^:::.*\n?", "", filled, flags=re.MULTILINE)
    return LINK.sub(r"\1", ASIDE.sub("", without))


def download(notebook: Any) -> dict[str, Any]:
    """Return the notebook that readers run themselves: nothing hidden, nothing of this machine, no results yet."""
    known, cells = values(notebook), []
    for number, cell in enumerate(notebook.cells):
        if tags(cell) & HIDDEN:
            continue
        common = {"id": f"cell-{number}", "metadata": {}}
        if cell.cell_type == "code":
            source = MAY_FAIL.sub("", cell.source)
            cells.append({"cell_type": "code", **common, "execution_count": None, "outputs": [], "source": source})
        else:
            cells.append({"cell_type": "markdown", **common, "source": notebook_text(cell.source, known)})
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    return {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}


def write_notebooks(app: Sphinx, failure: Exception | None) -> None:
    """Write the notebooks of tutorials beside their pages."""
    if failure is not None or app.builder.format != "html":
        return
    for docname in sorted(app.env.found_docs):
        notebook = executed(docname) if docname.startswith("tutorials/") else None
        if notebook is not None and any(cell.cell_type == "code" for cell in notebook.cells):
            path = Path(app.outdir) / f"{docname}.ipynb"
            path.write_text(json.dumps(download(notebook), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    """Prepare before myst-nb looks, finish pages before terminals are shown."""
    app.add_role("value", value_role)
    app.connect("config-inited", prepare)
    app.connect("builder-inited", keep_out_of_the_site, priority=900)
    app.connect("doctree-read", finish_page, priority=400)
    app.connect("build-finished", write_notebooks)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
