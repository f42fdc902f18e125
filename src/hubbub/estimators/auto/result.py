"""The result of `auto`'s choice: all candidates with their scores and weights, as a sentence, a table and a picture."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from hubbub.core.arrays import Floats, Positions
from hubbub.core.serialization import Portable
from hubbub.core.text import listed, plural
from hubbub.estimators.auto.attribute_candidates import DELTA_RULE
from hubbub.estimators.auto.candidate_fits import AutoCandidate
from hubbub.estimators.auto.candidate_weights import heaviest
from hubbub.rendering.new_figure import axes_or_new
from hubbub.rendering.palette import PALETTE

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

MIN_MENTIONED_WEIGHT = 0.01  # from which a candidate is counted in the status
COUNTED_WEIGHT = 0.995  # of all weight, that the candidates used again make up
MAX_LISTED_UNTOLD = 3  # pairs of attributes
MAX_PLOTTED_NATS = 15.0  # below the best candidate
MARKERS = "os^Dv"


@dataclass(frozen=True, eq=False)
class Selection(Portable):
    """All candidates with their scores, spreads and weights.

    `scores` are the nats by which a candidate predicts held-out reports better than the uniform distribution does
    (that of Bayesian curves: by which it explains all reports better), `spreads` how far chance moves it, in total
    variation.
    """

    candidates: tuple[AutoCandidate, ...]
    paths: tuple[int, ...]  # the number of each candidate's path; a path goes from stiff to flexible
    scores: Floats
    spreads: Floats
    weights: Floats
    folds: int
    uses_newton: bool  # whether candidates beyond EM were affordable
    max_updates: int  # of EM
    deals: int = 1  # how often users were dealt into folds
    untold: tuple[tuple[str, ...], ...] = ()  # attributes of which the reports do not tell how they go together
    prior_weights: Floats | None = None  # of the priors of Bayesian curves, where these are a candidate

    @property
    def chosen(self) -> AutoCandidate:
        """The candidate with the largest weight."""
        return self.candidates[int(np.argmax(self.weights))]

    @property
    def runner_up(self) -> AutoCandidate:
        """The candidate with the largest weight in another family; where none has any, the one that predicts best."""
        others = np.array([candidate.family != self.chosen.family for candidate in self.candidates])
        ranked = np.lexsort((self.scores, self.weights))
        return self.candidates[int(ranked[others[ranked]][-1])]

    @property
    def counted(self) -> Positions:
        """The candidates that count, in order of weight: the fewest that make up nearly all of it."""
        return heaviest(self.weights, COUNTED_WEIGHT)

    def explain(self) -> str:
        """Return one sentence: what was chosen or averaged, and why; and what the reports do not tell."""
        if not self.untold:
            return self._choice()
        together = [listed(list(names)) for names in self.untold[:MAX_LISTED_UNTOLD]]
        left_out = len(self.untold) - len(together)
        others = f", or {plural(left_out, 'more pair')}" if left_out else ""
        return (
            f"{self._choice()}; the reports do not tell how {', or how '.join(together)} go together{others}: as "
            "little as possible is assumed about it"
        )

    def _choice(self) -> str:
        chosen = self.chosen
        tried = "more" if DELTA_RULE in self.candidates else "more than EM"  # the former for several attributes
        limits = "" if self.uses_newton else f" (the domain or the reports are too large to try {tried})"
        if chosen.family == self.candidates[0].family:  # the uniform distribution
            return f"{chosen.description}: the reports do not show that any value is more frequent than another{limits}"
        if self.folds == 0:
            return f"{chosen.description}: the reports say too little to compare it with other estimates"
        averaged = int(np.count_nonzero(self.weights >= MIN_MENTIONED_WEIGHT)) or self.counted.size
        if averaged > 1:
            return (
                f"an average of {plural(averaged, 'estimate')} that predict held-out reports well, with most weight on "
                f"{chosen.description}{limits}"
            )
        position = self.candidates.index(chosen)
        if self.paths[position] in self.paths[position + 1 :]:
            return f"{chosen.description}, because {chosen.overfit} would fit the noise{limits}"
        if self.paths.count(self.paths[position]) == 1:
            return f"{chosen.description}{limits}"
        reason = "the limit" if chosen.updates else "the most flexible of its family"
        return f"{chosen.description}, {reason}{limits}"

    def rows(self) -> list[dict[str, Any]]:
        """Return one row for each candidate, ready for JSON."""
        columns = zip(self.candidates, self.scores.tolist(), self.spreads.tolist(), self.weights.tolist(), strict=True)
        return [
            {
                "candidate": candidate.description,
                "family": candidate.family,
                "score": score,
                "spread": spread,
                "weight": weight,
            }
            for candidate, score, spread, weight in columns
        ]

    def to_frame(self) -> pd.DataFrame:
        """Return a pandas table, one row for each candidate."""
        import pandas as pd

        return pd.DataFrame(self.rows())

    def __repr__(self) -> str:
        return f"Selection({len(self.candidates)} candidates, chosen {self.chosen.description!r})"

    def plot(self, axes: Axes | None = None) -> Axes:
        """Draw scores against spreads and return the axes: the best predict well (high) and are stable (left)."""
        axes = axes_or_new(axes)
        least = float(self.spreads[self.spreads > 0].min(initial=1.0)) / 2
        below = self.scores - self.scores.max()
        families = dict.fromkeys(
            candidate.family
            for candidate, deficit in zip(self.candidates, below, strict=True)
            if deficit >= -MAX_PLOTTED_NATS
        )
        for number, family in enumerate(families):
            is_member = np.array([candidate.family == family for candidate in self.candidates])
            shown = np.flatnonzero(is_member & (below >= -MAX_PLOTTED_NATS))
            across, colour = np.maximum(self.spreads[shown], least), PALETTE[number % len(PALETTE)]
            if self.candidates[int(shown[0])].updates:  # a single path; other families may have several
                axes.plot(across, below[shown], color=colour, linewidth=0.8, alpha=0.6)
            sizes, marker = 12.0 + 400.0 * self.weights[shown], MARKERS[number // len(PALETTE) % len(MARKERS)]
            axes.scatter(across, below[shown], s=sizes, color=colour, marker=marker, alpha=0.8)
            axes.scatter([], [], s=20.0, color=colour, marker=marker, label=family)
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter("{x:g}")
        axes.xaxis.set_minor_formatter(lambda spread, _: f"{spread:g}" if f"{spread:.0e}"[0] in "25" else "")
        axes.tick_params(axis="x", which="minor", pad=5.0)  # labels of short and long ticks on one line
        axes.set_xlabel("spread: how far chance moves it (total variation)")
        axes.set_ylabel("held-out reports: nats below the best")
        axes.set_title("candidates of auto; larger marks have more weight", fontsize="medium")
        axes.legend(fontsize="x-small", loc="upper left", bbox_to_anchor=(1.0, 1.0))
        return axes
