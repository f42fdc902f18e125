"""What the columns of a source are called: by their roles (`output`, `user`, ...), unless somebody says otherwise."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING

from hubbub.core.errors import SettingError, shorten

if TYPE_CHECKING:
    from hubbub.intake.sources.base import Rows

ROLES = ("output", "user", "mechanism", "value")
LONGEST_NAME = 60  # letters of a column that messages repeat
REPORT = ROLES[:3]  # the roles of columns in reports


@dataclass(frozen=True)
class ColumnNames:
    """The name of the column for each role; None where nobody named one, and the role's own name is looked for."""

    output: str | None = None
    user: str | None = None
    mechanism: str | None = None
    value: str | None = None  # in files of values that are still to be privatized

    def __post_init__(self) -> None:
        named: dict[str, str] = {}
        for entry in fields(self):
            name = getattr(self, entry.name)
            if name is None:
                continue
            if not isinstance(name, str) or not name:
                raise SettingError(
                    f"{entry.name}_column must be the name of a column",
                    where=f"--{entry.name}-column",
                    got=shorten(name),
                    expected="a text, as the source spells it",
                    remedy=f"leave it out if the column is called {entry.name}",
                )
            other = named.setdefault(name, entry.name)
            if other != entry.name:
                raise SettingError(
                    "one column cannot have two meanings",
                    where=f"--{other}-column, --{entry.name}-column",
                    got=f"{shorten(name)} for both",
                    expected="a column of its own for each",
                    remedy="name another column",
                )

    def name_of(self, role: str) -> str:
        """Return what the column of a role is called in the source; of any other column, its own name."""
        return (getattr(self, role) if role in ROLES else None) or role

    def role_of(self, name: str) -> str:
        """Return the role that a column of the source has, "" for one that has none."""
        return next((role for role in ROLES if self.name_of(role) == name), "")

    def chosen(self, role: str) -> bool:
        """Whether somebody named the column of a role."""
        return getattr(self, role) is not None

    def in_roles(self, rows: Rows) -> Rows:
        """Return rows with their columns under the names of their roles."""
        return replace(rows, columns={self.role_of(name) or name: column for name, column in rows.columns.items()})


OWN_NAMES = ColumnNames()
