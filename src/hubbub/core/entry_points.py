"""What installed packages offer under a name: entry points, looked up only for names that hubbub does not know itself.

Importing hubbub looks at no package. Whoever installs a package has decided to run its code.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from hubbub.core.errors import HubbubError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


def offered(group: str, taken: Collection[str], error: type[HubbubError]) -> dict[str, EntryPoint]:
    """Return the entry points of a group by name; refuse names of hubbub's own (`taken`), and two of one name."""
    from importlib.metadata import entry_points

    found: dict[str, EntryPoint] = {}
    for point in sorted(entry_points(group=group), key=lambda each: (each.name, each.value)):
        first = found.setdefault(point.name, point)
        if point.name in taken or first.value != point.value:
            other = "hubbub itself" if point.name in taken else _place(first)
            raise error(
                f"the name {point.name!r} is taken",
                where=f"entry points {group}",
                got=f"{point.name} of {_place(point)}, and of {other}",
                expected="one meaning of each name",
                remedy="uninstall one of the packages, or rename its entry point",
            )
    return found


def load(point: EntryPoint, error: type[HubbubError]) -> object:
    """Import what an entry point names."""
    try:
        return point.load()
    except Exception as cause:  # whatever the package's own code raises
        raise error(
            f"the package of {point.name!r} cannot be loaded",
            where=f"entry points {point.group}, {point.name}",
            got=f"{type(cause).__name__}: {cause}",
            expected=f"{point.value} of {_place(point)}",
            remedy="repair or reinstall that package",
        ) from cause


def _place(point: EntryPoint) -> str:
    """Return the name of the package that an entry point belongs to."""
    return "a package without a name" if point.dist is None else f"{point.dist.name} {point.dist.version}"
