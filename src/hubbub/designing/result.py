"""`Design`, the result of `design`."""

from __future__ import annotations

import json
import math
from collections.abc import Generator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from hubbub.auditing.exact_epsilon import ExactEpsilon, prove_epsilon
from hubbub.auditing.pair_bounds import PairBounds, prove_pair_bounds
from hubbub.core import validation
from hubbub.core.arrays import Array, Floats, plain
from hubbub.core.progress import Progress, stepwise
from hubbub.core.serialization import Portable
from hubbub.core.text import plural
from hubbub.designing.built_in_columns import built_in_mechanisms
from hubbub.designing.column_costs import LostInformation, ServiceLoss
from hubbub.designing.design_plot import draw_design
from hubbub.designing.design_question import SUBSETS, DesignQuestion
from hubbub.designing.privacy_policy import METRIC, PAIRS
from hubbub.designing.validation import INFORMATION, RATE_DISTORTION, RISK, SERVICE_LOSS, VARIANCE
from hubbub.domains.product_labels import json_value
from hubbub.mechanisms import Matrix, Mechanism
from hubbub.mechanisms.frequency_oracle import FrequencyOracle
from hubbub.planning import Plan, plan
from hubbub.rendering import Fact, facts_html, table_html
from hubbub.rendering.new_figure import axes_or_new
from hubbub.sampling import Randomness

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

CERTIFIED = 0.01  # relative: an optimum that is proven to be so near is called certified
UNSEEN_TRUTHS = ("bell", "block", "zipf")
MAX_COMPARED = 3  # built-in mechanisms that are simulated beside a design, unless others are asked for
MOST_EXCESS, MIN_PLAIN_SHARE = 1e4, 1e-5  # shares beyond which, and below which, percentages are no words
AS_GOOD = 1e-3  # relative: a design that gains less over a built-in mechanism gains nothing
SAME_VALUE = 1e-6  # relative: mechanisms with values so near are taken to tell the same
SMALLEST_SHARE = 1e-300
VALUE_NAMES = {
    RISK: "error relative to the best built-in mechanism of each family",
    VARIANCE: "total variance of unbiased shares",
    INFORMATION: "mutual information in nats",
    SERVICE_LOSS: "expected service loss",
    RATE_DISTORTION: "mutual information in nats",
}


@dataclass(frozen=True)
class DesignError:
    """The expected error under one family of distributions: of the design, and of the best built-in mechanism."""

    family: str
    error: float
    built_in: str
    built_in_error: float


