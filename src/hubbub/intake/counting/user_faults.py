"""Why all rows of a user are not taken."""

from __future__ import annotations

from hubbub.intake.reject_causes import Fault, refusal


def too_many(user: object, sent: int, limit: int) -> Fault:
    """Return the fault of a user who sent more than the study allows."""
    return Fault(
        "user",
        refusal(
            "too-many-reports",
            "a user sent more than the study allows",
            where=f"user {user!r}",
            got=f"{sent} outputs",
            expected=f"at most {limit} (max_reports_per_user)",
            remedy="every output spends privacy: leave the extra rows out on purpose, or raise the limit",
        ),
    )


def impossible(user: object, sent: int) -> Fault:
    """Return the fault of a user whose outputs exclude each other."""
    return Fault(
        "user",
        refusal(
            "impossible-report",
            "no value can have produced all that a user sent",
            where=f"user {user!r}",
            got=f"{sent} outputs that exclude each other",
            expected="outputs with a positive probability for at least one value",
            remedy="check the mechanisms that these rows name, and whether several people share a name",
        ),
    )


def counted_before(user: object) -> Fault:
    """Return the fault of a user whom a tally has counted."""
    return Fault(
        "user",
        refusal(
            "user-counted-before",
            "a user is in the tally already",
            where=f"user {user!r}",
            got="more rows of a user whose report was counted in an earlier run",
            expected="all rows of a user in one run",
            remedy="collect all of the user's rows at once, into a new tally",
        ),
    )
