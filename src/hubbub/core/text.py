"""Numbers, counts and lists for readers: one wording for all messages, pages and pictures."""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Iterable, Sequence

MAX_LABEL_LETTERS = 60  # of a label inside a sentence


def percent(share: float) -> str:
    """Return a share as people read it; the scripts of the page say the same (numbers.js).

    >>> percent(0.3123), percent(0.01234), percent(0.000456), percent(0.0), percent(1.0), percent(1e-9)
    ('31.2%', '1.23%', '0.046%', '0%', '100%', 'under 0.0001%')
    """
    if math.isnan(share):
        return "unknown"
    size = abs(100.0 * share)
    if size == 0.0 or size == 100.0:
        return f"{100.0 * share:.0f}%"
    if size < 1e-4:
        return "under 0.0001%"
    if 99.95 <= size < 100.0:
        return "over 99.9%"
    decimals = 1 if size >= 9.995 else 2 if size >= 0.995 else 1 - math.floor(math.log10(size))
    return f"{100.0 * share:.{decimals}f}%"


def whole_percent(level: float) -> str:
    """Return a level as a percentage with no more digits than it has.

    >>> whole_percent(0.95), whole_percent(0.999)
    ('95%', '99.9%')
    """
    return f"{100 * level:g}%"


def times(factor: float) -> str:
    """Return a factor in words: a very large one has no digits worth reading.

    >>> times(2.718), times(15.2), times(8886110), times(1e30)
    ('2.7 times', '15 times', '8,886,110 times', 'more than a billion times')
    """
    if factor >= 1e9:
        return "more than a billion times"
    return f"{factor:.1f} times" if factor < 10 else f"{factor:,.0f} times"


def plural(count: int, noun: str, nouns: str | None = None) -> str:
    """Return a count with its noun; `nouns` is the plural where it is not the noun with an s.

    >>> plural(1, "row"), plural(1200, "row"), plural(2, "person", "people")
    ('1 row', '1,200 rows', '2 people')
    """
    return f"{count:,} {noun if count == 1 else nouns or noun + 's'}"


def listed(names: Sequence[str], *, most: int | None = None, word: str = "and") -> str:
    """Return names as a list for a sentence: all of them, or `most` of them and how many more.

    >>> listed(["a"]), listed(["a", "b", "c"]), listed(["a", "b"], word="or"), listed(list("abcdef"), most=2)
    ('a', 'a, b and c', 'a or b', 'a, b and 4 more')
    """
    shown = list(names)
    # One that would stand alone behind "and 1 more" takes no more room by name.
    if most is not None and len(shown) > most + 1:
        shown = [*shown[:most], f"{len(shown) - most:,} more"]
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} {word} {shown[-1]}"


def nearest_name(name: object, names: Iterable[str], otherwise: str) -> str:
    """Return the remedy for a name that does not exist: the nearest that does, whatever its case and hyphens.

    >>> nearest_name("Randomised_Response", ["rappor", "randomized-response"], "choose one of these")
    "did you mean 'randomized-response'?"
    >>> nearest_name("x", ["rappor"], "choose one of these")
    'choose one of these'
    """
    near = near_name(name, names) if isinstance(name, str) else None
    return otherwise if near is None else f"did you mean {near!r}?"


def near_name(name: str, names: Iterable[str]) -> str | None:
    """Return the name that is nearest to one that does not exist, whatever its case and hyphens; None if none is near.

    >>> near_name("Randomised_Response", ["rappor", "randomized-response"])
    'randomized-response'
    """
    plain = {letters_of(each): each for each in reversed(list(names))}
    near = difflib.get_close_matches(letters_of(name), plain, n=1, cutoff=0.75)
    return plain[near[0]] if near else None


def renaming(unknown: Iterable[str], known: Sequence[str], otherwise: str) -> str:
    """Return the remedy for names of which some are not known and others are missing: which to give to which.

    >>> renaming(["id", "ages"], ["age"], "add a column age")
    "rename 'ages' to 'age'"
    >>> renaming(["id"], ["age"], "add a column age")
    'add a column age'
    """
    near = ((name, near_name(name, known)) for name in unknown)
    return next((f"rename {name!r} to {other!r}" for name, other in near if other is not None), otherwise)


def letters_of(name: str) -> str:
    """Return a name without what people spell in different ways: case, spaces, hyphens and the like.

    >>> letters_of("Output_Q 1")
    'outputq1'
    """
    return re.sub(r"[\W_]", "", name).lower()


def kebab(name: str) -> str:
    """Return a class name as study files write it.

    >>> kebab("RandomizedResponse")
    'randomized-response'
    """
    return re.sub(r"(?<!^)(?=[A-Z])", "-", name).lower()


def quoted(label: object) -> str:
    """Return a label in a sentence: in quotes, on one line, cut where it is long.

    >>> quoted("a  b"), quoted(7)
    ("'a b'", "'7'")
    """
    return f"'{one_line(label)}'"


def one_line(label: object, most: int = MAX_LABEL_LETTERS) -> str:
    """Return a label on one line, cut where it is longer than `most` letters.

    >>> one_line("a  b"), one_line("abcdef", 4)
    ('a b', 'abc…')
    """
    text = " ".join(str(label).split())
    return text if len(text) <= most else text[: most - 1] + "…"
