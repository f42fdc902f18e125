"""Words in pictures: titles, labels on several lines, and letters of any script.

Matplotlib draws a letter in the first font of a list that has it. The list is made of what is installed; a letter that
no font has is drawn as an empty square, and one sentence in the picture says what to install.
"""

from __future__ import annotations

import textwrap
import unicodedata
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from hubbub.core.text import whole_percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SQUARE = "□"
LEFT_TO_RIGHT = "\u200e"
HINT = f"{SQUARE}: letters without a font on this machine; install Noto fonts (fonts-noto-core, fonts-noto-cjk)"
FALLBACK_FONT = "DejaVu Sans"  # ships with Matplotlib
FONTS_WITHOUT_LETTERS = ("Last Resort", "LastResort", "Adobe Blank")  # they have a frame for every letter
PREFERRED_FONTS = (
    "Noto Sans",
    "Noto Naskh",
    "Arial Unicode",
    "PingFang",
    "Hiragino",
    "Microsoft YaHei",
    "Malgun",
    "Nirmala",
)
NORMAL_WEIGHTS = (400, "normal", "regular", "book")
TITLE_LETTERS = 88  # of one line
MAP_TITLE_LETTERS = 66  # beside a scale of colours
MAX_TITLE_LINES = 4
PICTURE_LETTERS = 84  # of labels side by side under a picture
MAX_LEVEL_LABELS = 6  # side by side without being turned
LETTERS_BETWEEN = 2  # from one label to the next
MAX_FOLDED_LABELS = 12  # turned, and on two lines
TURNED_LETTERS, ROW_LETTERS = 30, 28  # of one line
MIN_LINE_LETTERS = 10
MAX_LINES = 6


class PictureText(NamedTuple):
    """Texts as they can be drawn, and the keywords of Matplotlib to draw them with."""

    texts: list[str]
    style: dict[str, Any]


def legible(texts: Sequence[str]) -> PictureText:
    """Return texts in letters that some font has, and that font; a letter that none has becomes a square."""
    letters = sorted({letter for text in texts for letter in text if not letter.isspace()})
    fonts: list[str] = [_default_font()]
    missing = set()
    for letter in letters:
        if any(ord(letter) in _letters_of(font) for font in fonts) or _is_invisible(letter):
            continue
        font = _font_with(ord(letter))
        if font is None:
            missing.add(letter)
        else:
            fonts.append(font)
    shown = ["".join(SQUARE if letter in missing else letter for letter in text) for text in texts]
    return PictureText(shown, {"fontfamily": fonts, "parse_math": False})


