"""Names that people register for what is their own: their form, and those that are taken."""

from __future__ import annotations

import re
from collections.abc import Collection

from hubbub.core.errors import HubbubError, shorten

NAME = re.compile(r"[a-z][a-z0-9]*(?:-[a-z0-9]+)*")
MAX_NAME_LETTERS = 64


def check_name(
    name: object, taken: Collection[str], where: str, error: type[HubbubError], *, kind: str, argument: str = "name"
) -> str:
    """Return a name that may be registered: lower-case words with hyphens, and none of hubbub's own."""
    if not isinstance(name, str) or not NAME.fullmatch(name) or len(name) > MAX_NAME_LETTERS:
        raise error(
            f"{argument} must be lower-case words with hyphens between them",
            where=f"{where}({argument})",
            got=shorten(name),
            expected=f"up to {MAX_NAME_LETTERS} letters a to z, digits and hyphens, a letter first: 'my-{kind}'",
            remedy="choose such a name; study files and the terminal use it, too",
        )
    if name in taken:
        raise error(
            f"{name!r} is a {kind} of hubbub's own",
            where=f"{where}({argument})",
            got=shorten(name),
            expected=f"a name that no {kind} of hubbub's has",
            remedy="choose another name",
        )
    return name


def is_same_definition(before: object, now: object) -> bool:
    """Whether two functions or classes are one, or the same lines of a module or notebook run again."""
    places = [(getattr(each, "__module__", None), getattr(each, "__qualname__", None)) for each in (before, now)]
    return before is now or (places[0] == places[1] and None not in places[0] and "<lambda>" not in str(places[0][1]))
