"""The result of `worst_case_shift`: a number, with how it comes about."""

from __future__ import annotations

from typing import Any

from hubbub.core.text import percent, whole_percent
from hubbub.rendering import Fact, facts_html


class Shift(float):
    """How far fake users could move a share: the largest shift that was found, and how it comes about.

    The number itself is how far the estimated share of `value` moves, from `before` to `after`, if a `share` of the
    users is fake and all of them send `output`.

    Attributes
    ----------
    share : float
        The share of fake users.
    value : label
        The value whose share moves furthest.
    title : str
        What sentences call it: of a cell on the map, its place.
    output : str
        The report that all fake users send, in words.
    before, after : float
        The estimated share of `value` without and with the fake users.
    method : str
        The method of the estimate: that of the estimate that is shown.

    Examples
    --------
    >>> import hubbub as hb
    >>> coin = hb.RandomizedResponse(hb.Categories(["yes", "no"]), epsilon=1.0)
    >>> shift = hb.worst_case_shift(hb.Reports.from_counts(coin, {"yes": 600, "no": 400}), share=0.01)
    >>> shift
    Shift(0.01298: 'no' from 0.2836 to 0.2966)
    >>> shift < 0.02
    True
    """

    share: float
    value: object
    title: str
    output: str
    before: float
    after: float
    method: str

    def __new__(
        cls, *, share: float, value: object, title: str, output: str, before: float, after: float, method: str = "auto"
    ) -> Shift:
        """Take the distance between `before` and `after` as the number."""
        shift = super().__new__(cls, abs(after - before))
        vars(shift).update(
            share=share, value=value, title=title, output=output, before=before, after=after, method=method
        )
        return shift

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a Shift cannot be changed: {name}")

    def __getnewargs_ex__(self) -> tuple[tuple[()], dict[str, Any]]:
        return (), dict(vars(self))

    def explain(self) -> str:
        """Return the shift in words, and what the number does not cover.

        Returns
        -------
        str
            Three sentences.
        """
        return (
            f"If {whole_percent(self.share)} of the users were fake and all sent {self.output}, the estimated share "
            f"of {self.title} would move from {percent(self.before)} to {percent(self.after)}, by "
            f"{100 * float(self):.1f} percentage points. This is the largest shift that a search found; other fake "
            "reports may move a share further. No test can detect fake users who send what honest users with that "
            "value would send."
        )

    def _repr_html_(self) -> str:
        return facts_html([Fact("fake users?", self.explain())])

    def __repr__(self) -> str:
        return f"Shift({float(self):.4g}: {self.value!r} from {self.before:.4g} to {self.after:.4g})"
