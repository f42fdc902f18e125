"""Checks of the arguments of `amplify`."""

from __future__ import annotations

from hubbub.client import as_whole
from hubbub.core import validation
from hubbub.core.errors import MechanismError, SettingError, shorten
from hubbub.mechanisms import Mechanism

MAX_USERS = 10**12


def check_mechanism(mechanism: object) -> Mechanism:
    """Refuse what is not one mechanism, which everybody uses."""
    if isinstance(mechanism, Mechanism):
        return mechanism
    raise SettingError(
        "not a mechanism",
        where="amplify(mechanism)",
        got=shorten(mechanism),
        expected="one hubbub mechanism, which all users run once",
        remedy="pass one, such as study.mechanisms['NAME']; of a mixture across users, shuffle and count each "
        "mechanism's users apart",
    )


def check_users(users: object, where: str = "amplify") -> int:
    """Return the number of users."""
    number = as_whole(users)  # 1e6 is a whole number, too
    if number is None or not 1 <= number <= MAX_USERS:
        expected = f"a whole number from 1 to {MAX_USERS:,}"
        raise validation.wrong(users, "users", where, expected, remedy="pass how many people send a report each")
    return number


def check_delta(delta: object, where: str = "amplify") -> float:
    """Return delta, strictly between 0 and 1."""
    expected = "a probability between 0 and 1, well below one in the number of users, such as 1e-9"
    return validation.share(delta, "delta", where, expected=expected)


def without_epsilon(mechanism: Mechanism) -> MechanismError:
    """Return the error for a mechanism that may tell a value for sure."""
    return MechanismError(
        "shuffling cannot give an epsilon to a mechanism that has none",
        where="amplify(mechanism)",
        got=type(mechanism).__name__,
        expected="a mechanism with a finite epsilon: every output possible for every value",
        remedy="privatize with one, such as RandomizedResponse; hb.attacker says how often one person's value could be "
        "guessed",
    )
