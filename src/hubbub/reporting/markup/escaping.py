"""How the page says things: texts that cannot become markup or hide anything, names of files."""

from __future__ import annotations

import html
import re
import unicodedata

# Letters and marks that show nothing at all: fillers of Hangul, blank braille, the joiner of graphemes.
_BLANK = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
_JOINERS = frozenset("\u200c\u200d")
_MOST_NAME = 80


def shown(label: object) -> str:
    r"""Return a label with everything that cannot be seen, or that turns the reading around, written out.

    >>> shown("a\u202eb"), shown("two\nlines"), shown(" ")
    ('a⟨U+202E⟩b', 'two⟨U+000A⟩lines', '⟨U+0020⟩')
    """
    text = str(label)
    if text.isascii() and text.isprintable() and text.strip():
        return text
    if not text.strip():
        return "".join(map(_code, text))
    return "".join(_code(one) if _hidden(text, place) else one for place, one in enumerate(text))


def prose(text: object) -> str:
    """Return sentences as `shown` does, but with their line breaks."""
    lines = re.split(r"\r\n?|\n", str(text).replace("\t", " "))
    return "\n".join(shown(line) if line.strip() else "" for line in lines)


def escaped(text: str) -> str:
    """Return a text for HTML, safe in attributes, too: nothing that was read can become markup."""
    return html.escape(text, quote=True)


def isolated(label: object) -> str:
    """Return a label as HTML: what is written from right to left does not disturb what stands around it."""
    return f"<bdi>{escaped(shown(label))}</bdi>"


def paragraph(text: object) -> str:
    """Return sentences as HTML."""
    return f"<bdi>{escaped(prose(text))}</bdi>"


def file_name(name: str, otherwise: str = "report") -> str:
    r"""Return a name under which a file can be saved anywhere: letters, digits, dots, hyphens and underscores.

    >>> file_name("../a b\u202egnp.exe"), file_name("***")
    ('a-b-gnp.exe', 'report')
    """
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "replace").decode()
    kept = re.sub(r"[^A-Za-z0-9._]+", "-", plain).strip("-._")
    return kept[:_MOST_NAME].strip("-._") or otherwise


def _hidden(text: str, place: int) -> bool:
    one = text[place]
    if one in _JOINERS:  # scripts beyond, and pictures of several persons, need them: there they can be seen
        around = text[max(0, place - 1) : place] + text[place + 1 : place + 2]
        return len(around) < 2 or min(map(ord, around)) < 0x600
    number = ord(one)
    if unicodedata.category(one) in ("Cc", "Cf", "Cs", "Zl", "Zp") or one in _BLANK:
        return True
    return 0xFDD0 <= number <= 0xFDEF or number & 0xFFFE == 0xFFFE


def _code(one: str) -> str:
    return f"⟨U+{ord(one):04X}⟩"
