"""What a command wrote to a terminal, as the terminal showed it: colours, tables, and a progress bar half way.

Streams of cells hold everything that a program sent to its terminal, orders to move the cursor and to erase lines among
it. Here a terminal emulator obeys them, and the page shows its screen. What was erased again is a progress bar: one
moment in the middle of it is shown, too.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape
from itertools import groupby
from tempfile import gettempdir, gettempprefix
from typing import Any

import pyte
from docutils import nodes
from pyte.screens import Char
from sphinx.application import Sphinx

WIDTH = 80  # columns of the terminals in which cells run their commands
UNFOLDED = 4_000  # columns of the emulated one: long lines are folded here, between words
FRAMES = 100  # bars are drawn ten times a second: one that never knew the time left is shown if it lasted this long
FOLDER = re.compile(re.escape(f"{gettempdir()}/{gettempprefix()}") + r"\w+(?=/)")  # of the cells: not the reader's
HOME = "/home/you"
ERASING = re.compile(r"\r(?![\r\n])")  # what stands in the line is about to be replaced
NAMES = ("black", "red", "green", "brown", "blue", "magenta", "cyan", "white")
LEVELS = {"red": (1, 0, 0), "green": (0, 1, 0), "brown": (1, 1, 0), "blue": (0, 0, 1), "magenta": (1, 0, 1)}
LEVELS |= {"cyan": (0, 1, 1), "white": (1, 1, 1), "black": (0, 0, 0)}

Row = list[Char]


def replay(written: str) -> tuple[list[Row], list[Row]]:
    """Return the rows on the screen in the end, and the rows that were erased on the way."""
    lines = re.sub(r"(?<!\r)\n", "\r\n", FOLDER.sub(HOME, written))  # what was piped has no carriage returns
    screen = pyte.Screen(UNFOLDED, lines.count("\n") + 2)
    stream = pyte.Stream(screen)
    erased = []
    for number, piece in enumerate(ERASING.split(lines)):
        if number:
            erased.append(row(screen, screen.cursor.y))
            stream.feed("\r")
        stream.feed(piece)
    rows = [part for y in range(screen.lines) for part in folded(row(screen, y))]
    while rows and not rows[-1]:
        rows.pop()
    return rows, [each for each in erased if each]


def folded(chars: Row) -> list[Row]:
    """Return a line in parts that fit, divided between words where there are any."""
    parts = []
    while len(chars) > WIDTH:
        blanks = [place for place in range(1, WIDTH + 1) if chars[place].data == " "]
        end = blanks[-1] if blanks else WIDTH
        parts.append(chars[:end])
        chars = chars[end + 1 :] if blanks else chars[end:]
    return [*parts, chars]


def row(screen: pyte.Screen, y: int) -> Row:
    """Return the characters of one line, without the blanks at its end."""
    found = [screen.buffer[y][x] for x in range(screen.columns)]
    while found and not found[-1].data.strip():
        found.pop()
    return found


def running(erased: Sequence[Row]) -> Row | None:
    """Return the moment to show of what was erased: in the middle, and with the time left where that was known."""
    bars = [each for each in erased if any(char.data in "━╸╺█" for char in each)]
    known = [each for each in bars if " left" in "".join(char.data for char in each)]
    chosen = known or (bars if len(bars) >= FRAMES else [])
    return chosen[len(chosen) // 2] if chosen else None


def colour(name: str) -> str:
    """Return the one of eight colours that is nearest, with `bright` in front of its bright form."""
    if name in ("default", *NAMES) or name.removeprefix("bright") in NAMES:
        return name
    parts = [int(name[place : place + 2], 16) for place in (0, 2, 4)]
    top = max(parts)
    return next(key for key, on in LEVELS.items() if on == tuple(int(2 * part > top) for part in parts) or not top)


def classes(char: Char) -> str:
    """Return the classes that style a character."""
    front = "" if char.fg == "default" else f"t-{colour(char.fg)}"
    looks = (("t-bold", char.bold), ("t-italic", char.italics), ("t-underline", char.underscore))
    return " ".join(filter(None, [front, *(name for name, on in looks if on)]))


def row_html(chars: Row) -> str:
    """Return one line of the screen."""
    parts = ((style, escape("".join(each.data for each in run))) for style, run in groupby(chars, classes))
    return "".join(f'<span class="{style}">{text}</span>' if style else text for style, text in parts)


def terminal_html(written: str) -> str:
    """Return what a terminal showed; a moment of a progress bar comes first."""
    rows, erased = replay(written)
    html, moment = "", running(erased)
    if moment is not None:
        bar = f'<pre tabindex="0">{row_html(moment)}</pre><figcaption>while it runs</figcaption>'
        html += f'<figure class="terminal-running">{bar}</figure>'
    if rows:
        text = "\n".join(map(row_html, rows))
        html += f'<div class="terminal"><pre tabindex="0" aria-label="output">{text}\n</pre></div>'
    return html


def is_stream(node: nodes.Node) -> bool:
    """Say whether a node is what a cell wrote to a terminal."""
    return isinstance(node, nodes.literal_block) and bool({"stream", "stderr"} & set(node["classes"]))


def show_terminals(_: Sphinx, document: nodes.document) -> None:
    """Replace streams of cells, those that follow each other together, by what a terminal showed of them."""
    for container in list(document.findall(nodes.container)):
        kept: list[Any] = []
        for stream, run in groupby(list(container.children), is_stream):
            if not stream:
                kept += run
            elif html := terminal_html("".join(each.astext() for each in run)):
                kept.append(nodes.raw("", html, format="html"))
        container.children = []
        container.extend(kept)


def setup(app: Sphinx) -> dict[str, bool]:
    """Look at every page once it was read."""
    app.connect("doctree-read", show_terminals)
    app.add_css_file("terminal.css")
    return {"parallel_read_safe": True, "parallel_write_safe": True}
