"""The result of `amplify`."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from hubbub.core.text import plural
from hubbub.rendering import Fact, facts_html

BLANKET, CLONES, LOCAL = "blanket", "clones", "local"
METHOD_TEXTS = {
    BLANKET: "the privacy blanket of this mechanism, from its own probabilities",
    CLONES: "the clones of any mechanism with this epsilon",
    LOCAL: "the epsilon of a single report: shuffling hides nobody here",
}


@dataclass(frozen=True)
class Amplification:
    """The result of `amplify`: the epsilon of shuffled reports.

    Attributes
    ----------
    name : str
        The mechanism's class.
    epsilon : float
        The central epsilon: an upper bound, together with `delta`.
    delta : float
        The probability that was passed.
    users : int
        How many people send one report each.
    local_epsilon : float
        The epsilon of one report, for whoever knows who sent it; of mechanisms on a metric over the whole domain.
    method : str
        The bound: "blanket" from the mechanism's own probabilities, "clones" from its epsilon alone, or "local".
    general_epsilon : float
        What holds for any mechanism with this `local_epsilon`: the bound by clones.
    metric : bool
        Whether the mechanism's epsilon is per unit of distance.
    hashed : bool
        Whether the hash is taken to be random.

    Examples
    --------
    >>> import hubbub as hb
    >>> coin = hb.RandomizedResponse(hb.Categories(["yes", "no"]), epsilon=1.0)
    >>> result = hb.amplify(coin, users=10_000, delta=1e-6)
    >>> result.method, result.local_epsilon
    ('blanket', 1.0)
    """

    name: str
    epsilon: float
    delta: float
    users: int
    local_epsilon: float
    method: str
    general_epsilon: float
    metric: bool = False
    hashed: bool = False

    def sentences(self) -> list[str]:
        """Return the answer, what it rests on, and what it assumes.

        Returns
        -------
        list of str
            One or two sentences each.
        """
        over = " between any two values of the domain" if self.metric else ""
        lines = [
            f"After shuffling one report of each of {plural(self.users, 'user')}, the reports are "
            f"({self.epsilon:.4g}, {self.delta:.3g})-differentially private for each person; a report alone has "
            f"epsilon {self.local_epsilon:.4g}{over}.",
            f"The bound is by {METHOD_TEXTS[self.method]}.",
        ]
        if self.method == BLANKET and self.general_epsilon > self.epsilon:
            lines[-1] += f" For any mechanism with that epsilon it is {self.general_epsilon:.4g}."
        if self.hashed:
            lines.append("The hash is taken to be random: two values share a bucket for one in so many seeds.")
        lines.append(
            "This holds for an observer who sees all reports and nothing of who sent which, if everybody else sends "
            "as told: count only users whom you trust to, and one report of each."
        )
        return lines

    def explain(self) -> str:
        """Return the answer in sentences.

        Returns
        -------
        str
            A line for each part.
        """
        return "\n".join(self.sentences())

    def __str__(self) -> str:
        return self.explain()

    def _repr_html_(self) -> str:
        return facts_html([Fact(self.name, self.explain())])

    def document(self) -> dict[str, Any]:
        """Return what `to_json` writes, as plain Python values.

        Returns
        -------
        dict
            With a version.
        """
        return {
            "version": 1,
            "mechanism": self.name,
            "epsilon": self.epsilon,
            "delta": self.delta,
            "users": self.users,
            "local_epsilon": self.local_epsilon,
            "method": self.method,
            "general_epsilon": self.general_epsilon,
            "text": self.explain(),
        }

    def to_json(self) -> str:
        """Return the result as one JSON document.

        Returns
        -------
        str
            As `document` has it.
        """
        return json.dumps(self.document(), allow_nan=False, ensure_ascii=False)
