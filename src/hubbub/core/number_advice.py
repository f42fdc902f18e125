"""What to do about a text that is nearly a number: numbers are never guessed, but their mistakes are named."""

from __future__ import annotations

import re
import unicodedata

from hubbub.client import NUMBER as NUMBER_AS_TEXT

MAX_LETTERS = 60  # of a text that may be meant as a number
SPACE = "[ \u00a0\u2007\u2009\u202f]"  # also those at which no line is broken
NUMBER = rf"[+-]?\d+(?:(?:[.,'’_]|{SPACE})\d+)*"
MINUS_SIGNS = "−–—‐‑‒﹣－"
MONTH = "(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]{0,6}"
MISSING = frozenset(("na", "n/a", "nan", "null", "none", "nil", "missing", "unknown", "-", "--", "?", ".", "(blank)"))
Advice = list[tuple[re.Pattern[str], str]]
WHOLE_ADVICE: Advice = [
    (re.compile(r"[+-]?\d+\.0*"), "write digits only, without a point"),
    (re.compile(r"[+-]?\d*\.\d+"), "write digits only: the number must be whole"),
    (
        re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)[eE][+-]?\d+"),
        "write the number in full, without an exponent: digits may be lost",
    ),
]
ADVICE: Advice = [
    (re.compile(r"#[A-Z/0!?]+"), "correct the spreadsheet's formula: this is its error"),
    (re.compile(r"=.*"), "write the result of the formula: save the values, not the formulas"),
    (re.compile(r"['‘’\"“”].*"), "remove the quote or apostrophe in front of the number"),
    (re.compile(r"0[xXbBoO][0-9a-fA-F]+"), "write the number in decimal digits"),
    (
        re.compile(r"\d{4}([-/.])\d{1,2}\1\d{1,2}(?:[T ].*)?|\d{1,2}([-/.])\d{1,2}\2\d{2,4}(?: .*)?"),
        "this is a date: write the number that the study counts, such as days since the first one",
    ),
    (
        re.compile(rf"\d{{1,2}}[- ]{MONTH}(?:[- ]\d{{2,4}})?|{MONTH}[- ]\d{{1,4}}", re.IGNORECASE),
        "this is a date, perhaps made of a number by a spreadsheet: write the number",
    ),
    (
        re.compile(r"\d{1,2}:\d{2}(?::\d{2})?(?:[.,]\d+)?(?: ?[AaPp][Mm])?"),
        "this is a time: write the number that the study counts, such as minutes since midnight",
    ),
    (
        re.compile(r"[NSEWnsew]? ?[+-]?\d+(?:[.,]\d+)?[°º].*|[NSEW] ?\d+[.,]\d+|\d+[.,]\d+ ?[NSEW]"),
        "write decimal degrees, such as 37.7749; south and west are negative",
    ),
    (
        re.compile(r"[+-]?\d{1,3},\d{3}"),
        "the comma may separate thousands or decimals: write nothing between thousands, and a point for decimals",
    ),
    (
        re.compile(r"[+-]?\d+,\d+"),
        "write a decimal point in place of the comma; commas are read where semicolons separate the columns of a file",
    ),
    (
        re.compile(rf"[+-]?\d{{1,3}}(?:(?:[.,'’_]|{SPACE})\d{{3}})+(?:[.,]\d+)?"),
        "remove what separates the thousands, and write a point for decimals",
    ),
    (re.compile(rf"\({NUMBER}\)|{NUMBER}-"), "write the minus in front of the number"),
    (re.compile(rf"{NUMBER} ?%"), "write the number without the percent sign, in the unit of the study"),
    (
        re.compile(rf"{NUMBER}{SPACE}*[^\d\s].*|[^\d\s+-]{{1,4}}{SPACE}*{NUMBER}"),
        "write the number alone, in the unit of the study",
    ),
]


def number_advice(entry: object, otherwise: str, *, whole: bool = False) -> str:
    """Return what to do about an entry that is no number, or no whole one, by what it looks like.

    >>> number_advice("12.5 km", "correct it")
    'write the number alone, in the unit of the study'
    >>> number_advice("blue", "correct it")
    'correct it'
    """
    if not isinstance(entry, str) or len(entry) > MAX_LETTERS:
        return otherwise
    text = entry.strip()
    if text != entry and re.fullmatch(r"[+-]?\d+(?:\.\d+)?", text):
        return "remove the spaces around the number"
    if text.lower() in MISSING:
        return "leave the cell empty, or remove the row: this stands for a missing number"
    if text[:1] in MINUS_SIGNS and text[1:2].isdigit():
        return "write the minus as a hyphen: -"
    if any(not letter.isascii() and unicodedata.numeric(letter, None) is not None for letter in text):
        return "write the digits 0 to 9"
    forms = ADVICE
    if NUMBER_AS_TEXT.fullmatch(text):
        forms = WHOLE_ADVICE if whole else []
    return next((advice for form, advice in forms if form.fullmatch(text)), otherwise)