@dataclass(frozen=True, eq=False)
class Design(Portable):
    """A mechanism that was computed for a goal, with the proof of how good it is.

    Attributes
    ----------
    mechanism : Matrix
        The mechanism: as any other in studies, clients and audits.
    value : float
        What the goal is about, for this mechanism: see `value_name`.
    bound : float
        No mechanism with this privacy has a value that is better than this; infinite (minus infinity) if nothing is
        proven.
    complete : bool
        Whether all columns that a mechanism may have were compared.
    lost : float
        The part of the value that the limit on outputs has cost, relative.
    places : numpy.ndarray or None
        Where a loss is limited: the answer that each output is understood as.
    errors : tuple of DesignError
        For goal "risk": the expected error under each family of distributions.
    question : DesignQuestion
        What was asked, checked: the policy, the goal, the prior, the losses and the seed.
    built_ins : mapping from str to float
        The value of each built-in mechanism with this privacy that a formula knows, by its kind.

    Examples
    --------
    >>> import hubbub as hb
    >>> colours = hb.Categories(["red", "green", "blue"])
    >>> best = hb.design(colours, 1.0, goal="information")
    >>> len(best.mechanism.outputs), best.keeps_privacy
    (3, True)
    >>> print(f"{best.value_name}: {best.value:.4f}")
    mutual information in nats: 0.1233
    """

    question: DesignQuestion
    mechanism: Matrix
    value: float
    bound: float
    complete: bool
    lost: float
    places: Array | None
    errors: tuple[DesignError, ...]
    built_ins: Mapping[str, float]

    @property
    def goal(self) -> str:
        """The goal."""
        return self.question.goal

    @property
    def value_name(self) -> str:
        """What `value` is."""
        return VALUE_NAMES.get(self.goal, "width of the interval" if self.question.statistics is not None else "")

    @property
    def excess(self) -> float:
        """How far the value is from the optimum at most, relative to it; infinite if nothing is proven."""
        if not math.isfinite(self.bound) or self.bound == 0:
            return 0.0 if self.bound == self.value else math.inf
        return max(abs(self.value - self.bound) / abs(self.bound), 0.0)

    @property
    def status(self) -> str:
        """How good the mechanism is, as far as that is proven."""
        side = "below" if self.goal == INFORMATION else "above"
        if not math.isfinite(self.excess):
            return "best found; no bound on the optimum"
        if self.excess <= CERTIFIED:
            return f"certified: at most {_percent(self.excess)} {side} the optimum"
        return f"best found, at most {_percent(self.excess)} {side} the optimum"

    @property
    def loss(self) -> float:
        """The expected loss of a user whose outputs are understood as the best answers."""
        columns = self.mechanism.probabilities.T
        return float(ServiceLoss(self.question.centre, self.question.losses).costs(columns).sum())

    @property
    def information(self) -> float:
        """The mutual information of value and output, in nats."""
        return -float(LostInformation(self.question.centre).costs(self.mechanism.probabilities.T).sum())

    @cached_property
    def proof(self) -> ExactEpsilon | PairBounds:
        """What the privacy really is, proven from the whole numbers that reports are drawn from."""
        policy = self.question.policy
        if policy.kind != PAIRS:
            return prove_epsilon(self.mechanism)
        labels = self.question.domain.labels
        bounds = {
            (plain(labels[first]), plain(labels[second])): float(policy.bounds[first, second])
            for first, second in policy.edges.tolist()
        }
        return prove_pair_bounds(self.mechanism, bounds)

    @property
    def keeps_privacy(self) -> bool:
        """Whether the proven privacy is at most what was asked for."""
        proof = self.proof
        if isinstance(proof, PairBounds):
            return proof.holds
        return float(proof.high) <= self.question.policy.epsilon

    @property
    def privacy_text(self) -> str:
        """The privacy that was asked for, in words."""
        policy = self.question.policy
        if policy.kind == PAIRS:
            return f"{plural(len(policy.edges), 'pair')} of values, log-ratios of at most {policy.epsilon:g}"
        unit = self.question.domain.unit or "unit"
        return f"epsilon {policy.epsilon:g}" + (f" per {unit}" if policy.kind == METRIC else "")

    @property
    def sentence(self) -> str:
        """The result in plain words."""
        outputs = plural(len(self.mechanism.labels), "output")
        sentence = (
            f"A mechanism with {outputs} and {self.privacy_text}: {self.value_name} {self.value:.4g}, {self.status}."
        )
        listed = {name: value for name, value in self.built_ins.items() if math.isfinite(value)}
        if listed:
            best = (max if self.goal == INFORMATION else min)(listed, key=lambda name: listed[name])
            as_good = math.isclose(self.value, listed[best], rel_tol=AS_GOOD)
            told = "which is as good" if as_good else f"{listed[best]:.4g}"
            sentence += f" The best built-in mechanism is {best}{', ' if as_good else ': '}{told}."
        if self.lost > 0:
            sentence += f" The limit on outputs has cost {_percent(self.lost)}."
        return sentence

    def explain(self) -> str:
        """Return the result with what it rests on.

        Returns
        -------
        str
            One paragraph each.
        """
        return "\n".join(f"{fact.label}: {fact.text}" for fact in self.facts())

    def facts(self) -> list[Fact]:
        """Return the result as labels with texts."""
        proof = self.proof
        if isinstance(proof, PairBounds):
            proven = proof.text()
        else:
            proven = f"between {proof.low} and {proof.high}, " + ("within" if self.keeps_privacy else "above")
            proven += f" what was asked for, {self.question.policy.epsilon!r}"
        facts = [
            Fact("result", self.sentence),
            Fact("privacy, proven", proven),
            Fact("service loss", f"{self.loss:.4g} expected, of a user whose output is understood as the best answer"),
            Fact("information", f"{self.information:.4g} nats about one value"),
        ]
        if self.goal == RISK:
            worst = max(self.errors, key=lambda each: each.error / each.built_in_error)
            best = min(self.errors, key=lambda each: each.error / each.built_in_error)
            facts.append(Fact("gains most", _family_text(best)))
            facts.append(Fact("gains least", _family_text(worst)))
        return facts

    @stepwise
    def compare(
        self,
        mechanisms: Mapping[str, Mechanism] | None = None,
        *,
        truth: object = UNSEEN_TRUTHS,
        method: str = "auto",
        distance: str = "tv",
        runs: int | None = None,
        rng: Randomness = None,
    ) -> Generator[Progress, None, dict[str, Plan]]:
        """Simulate studies with this mechanism and others, for truths that the design has not seen.

        Parameters
        ----------
        mechanisms : mapping, optional
            The others, by name; left out, the three built-in mechanisms that come nearest by formula, and those whose
            outputs are too many for the formula.
        truth : list, optional
            Distributions to assume, as for `plan`.
        method, distance, runs, rng
            As for `plan`.

        Returns
        -------
        dict of str to Plan
            One plan for each truth, by its name.

        Raises
        ------
        SettingError
            If a truth, the method, the distance or `runs` has a wrong value, or `rng` is no source of randomness.
        """
        names = list(truth) if isinstance(truth, list | tuple) else [truth]
        validation.generator(rng, "design.compare")
        if mechanisms is not None and not isinstance(mechanisms, Mapping):
            raise validation.wrong(
                mechanisms,
                "mechanisms",
                "design.compare",
                "mechanisms by name: {name: mechanism}",
                remedy="leave it out for the built-in mechanisms that come nearest",
            )
        others = dict(self.nearest_built_ins() if mechanisms is None else mechanisms)
        plans: dict[str, Plan] = {}
        for each in names:
            key = each if isinstance(each, str) else f"truth {len(plans) + 1}"
            plans[key] = yield from plan.steps(
                {"design": self.mechanism, **others},
                users=self.question.users,
                truth=each,
                method=method,
                distance=distance,
                runs=runs,
                rng=rng,
            )
        return plans

    def nearest_built_ins(self, count: int = MAX_COMPARED) -> dict[str, Mechanism]:
        """Return the built-in mechanisms with this privacy that come nearest, and those that no formula knows.

        Parameters
        ----------
        count : int
            How many of those that a formula knows.

        Returns
        -------
        dict of str to Mechanism
            By kind.
        """
        every = built_in_mechanisms(self.question.policy)
        known = [name for name in self.built_ins if name in every and math.isfinite(self.built_ins[name])]
        known.sort(key=lambda name: self.built_ins[name], reverse=self.goal == INFORMATION)
        # With equal shares no oracle whose outputs are sets or hashes tells more than subset selection does.
        is_bounded = SUBSETS in self.built_ins
        unknown = [
            name
            for name, each in every.items()
            if name not in self.built_ins and not (is_bounded and isinstance(each, FrequencyOracle))
        ]
        nearest: list[str] = []
        for name in known:  # outputs that are remapped, or not, may tell the same: one of them is enough
            if not any(
                math.isclose(self.built_ins[name], self.built_ins[other], rel_tol=SAME_VALUE) for other in nearest
            ):
                nearest.append(name)
        return {name: every[name] for name in [*nearest[:count], *unknown]}

    def rows(self) -> list[dict[str, Any]]:
        """Return the comparison with built-in mechanisms as a list of rows.

        Returns
        -------
        list of dict
            The rows of `to_frame`.
        """
        rows = [{"mechanism": "design", "value": self.value, "relative": 1.0}]
        sign = -1 if self.goal == INFORMATION else 1
        for name, value in sorted(self.built_ins.items(), key=lambda item: sign * item[1]):
            rows.append({"mechanism": name, "value": value, "relative": value / self.value if self.value else None})
        return rows

    def to_frame(self) -> pd.DataFrame:
        """Return the comparison with built-in mechanisms by formula.

        Returns
        -------
        pandas.DataFrame
            Columns `mechanism`, `value` and `relative` (to the design).
        """
        import pandas as pd

        return pd.DataFrame(self.rows())

    def document(self) -> dict[str, Any]:
        """Return everything as one document for JSON.

        Returns
        -------
        dict
            Numbers that are not finite are None.
        """
        proof = self.proof
        pairs = proof.document()["pairs"] if isinstance(proof, PairBounds) else None
        worst = proof.worst if isinstance(proof, PairBounds) else proof
        proven = {"low": str(worst.low), "high": str(worst.high), "holds": self.keeps_privacy, "pairs": pairs}
        question = self.question
        return {
            "version": 1,
            "goal": self.goal,
            "privacy": question.policy.kind,
            "epsilon": question.policy.epsilon,
            "users": question.users,
            "prior": question.centre.tolist(),
            "level": question.level,
            "max_loss": question.max_loss,
            "value": _finite(self.value),
            "value_name": self.value_name,
            "bound": _finite(self.bound),
            "excess": _finite(self.excess),
            "status": self.status,
            "complete": self.complete,
            "outputs": len(self.mechanism.labels),
            "lost": self.lost,
            "loss": self.loss,
            "information": self.information,
            "proof": proven,
            "answers": None
            if self.places is None
            else [json_value(plain(place), question.domain) for place in self.places],
            "families": [vars(each) for each in self.errors],
            "built_ins": [{"mechanism": name, "value": _finite(value)} for name, value in self.built_ins.items()],
            "seed": question.seed,
        }

    def to_json(self) -> str:
        """Return the document as text.

        Returns
        -------
        str
            JSON.
        """
        return json.dumps(self.document(), ensure_ascii=False, indent=2)

    def plot(self, axes: Axes | None = None) -> Axes:
        """Draw how the design compares with built-in mechanisms, by formula.

        Parameters
        ----------
        axes : matplotlib.axes.Axes, optional
            Where to draw; left out, a new figure.

        Returns
        -------
        matplotlib.axes.Axes
            The axes.
        """
        axes = axes_or_new(axes)
        draw_design(self.mechanism, self.rows(), self.value_name, axes)
        return axes

    def __str__(self) -> str:
        return self.explain()

    def __repr__(self) -> str:
        return f"Design({self.goal!r}, {self.privacy_text}, {len(self.mechanism.labels)} outputs, {self.status})"

    def _repr_html_(self) -> str:
        rows = [[row["mechanism"], f"{row['value']:.4g}"] for row in self.rows()]
        return facts_html(self.facts()) + table_html(["mechanism", self.value_name], rows)


