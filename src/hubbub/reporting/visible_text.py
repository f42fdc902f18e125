"""Foreign text that hides nothing: invisible characters are written out, and file names are plain."""

from __future__ import annotations

import re
import unicodedata

# Letters and marks that show nothing at all: Hangul fillers, blank braille, the grapheme joiner.
_BLANK = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
_JOINERS = frozenset("\u200c\u200d")
_INVISIBLE_CATEGORIES = ("Cc", "Cf", "Cs", "Zl", "Zp")
MAX_FILE_NAME_LETTERS = 80


def visible(label: object) -> str:
    r"""Return a label with every character written out that cannot be seen or that changes the reading direction.

    >>> visible("a\u202eb"), visible("two\nlines"), visible(" ")
    ('a⟨U+202E⟩b', 'two⟨U+000A⟩lines', '⟨U+0020⟩')
    """
    text = str(label)
    if text.isascii() and text.isprintable() and text.strip():
        return text
    if not text.strip():
        return "".join(map(_code_point, text))
    return "".join(
        _code_point(character) if _is_hidden(text, position) else character for position, character in enumerate(text)
    )


def visible_lines(text: object) -> str:
    """Return sentences as `visible` does, but keep their line breaks."""
    lines = re.split(r"\r\n?|\n", str(text).replace("\t", " "))
    return "\n".join(visible(line) if line.strip() else "" for line in lines)


def file_name(name: str, otherwise: str = "report") -> str:
    r"""Return a name under which a file can be saved anywhere: letters, digits, dots, hyphens and underscores.

    >>> file_name("../a b\u202egnp.exe"), file_name("***")
    ('a-b-gnp.exe', 'report')
    """
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "replace").decode()
    kept = re.sub(r"[^A-Za-z0-9._]+", "-", plain).strip("-._")
    return kept[:MAX_FILE_NAME_LETTERS].strip("-._") or otherwise


def _is_hidden(text: str, position: int) -> bool:
    character = text[position]
    if character in _JOINERS:  # other scripts, and emoji of several persons, need them: there their effect is seen
        around = text[max(0, position - 1) : position] + text[position + 1 : position + 2]
        return len(around) < 2 or min(map(ord, around)) < 0x600
    number = ord(character)
    if unicodedata.category(character) in _INVISIBLE_CATEGORIES or character in _BLANK:
        return True
    return 0xFDD0 <= number <= 0xFDEF or number & 0xFFFE == 0xFFFE


def _code_point(character: str) -> str:
    return f"⟨U+{ord(character):04X}⟩"
