"""What methods, mechanisms and places in the paper are called where people read."""

from __future__ import annotations

import re
import tomllib
from importlib.resources import files

METHOD_NAMES = {
    "noisy": "noisy reports",
    "inv-n": "INV-N",
    "inv-p": "INV-P",
    "mle": "exact maximum",
    "auto": "auto",
}
MECHANISM_NAMES = {
    "rappor": "RAPPOR",
    "laplace": "Laplace",
    "planar-laplace": "planar Laplace",
    "exponential": "exponential mechanism",
    "twins": "randomized response on pairs",  # of the error of guesses: not a mechanism of study files
}
LATEX_LABEL = re.compile(r"\b(?:fig|sec|eq|thm):[\w-]+")
PRINTED_PLACES: dict[str, str] = tomllib.loads(
    files("hubbub.paper").joinpath("printed_places.toml").read_text(encoding="utf-8")
)


def method_name(method: str) -> str:
    """Return a method's name in tables and pictures.

    >>> method_name("em 0.1"), method_name("mle")
    ('EM (delta 0.1)', 'exact maximum')
    """
    return f"EM (delta {method.removeprefix('em ')})" if method.startswith("em ") else METHOD_NAMES.get(method, method)


def method_in_sentence(method: str) -> str:
    """Return the name with its article, where it has one."""
    return f"the {method_name(method)}" if method in ("noisy", "mle") else method_name(method)


def mechanism_name(kind: str) -> str:
    """Return a mechanism's name as people write it."""
    return MECHANISM_NAMES.get(kind, kind.replace("-", " "))


def printed_place(where: str) -> str:
    """Return where something stands in the paper, with numbers for the labels of its source; unknown labels stay.

    >>> printed_place("fig:box_geom_tv and the text before it")
    'Figure 10(a) and the text before it'
    """
    return LATEX_LABEL.sub(lambda label: PRINTED_PLACES.get(label[0], label[0]), where)
