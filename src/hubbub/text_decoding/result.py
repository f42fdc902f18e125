"""The result of decoding RAPPOR reports: shares of the candidates, of the rest, and whether the list explains them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hubbub.core.arrays import Floats
from hubbub.goodness_of_fit import FitTest
from hubbub.rendering import Fact, facts_html

if TYPE_CHECKING:
    import pandas as pd

SHOWN_CANDIDATES = 10


@dataclass(frozen=True)
class TextShares:
    """The shares of candidate texts, and of the rest: texts that are not on the list.

    Attributes
    ----------
    candidates : tuple
        The texts of the list, in its order.
    shares : numpy.ndarray
        The share of users with each.
    low, high : numpy.ndarray
        The ends of an interval for each share.
    detected : numpy.ndarray
        Which candidates are there at all: their intervals at a level for all of them together (by Bonferroni) are above
        0; by LASSO, their p-values are below (1 - level) over the number of candidates.
    rest : float
        The share of users whose text is not on the list.
    rest_low, rest_high : float
        The ends of its interval.
    p_values : numpy.ndarray or None
        By LASSO, of the hypothesis that a candidate has no users; 1 for those that are not selected.
    fit : FitTest
        The test of fit of the list alone, without a rest.
    method : str
        ``"mle"`` or ``"lasso"``.
    level : float
        The level of the intervals.
    users : int
        How many users sent the reports.

    Examples
    --------
    >>> import hubbub as hb
    >>> pages = hb.Categories(["example.org", "example.com", "example.net"])
    >>> start = hb.BloomRappor(pages, cohorts=16, bits=16, hashes=2, f=0.25, p=0.25, q=0.75)
    >>> sent = start.privatize(["example.org"] * 3000 + ["example.com"] * 1000, rng=1)
    >>> decoded = hb.decode_rappor(hb.Reports.from_outputs(start, sent))
    >>> decoded.list_explains
    True
    >>> decoded.to_frame().head(2)[["text", "share"]].round(2)
              text  share
    0  example.org   0.75
    1  example.com   0.25
    """

    candidates: tuple[str | int, ...]
    shares: Floats
    low: Floats
    high: Floats
    detected: NDArray[np.bool_]
    rest: float
    rest_low: float
    rest_high: float
    p_values: Floats | None
    fit: FitTest
    method: str
    level: float
    users: int

    @property
    def list_explains(self) -> bool:
        """Whether nothing speaks against the list alone: neither the test of fit nor the interval of the rest."""
        return not self.fit.rejected and self.rest_low <= 0.0

    def to_frame(self) -> pd.DataFrame:
        """Return a table of the candidates, those with the largest shares first.

        Returns
        -------
        pandas.DataFrame
            Columns text, share, low, high, detected, and for LASSO p_value.
        """
        import pandas as pd

        columns = {
            "text": list(self.candidates),
            "share": self.shares,
            "low": self.low,
            "high": self.high,
            "detected": self.detected,
            **({} if self.p_values is None else {"p_value": self.p_values}),
        }
        frame = pd.DataFrame(columns).sort_values("share", ascending=False, kind="stable")
        return frame.reset_index(drop=True)

    def explain(self) -> str:
        """Return the result in words: the largest shares, the rest, and whether the list explains the reports.

        Returns
        -------
        str
            Several lines; what printing shows, too.
        """
        found = int(self.detected.sum())
        lines = [
            f"{found} of {len(self.candidates)} candidates found in {self.users:,} users' reports "
            f"({self.method}, {self.level:.0%} intervals)."
        ]
        frame = self.to_frame()
        lines += [
            f"- {row.text}: {row.share:.1%} ({row.low:.1%} to {row.high:.1%})"
            for row in frame[frame["detected"]].head(SHOWN_CANDIDATES).itertuples()
        ]
        if found > SHOWN_CANDIDATES:
            lines.append(f"- and {found - SHOWN_CANDIDATES} more")
        lines.append(f"Not on the list: {self.rest:.1%} ({self.rest_low:.1%} to {self.rest_high:.1%}).")
        lines.append(self._verdict())
        return "\n".join(lines)

    def _verdict(self) -> str:
        """Say whether the list alone explains the reports, and what says so."""
        test = "no test of fit" if self.fit.p_value is None else f"test of fit, p = {self.fit.p_value:.2g}"
        if self.rest_low > 0.0:
            return f"The list alone does not explain the reports: some users have a text that is not on it ({test})."
        if self.fit.p_value is None:
            return f"Whether the list explains the reports cannot be tested: {self.fit.reason}."
        if self.fit.rejected:
            return f"The list alone does not explain the reports ({test})."
        return f"There is no evidence against the list ({test})."

    def __str__(self) -> str:
        return self.explain()

    def _repr_html_(self) -> str:
        return facts_html([Fact("which texts?", self.explain())])
