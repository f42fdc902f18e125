"""What was chosen among the candidates, and why: kept with the estimate, told in a sentence, drawn as a picture."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from hubbub.core.arrays import Floats, Positions
from hubbub.core.portable import Portable
from hubbub.estimators.auto.candidates import AutoCandidate
from hubbub.rendering.palette import PALETTE

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

SHARE = 0.01  # weight from which a candidate is counted in sentences
NEARLY = 0.995  # of the weight
SHOWN = 15.0  # nats below the best that a picture shows
MARKS = "os^Dv"


@dataclass(frozen=True, eq=False)
class Selection(Portable):
    """All candidates with their scores, spreads and weights.

    `scores` are nats by which a candidate predicts held-out reports better than the uniform distribution does,
    `spreads` how far chance moves it, in total variation.
    """

    candidates: tuple[AutoCandidate, ...]
    paths: tuple[int, ...]  # candidates of one path go from stiff to supple
    scores: Floats
    spreads: Floats
    weights: Floats
    parts: int
    rich: bool  # whether candidates beyond EM were affordable
    last: int  # the most updates of EM

    @property
    def chosen(self) -> AutoCandidate:
        """The candidate that counts most."""
        return self.candidates[int(np.argmax(self.weights))]

    @property
    def runner_up(self) -> AutoCandidate:
        """The one that counts most among those of other families, or predicts best where none counts."""
        others = np.array([candidate.family != self.chosen.family for candidate in self.candidates])
        ranked = np.lexsort((self.scores, self.weights))
        return self.candidates[int(ranked[others[ranked]][-1])]

    @property
    def counted(self) -> Positions:
        """The candidates that count, in order of weight: the fewest that make up nearly all of it."""
        return most_of(self.weights, NEARLY)

    def explain(self) -> str:
        """Say what was chosen, and why."""
        chosen = self.chosen
        few = "" if self.rich else "; only EM was tried: the domain or the reports are too large for other candidates"
        if chosen.family == self.candidates[0].family:  # the uniform distribution
            return f"{chosen.words}: no candidate predicts held-out reports clearly better{few}"
        others = int(np.count_nonzero(self.weights >= SHARE)) - 1
        average = f", averaged with {others} other{'s' if others > 1 else ''}" if others > 0 else ""
        place = self.candidates.index(chosen)
        if self.paths[place] in self.paths[place + 1 :]:
            reason = f": {chosen.more} would fit the noise"
        else:
            reason = " (the limit)" if chosen.updates else " (the most supple of its kind)"
        return f"{chosen.words}{average}{reason}{few}"

    def rows(self) -> list[dict[str, Any]]:
        """Return one line for each candidate, as JSON takes it."""
        columns = zip(self.candidates, self.scores.tolist(), self.spreads.tolist(), self.weights.tolist(), strict=True)
        return [
            {"candidate": one.words, "family": one.family, "score": score, "spread": spread, "weight": weight}
            for one, score, spread, weight in columns
        ]

    def to_frame(self) -> pd.DataFrame:
        """Return a pandas table, one line for each candidate."""
        import pandas as pd

        return pd.DataFrame(self.rows())

    def __repr__(self) -> str:
        return f"Selection({len(self.candidates)} candidates, chosen {self.chosen.words!r})"

    def plot(self, axes: Axes | None = None) -> Axes:
        """Draw scores against spreads: the best predict well (high) and are stable (left); return the axes."""
        if axes is None:
            import matplotlib.pyplot as plt

            _, axes = plt.subplots(layout="constrained")
        least = float(self.spreads[self.spreads > 0].min(initial=1.0)) / 2
        below = self.scores - self.scores.max()
        families = dict.fromkeys(
            candidate.family for candidate, gap in zip(self.candidates, below, strict=True) if gap >= -SHOWN
        )
        for place, family in enumerate(families):
            mine = np.array([candidate.family == family for candidate in self.candidates])
            seen = np.flatnonzero(mine & (below >= -SHOWN))
            across, colour = np.maximum(self.spreads[seen], least), PALETTE[place % len(PALETTE)]
            if self.candidates[int(seen[0])].updates:  # one path; others may be several
                axes.plot(across, below[seen], color=colour, linewidth=0.8, alpha=0.6)
            sizes, marker = 12.0 + 400.0 * self.weights[seen], MARKS[place // len(PALETTE) % len(MARKS)]
            axes.scatter(across, below[seen], s=sizes, color=colour, marker=marker, alpha=0.8)
            axes.scatter([], [], s=20.0, color=colour, marker=marker, label=family)
        axes.set_xscale("log")
        axes.tick_params(axis="x", which="minor", labelbottom=False)
        axes.set_xlabel("spread: how far chance moves it (total variation)")
        axes.set_ylabel("held-out reports: nats below the best")
        axes.set_title("candidates of auto; larger marks count more")
        axes.legend(fontsize="x-small", loc="upper left", bbox_to_anchor=(1.0, 1.0))
        return axes


def most_of(weights: Floats, share: float) -> Positions:
    """Return the fewest positions, in order of weight, that make up a share of it."""
    order = np.argsort(-weights, kind="stable")
    return order[: int(np.searchsorted(np.cumsum(weights[order]), share)) + 1]
