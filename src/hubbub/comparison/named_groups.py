"""Groups by name: two of them are compared as `compare` does, more as `compare_groups` does."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from typing import Any

from hubbub.comparison.api import compare
from hubbub.comparison.group_comparison import GroupComparison
from hubbub.comparison.many_groups import compare_groups
from hubbub.comparison.result import Comparison
from hubbub.core.errors import SettingError
from hubbub.core.progress import stepwise
from hubbub.reports import Reports

PAIR = 2


@stepwise
def compare_named(
    groups: Mapping[str, Reports],
    *,
    of: object = None,
    against: str | None = None,
    level: float = 0.95,
    quantiles: Sequence[float] = (),
) -> Generator[Any, None, Comparison | GroupComparison]:
    """Compare two groups with each other; several, or all with the one that `against` names, by `compare_groups`."""
    is_pair = len(groups) == PAIR and against is None
    if quantiles and not is_pair:
        raise SettingError(
            "quantiles are compared between two groups",
            where="compare(quantiles=)",
            got=f"{len(groups)} groups" if against is None else f"groups against {against}",
            expected="two groups",
            remedy="name two groups, or leave the quantiles out",
        )
    if not is_pair:
        return (yield from compare_groups.steps(groups, of=of, level=level, against=against))
    first, second = groups.values()
    return (yield from compare.steps(first, second, of=of, level=level, quantiles=quantiles, names=list(groups)))
