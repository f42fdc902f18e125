"""Words of the glossary are links to it, where a page first uses them.

Writers need not mark them: pages stay plain Markdown, and a word that enters the glossary is linked everywhere.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from docutils import nodes
from sphinx.application import Sphinx

# Within these a word is code, a heading, or linked already.
LEFT_ALONE = (nodes.literal, nodes.literal_block, nodes.reference, nodes.title, nodes.math, nodes.raw, nodes.caption)


def terms(app: Sphinx) -> dict[str, tuple[str, str]]:
    """Return the page and the anchor of each word that is linked."""
    found = app.env.get_domain("std").objects.items()
    everyday = set(app.config.glossary_everyday_words)
    return {name.lower(): place for (kind, name), place in found if kind == "term" and name not in everyday}


def sentences(doctree: nodes.document) -> Iterator[nodes.Text]:
    """Yield the texts of paragraphs that may be linked."""
    for text in list(doctree.findall(nodes.Text)):
        above, in_paragraph = text.parent, False
        while above is not None and not isinstance(above, LEFT_ALONE):
            in_paragraph = in_paragraph or isinstance(above, nodes.paragraph)
            above = above.parent
        if above is None and in_paragraph:
            yield text


def link_first_uses(app: Sphinx, doctree: nodes.document, page: str) -> None:
    """Link the first use of each word of the glossary on a page."""
    left = terms(app)
    if not left or page in {place[0] for place in left.values()} or page.startswith(app.config.glossary_unlinked):
        return
    for text in sentences(doctree):
        if not left:
            return
        words = "|".join(re.escape(word) for word in sorted(left, key=len, reverse=True))
        parts: list[nodes.Node] = []
        end = 0
        for match in re.finditer(rf"(?<![\w-])({words})(s?)(?![\w-])", str(text), flags=re.IGNORECASE):
            place = left.pop(match[1].lower(), None)
            if place is None:  # linked a few words ago
                continue
            parts.append(nodes.Text(str(text)[end : match.start()]))
            address = f"{app.builder.get_relative_uri(page, place[0])}#{place[1]}"
            parts.append(nodes.reference("", match[0], internal=True, refuri=address, classes=["glossary-word"]))
            end = match.end()
        if parts:
            parts.append(nodes.Text(str(text)[end:]))
            text.parent.replace(text, parts)


def setup(app: Sphinx) -> dict[str, bool]:
    """Link words once all pages are read."""
    app.add_config_value("glossary_everyday_words", [], "html")
    app.add_config_value("glossary_unlinked", (), "html")
    app.connect("doctree-resolved", link_first_uses)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