def wrapped(text: str, width: int, most: int = MAX_LINES) -> str:
    r"""Return a text on several lines of `width` letters, cut after `most` of them; wide letters count twice.

    >>> wrapped("a rather long label", 10)
    'a rather\nlong label'
    >>> wrapped("a rather long label", 10, most=1)
    'a rather…'
    """
    wide = sum(unicodedata.east_asian_width(letter) in "WF" for letter in text)
    letters = max(2, width // 2 if 2 * wide > len(text) else width)
    lines = textwrap.wrap(" ".join(text.split()), letters) or [""]
    if len(lines) <= most:
        return "\n".join(lines)
    last = lines[most - 1][: letters - 1]
    return "\n".join([*lines[: most - 1], f"{last}…"])


def names_below(names: Sequence[str]) -> PictureText:
    """Return names for bars side by side: few of them on several lines, many turned."""
    words = legible(names)
    if len(names) <= MAX_LEVEL_LABELS or _fit_side_by_side(words.texts):
        width = max(MIN_LINE_LETTERS, PICTURE_LETTERS // max(1, len(names)))
        return PictureText([wrapped(text, width) for text in words.texts], words.style)
    turned = {"rotation": 45, "ha": "right", "rotation_mode": "anchor"}
    lines = 2 if len(names) <= MAX_FOLDED_LABELS else 1
    return PictureText([wrapped(text, TURNED_LETTERS, most=lines) for text in words.texts], {**words.style, **turned})


def _fit_side_by_side(names: Sequence[str]) -> bool:
    """Whether names have room below their bars, each on one line; wide letters count twice."""
    letters = max(sum(1 + (unicodedata.east_asian_width(letter) in "WF") for letter in name) for name in names)
    return len(names) * (letters + LETTERS_BETWEEN) <= PICTURE_LETTERS


def names_beside(names: Sequence[str]) -> PictureText:
    """Return names for rows of a picture."""
    words = legible(names)
    return PictureText([wrapped(text, ROW_LETTERS, most=3) for text in words.texts], words.style)


def picture_title(
    study: str = "", *, users: int | None = None, level: float | None = None, method: str = "", more: str = ""
) -> str:
    r"""Return the title of a picture: the study's name, and what is known of what is shown.

    >>> picture_title("commuting", users=1200, method="auto", level=0.95)
    'commuting\n1,200 users, by auto, 95% intervals'
    """
    parts = [
        "" if users is None else f"{users:,} {'user' if users == 1 else 'users'}",
        f"by {method}" if method else "",
        "" if level is None else f"{whole_percent(level)} intervals",
    ]
    facts = ", ".join(part for part in parts if part)
    return "\n".join(line for line in (study, "; ".join(part for part in (facts, more) if part)) if line)


def title_words(title: str, width: int = TITLE_LETTERS) -> PictureText:
    """Return a title on lines of `width` letters, in letters that can be drawn."""
    (text,), style = legible([title])
    lines = [line for part in text.split("\n") for line in wrapped(part, width, MAX_TITLE_LINES).split("\n")]
    return PictureText(["\n".join(map(_left_to_right, lines))], style)


def set_title(axes: Axes, title: str, *, width: int = TITLE_LETTERS, **style: Any) -> None:
    """Set the title of axes."""
    (text,), font = title_words(title, width)
    axes.set_title(text, **font, **style)


def _left_to_right(line: str) -> str:
    """Return a line of a sentence of ours, which a label at its start must not turn around."""
    is_turned = any(unicodedata.bidirectional(letter) in ("R", "AL") for letter in line)
    return f"{LEFT_TO_RIGHT}{line}" if is_turned else line


def tell_missing_letters(axes: Axes) -> None:
    """Say once in a picture that some of its letters have no font, if that is so."""
    legend = axes.get_legend()
    named = [
        *axes.get_xticklabels(),
        *axes.get_yticklabels(),
        *axes.texts,
        *([] if legend is None else legend.get_texts()),
    ]
    texts = [axes.get_title(), axes.get_xlabel(), axes.get_ylabel(), *(name.get_text() for name in named)]
    if any(SQUARE in text for text in texts):
        axes.figure.supxlabel(HINT, fontsize="x-small", parse_math=False)


def _is_invisible(letter: str) -> bool:
    return unicodedata.category(letter) == "Cf" or "\ufe00" <= letter <= "\ufe0f"  # joiners, directions, variants


def _default_font() -> str:
    """Return the font that pictures are drawn with."""
    from matplotlib.font_manager import FontProperties, fontManager

    path = fontManager.findfont(FontProperties())
    return next((font.name for font in fontManager.ttflist if font.fname == path), FALLBACK_FONT)


@cache
def _letters_of(family: str) -> frozenset[int]:
    """Return the letters that a font has, by their numbers."""
    from matplotlib.font_manager import get_font

    try:
        return frozenset(get_font(_files()[family]).get_charmap())
    except (KeyError, OSError, RuntimeError, ValueError):
        return frozenset()


@cache
def _font_with(letter: int) -> str | None:
    """Return an installed font that has a letter: one of those that have many, if there is a choice."""
    return next((family for family in _families() if letter in _letters_of(family)), None)


@cache
def _families() -> list[str]:
    """Return the fonts to look for letters in, preferred ones first."""
    usable = [name for name in sorted(_files()) if not name.startswith(FONTS_WITHOUT_LETTERS)]
    return sorted(usable, key=_preference)


@cache
def _files() -> dict[str, str]:
    """Return the file of each font that is installed upright and in normal weight: others are not found in silence."""
    from matplotlib.font_manager import fontManager

    fonts = [font for font in fontManager.ttflist if font.style == "normal" and font.weight in NORMAL_WEIGHTS]
    return {font.name: font.fname for font in fonts}


def _preference(name: str) -> int:
    return next((place for place, start in enumerate(PREFERRED_FONTS) if name.startswith(start)), len(PREFERRED_FONTS))
