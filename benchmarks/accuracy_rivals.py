"""Where `auto` stands among all methods of the accuracy study: a section of docs/reference/accuracy-cases.md."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from cases import HALVES, Case
from em_path import DELTAS
from rivals import RIVALS

if TYPE_CHECKING:
    from accuracy_summary import Table

PUBLISHED = ("ems", *RIVALS)
COMPARED = ("noisy", "inv-n", "inv-p", *(f"em {delta:g}" for delta in DELTAS), "mle", *PUBLISHED)
NEAR, NEAR_SHARE = 1.05, 0.9  # times the error of the first method, and the share of cases in which that is asked for
RIVALS_TEXT = """## Rivals

Total variations of methods from other papers (`benchmarks/rivals.py` has the rule of each), beside those of the other
tables. Here they are arithmetic means over the draws: which method is first should not hang on one lucky draw. `first`
is the method that is closest to the truth in a case, of {count} without the oracle; the last column is the error of
`auto` over that of the best other method. The aim is that `auto` is first, or within {near:.0%} of the first, in
{share:.0%} of the cases.
"""


class Standing(NamedTuple):
    """The best other method in a case, and the error of `auto` relative to its error."""

    case: Case
    best: str
    error: float
    auto: float

    @property
    def ratio(self) -> float:
        """How far `auto` is from the truth, relative to the best other method."""
        return self.auto / self.error

    @property
    def near(self) -> bool:
        """Whether `auto` is first, or nearly."""
        return self.ratio <= NEAR


def standings(some: list[Case], table: Table, methods: tuple[str, ...] = COMPARED) -> list[Standing]:
    """Return where `auto` stands among some methods, in the cases in which all rivals were tried."""
    found = []
    for case in some:
        auto = table.mean_error(case, "auto")
        if auto is None or not all(table.complete(case, method) for method in COMPARED):
            continue
        errors = {method: error for method in methods if (error := table.mean_error(case, method)) is not None}
        if not errors:
            continue
        best = min(errors, key=lambda method: errors[method])
        found.append(Standing(case, best, errors[best], auto))
    return found


def near_share(some: list[Case], table: Table, methods: tuple[str, ...] = COMPARED) -> tuple[float, int]:
    """Return the share of the cases in which `auto` is first or nearly, and how many cases there are."""
    found = standings(some, table, methods)
    return (float(np.mean([one.near for one in found])) if found else 0.0), len(found)


def rivals_section(known: list[Case], table: Table) -> list[str]:
    """Return the lines of the section."""
    found = standings(known, table)
    if not found:
        return []
    lines = [RIVALS_TEXT.format(count=len(COMPARED) + 1, near=NEAR - 1, share=NEAR_SHARE)]
    lines += ["| half | cases | `auto` is first or nearly | the same among methods of other papers |"]
    lines.append("|---|--:|--:|--:|")
    for half in reversed(HALVES):
        if own := [case for case in known if case.half == half]:
            (among_all, count), (among_published, _) = near_share(own, table), near_share(own, table, PUBLISHED)
            lines.append(f"| {half} | {count} | {among_all:.0%} | {among_published:.0%} |")
    lines += ["", *by_method(found, table), "", *not_near(found), "", *all_errors(found, table), ""]
    return lines


def by_method(found: list[Standing], table: Table) -> list[str]:
    """Return how often each method is the best besides `auto`, and how far it is in the mean."""
    lines = ["| method | cases | error over that of `auto`, mean | best besides `auto` | ahead of `auto` by over 5% |"]
    lines.append("|---|--:|--:|--:|--:|")
    for method in COMPARED:
        errors = [(error, one) for one in found if (error := table.mean_error(one.case, method)) is not None]
        if errors:
            ratio = np.exp(np.mean([np.log(error / one.auto) for error, one in errors]))
            firsts = sum(one.best == method for one in found)
            ahead = sum(one.auto > NEAR * error for error, one in errors)
            lines.append(f"| {method} | {len(errors)} | {ratio:.2f} | {firsts} | {ahead} |")
    return lines


def not_near(found: list[Standing]) -> list[str]:
    """Return the cases in which another method is clearly ahead, the worst first."""
    behind = sorted((one for one in found if not one.near), key=lambda one: -one.ratio)
    lines = [f"In {len(behind)} of {len(found)} cases another method is ahead of `auto` by more than {NEAR - 1:.0%}:\n"]
    if behind:
        lines += ["| case | half | best | its error | `auto` | ratio |", "|---|---|---|--:|--:|--:|"]
    for one in behind:
        cells = f"{one.best} | {one.error:.4f} | {one.auto:.4f} | {one.ratio:.2f}"
        lines.append(f"| {one.case.name} | {one.case.half} | {cells} |")
    return lines


def all_errors(found: list[Standing], table: Table) -> list[str]:
    """Return the errors of all rivals in all cases."""
    lines = ["| case | half | " + " | ".join(RIVALS) + " | `auto` | first | `auto` over the best other |"]
    lines.append("|---|---|" + "--:|" * (len(RIVALS) + 1) + "---|--:|")
    for one in found:
        errors = [table.mean_error(one.case, method) for method in RIVALS]
        cells = " | ".join("–" if error is None else f"{error:.4f}" for error in errors)
        first = "auto" if one.ratio <= 1.0 else one.best
        ratio = f"{one.ratio:.2f}" if one.near else f"**{one.ratio:.2f}**"
        lines.append(f"| {one.case.name} | {one.case.half} | {cells} | {one.auto:.4f} | {first} | {ratio} |")
    return lines