def design_of(
    question: DesignQuestion,
    columns: Floats,
    value: float,
    bound: float,
    *,
    complete: bool,
    unmerged: float | None = None,
) -> Design:
    """Return the result for the whole columns of a mechanism, without those that have no probability."""
    columns = columns[columns.max(axis=1) > SMALLEST_SHARE]
    policy, domain = question.policy, question.domain
    if question.goal == INFORMATION:
        value, bound = abs(value), -bound
    lost = 0.0 if unmerged is None else max(abs(value) / abs(unmerged) - 1, 0.0)
    lost = lost if question.outputs is not None and lost > 1e-9 else 0.0  # below: rounding
    places = None
    labels: Array
    if question.goal in (SERVICE_LOSS, RATE_DISTORTION) or question.max_loss is not None:
        best = ServiceLoss(question.centre, question.losses).places(columns)
        places = domain.labels[best]
    order = _output_order(columns)
    columns = columns[order]
    places = None if places is None else places[order]
    labels = np.arange(len(columns))
    # Every answer has one output: it may be sent itself, unless it is a combination of several attributes.
    if places is not None and domain.product is None and len(set(places.tolist())) == len(places):
        labels = places
    probabilities = columns.T / columns.T.sum(axis=1, keepdims=True)
    goal = question.information
    errors: tuple[DesignError, ...] = ()
    values: dict[str, float] = {}
    if goal is not None:
        known = question.built_in_errors(goal)
        own = goal.errors_of(probabilities.T)
        if question.goal == RISK:
            errors = tuple(_design_errors(goal.parts, own, known))
        for name, each in known.items():
            ratios = each / goal.references
            worst = ratios.max()
            power = np.mean((ratios / worst) ** goal.power) ** (1 / goal.power) if np.isfinite(worst) else np.inf
            values[name] = float(worst * power) if np.isfinite(worst) else math.inf
    else:
        values = {name: question.value_of(listed) for name, listed in question.built_ins.items()}
    origin = f"hubbub design, goal {question.goal}"
    mechanism = Matrix(domain, labels, probabilities, metric=policy.kind == METRIC, origin=origin)
    return Design(question, mechanism, value, bound, complete, lost, places, errors, values)


def _output_order(columns: Floats) -> Array:
    """Return outputs in the order of the values that they speak for, so that tables and pictures can be read."""
    scaled = columns / columns.sum(axis=1, keepdims=True)
    return np.lexsort((scaled.max(axis=1), scaled @ np.arange(columns.shape[1])))


def _design_errors(parts: Any, own: Floats, known: Mapping[str, Floats]) -> list[DesignError]:
    errors = []
    for place, part in enumerate(parts):
        best = min(known, key=lambda name: known[name][place])
        errors.append(DesignError(part.name, float(own[place]), best, float(known[best][place])))
    return errors


def _family_text(each: DesignError) -> str:
    return (
        f"{each.family}: expected total variation {each.error:.4g}, {each.built_in} {each.built_in_error:.4g} "
        f"(ratio {each.error / each.built_in_error:.3f})"
    )


def _percent(share: float) -> str:
    """Return a share as a percentage that is not rounded down."""
    if share <= 0:
        return "0%"
    if share >= MOST_EXCESS:
        return "over a million percent"
    if share >= 1:
        return f"{math.ceil(share * 100):,}%"
    if share >= MIN_PLAIN_SHARE:
        return f"{math.ceil(share * 1e4) / 1e2:g}%"
    exponent = math.floor(math.log10(share * 100))
    return f"{math.ceil(share * 100 / 10.0**exponent):d}e{exponent:03d}%"


def _finite(number: float) -> float | None:
    return number if math.isfinite(number) else None
