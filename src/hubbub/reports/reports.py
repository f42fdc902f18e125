"""Reports: distinct patterns and how many users sent each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.channels import Channel, ConcatenatedChannel
from hubbub.core.arrays import Codes, Floats, Positions, as_integer, frozen
from hubbub.core.errors import OutputError, ReportsError, restated, shorten
from hubbub.core.serialization import Portable
from hubbub.core.text import plural
from hubbub.domains import Domain, Subset
from hubbub.mechanisms import BloomRappor, Mechanism
from hubbub.mechanisms.output_spaces import encode_each
from hubbub.mechanisms.unary_encoding import UnaryEncoding
from hubbub.reports.blocks import BitSums, Block, Joint, Singles, common_items
from hubbub.reports.filter_sums import FilterSums, filter_sums
from hubbub.reports.from_users import encoded_users
from hubbub.reports.survey_weights import NO_LABEL, SurveyWeights, check_survey
from hubbub.reports.validation import check_counts, check_mechanism, check_shape, no_reports


@dataclass(frozen=True, eq=False)
class Reports(Portable):
    """All that was collected, merged to distinct patterns and the number of users who sent each.

    A pattern is all that one user sent: one or several (mechanism, output) pairs, in any order. Build reports with one
    of the ``from_`` methods, and merge them with ``+``.

    Attributes
    ----------
    domain : Domain
        The values that the reports are about.
    blocks : tuple of Block
        The patterns, by their form.
    survey : SurveyWeights, or None
        How many people each user stands for, and how users were sampled, where that is not all the same.

    Examples
    --------
    >>> import hubbub as hb
    >>> coin = hb.RandomizedResponse(hb.Categories(["yes", "no"]), epsilon=1.0)
    >>> reports = hb.Reports.from_counts(coin, {"yes": 700, "no": 300})
    >>> reports
    Reports(1,000 users, 2 distinct patterns, 1 mechanism)
    """

    domain: Domain
    blocks: tuple[Block, ...]
    survey: SurveyWeights | None = None

    # -- building ------------------------------------------------------------------------------------

    @classmethod
    def from_outputs(
        cls,
        mechanism: Mechanism,
        outputs: object,
        *,
        weights: object = None,
        strata: object = None,
        clusters: object = None,
    ) -> Reports:
        """Build reports from one output for each user, all from one mechanism.

        Parameters
        ----------
        mechanism : Mechanism
            The mechanism that the users ran.
        outputs : array
            One output for each user, in the form that ``mechanism.privatize`` returns.
        weights : array, optional
            Survey weights: how many people each user stands for (see the page on survey weights).
        strata, clusters : array, optional
            The stratum in which each user was sampled, and the cluster of users who were sampled together.

        Returns
        -------
        Reports
            The distinct outputs, and how many users sent each.

        Raises
        ------
        OutputError
            If the mechanism can never send one of the outputs.
        ReportsError
            If there are no outputs, or weights, strata or clusters do not fit them.

        Examples
        --------
        >>> import hubbub as hb
        >>> ages = hb.TruncatedGeometric(hb.Integers(18, 99), epsilon=0.5)
        >>> hb.Reports.from_outputs(ages, [31, 47, 31]).users
        3
        """
        where = "Reports.from_outputs"
        check_mechanism(mechanism, where)
        codes = mechanism.output_space.encode(outputs)
        reports = cls._from_singles(mechanism, codes, np.ones(len(codes), dtype=np.int64), where)
        if weights is None and strata is None and clusters is None:
            return reports
        (block,) = reports.blocks
        assert isinstance(block, Singles)  # noqa: S101  # what _from_singles builds
        return reports.weighted(block.find(codes), where, weights=weights, strata=strata, clusters=clusters)

    @classmethod
    def from_counts(cls, mechanism: Mechanism, counts: object) -> Reports:
        """Build reports from the number of users who sent each output.

        Parameters
        ----------
        mechanism : Mechanism
            The mechanism that the users ran, once each.
        counts : array of int, or mapping from outputs to int
            One count for each of ``mechanism.outputs``, in that order; or counts with their outputs as labels, in a
            dictionary or a pandas Series such as ``value_counts`` returns.

        Returns
        -------
        Reports
            The outputs, and how many users sent each.

        Raises
        ------
        OutputError
            If the mechanism can never send one of the outputs.
        ReportsError
            If the counts are not whole numbers from 0, do not fit the outputs, or are all 0.

        Examples
        --------
        >>> import hubbub as hb
        >>> coin = hb.RandomizedResponse(hb.Categories(["yes", "no"]), epsilon=1.0)
        >>> hb.Reports.from_counts(coin, {"yes": 231, "no": 369}).users
        600
        """
        where = "Reports.from_counts"
        check_mechanism(mechanism, where)
        items = getattr(counts, "items", None)
        if callable(items):
            codes, numbers = _labelled_counts(mechanism, list(items()), where)
        else:
            outputs = mechanism.outputs
            if outputs is None:
                raise ReportsError(
                    "the outputs of this mechanism cannot be listed",
                    where=where,
                    got=type(mechanism).__name__,
                    expected="counts as {output: count}",
                    remedy="use from_outputs, or a mapping from outputs to counts",
                )
            numbers = check_counts(counts, where)
            check_shape(
                numbers,
                len(outputs),
                where,
                what="the counts do not match the outputs",
                expected=f"{len(outputs)} counts, in the order of mechanism.outputs",
                remedy="pass one count for each output, 0 for those that nobody sent, or use {output: count}",
            )
            codes = mechanism.output_space.encode(outputs)
        return cls._from_singles(mechanism, codes, numbers, where)

    @classmethod
    def from_bit_counts(cls, mechanism: Mechanism, ones: object, users: object) -> Reports:
        """Build reports from sums of bits, for unary mechanisms whose individual reports were not kept.

        Inversion works as with full reports; maximum likelihood treats the bits as independent and is approximate
        (estimates say so).

        Parameters
        ----------
        mechanism : Rappor, OptimizedUnary, Unary, LongitudinalRappor, LongitudinalUnary or BloomRappor
            The mechanism that the users ran.
        ones : array of int
            How many users sent a one for each value, in the order of ``domain.labels``, as ``mechanism.bit_counts``
            adds them up; of `BloomRappor` a row for each cohort, with a sum for each bit.
        users : int, or array of int
            How many users the sums are over; of `BloomRappor` the number in each cohort.

        Returns
        -------
        Reports
            Reports whose `approximate` is True.

        Raises
        ------
        ReportsError
            If the mechanism does not send one bit for each value, or the sums do not fit domain and users.

        Examples
        --------
        >>> import hubbub as hb
        >>> bits = hb.Rappor(hb.Categories(["a", "b", "c"]), epsilon=2.0)
        >>> hb.Reports.from_bit_counts(bits, ones=[520, 310, 330], users=1000).approximate
        True
        """
        where = "Reports.from_bit_counts"
        check_mechanism(mechanism, where)
        if isinstance(mechanism, BloomRappor):
            return cls(mechanism.domain, (filter_sums(mechanism, ones, users, where),))
        if not isinstance(mechanism, UnaryEncoding):
            raise ReportsError(
                "this mechanism does not send one bit for each value",
                where=where,
                got=type(mechanism).__name__,
                expected="Rappor, OptimizedUnary, LongitudinalRappor, LongitudinalUnary or BloomRappor",
                remedy="use from_outputs or from_counts",
            )
        sums = check_counts(ones, f"{where}(ones=)")
        senders = as_integer(users, ReportsError, where=f"{where}(users=)", expected="a number of users")
        if senders < 1:
            raise no_reports(f"{where}(users=)", f"{senders} users")
        check_shape(
            sums,
            len(mechanism.domain),
            where,
            what="ones must be one sum for each value",
            expected=f"{len(mechanism.domain)} sums",
            remedy="pass the number of ones of every bit, in the domain's order",
        )
        if sums.max() > senders:
            raise ReportsError(
                "more ones than users",
                where=f"{where}, position {int(np.argmax(sums))}",
                got=f"{int(sums.max())} ones of {senders} users",
                expected="at most one for each user",
                remedy="check both numbers: users is how many people the sums are over",
            )
        return cls(mechanism.domain, (BitSums(mechanism, frozen(sums), senders),))

    @classmethod
    def from_users(
        cls,
        users: Iterable[Sequence[tuple[Mechanism, object]]],
        *,
        weights: object = None,
        strata: object = None,
        clusters: object = None,
    ) -> Reports:
        """Build reports from lists of (mechanism, output) pairs.

        Parameters
        ----------
        users : iterable of lists
            One list of (mechanism, output) pairs for each user; a mechanism may repeat.
        weights, strata, clusters : array, optional
            As in `from_outputs`.

        Returns
        -------
        Reports
            The distinct patterns, and how many users sent each.

        Raises
        ------
        OutputError
            If a mechanism can never send one of the outputs.
        ReportsError
            If there are no users, one has no pairs, or their mechanisms have different domains.
        ImpossibleReportError
            If no value can have produced all that one user sent.

        Examples
        --------
        >>> import hubbub as hb
        >>> ages = hb.Integers(18, 99)
        >>> near, far = (hb.TruncatedGeometric(ages, epsilon) for epsilon in (0.5, 0.1))
        >>> hb.Reports.from_users([[(near, 31)], [(near, 47), (far, 52)]])
        Reports(2 users, 2 distinct patterns, 2 mechanisms)
        """
        if isinstance(users, Mapping) or not isinstance(users, Iterable):
            raise ReportsError(
                "not a list of users",
                where="Reports.from_users",
                got=shorten(users),
                expected="[[(mechanism, output), ...], ...]: one list of pairs for each user",
                remedy="pass the lists alone, for a dictionary from users to lists its .values()",
            )
        reports, patterns = assemble_with_patterns(*encoded_users(users))
        if weights is None and strata is None and clusters is None:
            return reports
        return reports.weighted(patterns(), "Reports.from_users", weights=weights, strata=strata, clusters=clusters)

    @classmethod
    def _from_singles(cls, mechanism: Mechanism, codes: Codes, counts: Positions, where: str) -> Reports:
        block = Singles.build(mechanism, codes, counts)
        if block.users == 0:
            raise no_reports(where)
        block.check_possible(None)
        return cls(mechanism.domain, (block,))

    def weighted(
        self, patterns: Positions, where: str, *, weights: object, strata: object, clusters: object
    ) -> Reports:
        """Return the same reports with weights, given the place of each user's pattern."""
        given = check_survey(patterns.size, where, weights=weights, strata=strata, clusters=clusters)
        survey = SurveyWeights.build(patterns, *given, np.ones(patterns.size, dtype=np.int64))
        return Reports(self.domain, self.blocks, survey)

    # -- combining -----------------------------------------------------------------------------------

    def __add__(self, other: Reports) -> Reports:
        if not isinstance(other, Reports):
            return NotImplemented
        if self.domain != other.domain:
            raise ReportsError(
                "reports over different domains cannot be merged",
                where="reports + reports",
                got=shorten(other.domain, 100),
                expected=shorten(self.domain, 100),
                remedy="estimate them separately, or collect both over the same domain",
            )
        merged: dict[object, Block] = {}
        for block in self.blocks + other.blocks:
            merged[block.form] = merged[block.form].merge(block) if block.form in merged else block
        together = Reports(self.domain, in_order(merged.values()))
        if self.survey is None and other.survey is None:
            return together
        if self.survey is None or other.survey is None:
            raise ReportsError(
                "reports with weights and reports without cannot be merged",
                where="reports + reports",
                got="weights on one side only",
                expected="weights on both sides, or on none",
                remedy="give weight 1 to the users without: nobody knows how many people they stand for otherwise",
            )
        survey = self.survey.moved(together.positions_of(self))
        return Reports(self.domain, together.blocks, survey.merge(other.survey.moved(together.positions_of(other))))

    def positions_of(self, part: Reports) -> Positions:
        """Return where the patterns of other reports are among these, which hold all of them."""
        starts = np.cumsum([0, *(block.weights.size for block in self.blocks)])
        places = {block.form: place for place, block in enumerate(self.blocks)}
        found = [places[block.form] for block in part.blocks]
        return np.concatenate(
            [
                starts[place] + self.blocks[place].positions_of(block)
                for place, block in zip(found, part.blocks, strict=True)
            ]
        )

    def __getstate__(self) -> dict[str, Any]:
        """Return what defines the reports; those without weights are what they were before there were any."""
        state = super().__getstate__()
        return {name: value for name, value in state.items() if name != "survey" or value is not None}

    def __eq__(self, other: object) -> bool:
        """Whether both hold the same patterns, each from the same number of users, over the same domain."""
        if not isinstance(other, Reports):
            return NotImplemented
        keys = ([block.content_key for block in reports.blocks] for reports in (self, other))
        surveys = (None if reports.survey is None else reports.survey.content_key for reports in (self, other))
        return self.domain == other.domain and next(keys) == next(keys) and next(surveys) == next(surveys)

    def __radd__(self, other: object) -> Reports:
        return self if other == 0 else NotImplemented  # sum() starts from 0

    def restrict(self, values: object) -> Reports:
        """Return the same reports, to be estimated on a subset of the values.

        Parameters
        ----------
        values : array
            The values to keep. The mechanisms keep their own domain.

        Returns
        -------
        Reports
            The same patterns over fewer values.

        Raises
        ------
        DomainError
            If a value is not in the domain.
        ReportsError
            If there are no values to keep.
        ImpossibleReportError
            If no kept value can have produced one of the reports.

        Examples
        --------
        >>> import hubbub as hb
        >>> colours = hb.Categories(["red", "green", "blue"])
        >>> colour = hb.RandomizedResponse(colours, epsilon=1.0)
        >>> reports = hb.Reports.from_counts(colour, [500, 300, 200])
        >>> len(reports.restrict(["red", "green"]).domain)
        2
        """
        positions = np.unique(np.atleast_1d(self.domain.index(values)))
        if positions.size == 0:
            raise ReportsError(
                "no values to keep",
                where="Reports.restrict(values)",
                got="an empty list",
                expected="at least one value of the domain",
                remedy="list the values to estimate",
            )
        kept = positions if self.domain.among is None else self.domain.among[positions]
        for block in self.blocks:
            block.check_possible(kept)
        return Reports(Subset(self.domain.unrestricted, tuple(kept.tolist())), self.blocks, self.survey)

    # -- looking -------------------------------------------------------------------------------------

    @cached_property
    def users(self) -> int:
        """How many users sent these reports."""
        return sum(block.users for block in self.blocks)

    @property
    def mechanisms(self) -> tuple[Mechanism, ...]:
        """The distinct mechanisms."""
        return tuple(dict.fromkeys(mechanism for block in self.blocks for mechanism in block.mechanisms))

    @property
    def approximate(self) -> bool:
        """Whether the likelihood is approximate, because only sums of bits were kept."""
        return any(isinstance(block, BitSums | FilterSums) for block in self.blocks)

    @cached_property
    def weights(self) -> Floats:
        """The weight of each pattern in the log-likelihood: the number of its users, or their survey weights.

        Survey weights are scaled to add up to the effective number of users.
        """
        counted = np.concatenate([block.weights for block in self.blocks])
        return frozen(counted if self.survey is None else self.survey.sums(counted.size))

    @property
    def effective_users(self) -> float:
        """How many users of equal weight would tell as much: all of them, unless survey weights differ."""
        return float(self.users) if self.survey is None else self.survey.effective_users

    def with_weights(self) -> Reports:
        """Return the same reports with survey weights: 1 for each user, unless they have some already.

        Returns
        -------
        Reports
            Reports that can be added to others with weights.

        Raises
        ------
        ReportsError
            If only sums of bits were kept.
        """
        if self.survey is not None:
            return self
        if self.approximate:
            raise ReportsError(
                "sums of bits have no weights",
                where="reports with and without survey weights",
                got="reports of which only sums of bits were kept",
                expected="reports with one pattern for each user",
                remedy="drop the weights of the others with reports.unweighted",
            )
        counts = self.weights.astype(np.int64)
        same = np.full(counts.size, NO_LABEL)
        survey = SurveyWeights.build(np.arange(counts.size), np.ones(counts.size), same, same, counts)
        return Reports(self.domain, self.blocks, survey)

    @property
    def unweighted(self) -> Reports:
        """The same reports, each user with weight 1."""
        return self if self.survey is None else Reports(self.domain, self.blocks)

    @cached_property
    def channel(self) -> Channel:
        """The likelihood of the patterns over the domain."""
        parts = [block.channel(self.domain.among) for block in self.blocks]
        return parts[0] if len(parts) == 1 else ConcatenatedChannel(parts)

    def epsilon_per_user(self) -> tuple[float, float]:
        """Return the largest epsilon that a user spent with all their outputs.

        Returns
        -------
        plain, per_unit : float
            Plain epsilon, and epsilon per unit of distance; the two are never added together.
        """
        plain, metric = zip(*(spent for block in self.blocks for spent in block.spending()), strict=True)
        return max(plain), max(metric)

    def __repr__(self) -> str:
        patterns = plural(self.weights.size, "distinct pattern")
        effective = "" if self.survey is None else f", {self.effective_users:,.0f} effective by their weights"
        mechanisms = plural(len(self.mechanisms), "mechanism")
        return f"Reports({plural(self.users, 'user')}{effective}, {patterns}, {mechanisms})"


def _labelled_counts(
    mechanism: Mechanism, counts: Sequence[tuple[object, object]], where: str
) -> tuple[Codes, NDArray[np.int64]]:
    """Return encoded outputs and the number of users who sent each; labels may repeat, as in a pandas Series."""
    space, outputs = mechanism.output_space, [output for output, _ in counts]

    def at_output(position: int, error: OutputError) -> OutputError:
        place = f"{where}, output {shorten(outputs[position])}, {type(mechanism).__name__}"
        return restated(error, OutputError, where=place, code="")

    codes = encode_each(space, outputs, at_output, space.read)
    numbers = check_counts([count for _, count in counts], where)
    if numbers.ndim != 1:
        raise ReportsError(
            "a count is not one number",
            where=where,
            got=f"shape {numbers.shape}",
            expected="{output: count}",
            remedy="pass one count for each output; build reports of several groups one group at a time",
        )
    return codes, numbers


def assemble(
    domain: Domain, encoded: Mapping[Mechanism, Codes], users: Mapping[Mechanism, Positions], count: int
) -> Reports:
    """Return reports, given encoded outputs and the number (from 0 to count - 1) of the user who sent each."""
    return assemble_with_patterns(domain, encoded, users, count)[0]


def assemble_with_patterns(
    domain: Domain, encoded: Mapping[Mechanism, Codes], users: Mapping[Mechanism, Positions], count: int
) -> tuple[Reports, Callable[[], Positions]]:
    """Return what `assemble` does, and a function that returns the place of each user's pattern."""
    sent = np.zeros(count, dtype=np.int64)
    for numbers in users.values():
        sent += np.bincount(numbers, minlength=count)
    built: list[tuple[Block, Positions, Callable[[], Positions]]] = []  # blocks, their users, and places of patterns
    joint: dict[Mechanism, NDArray[np.bool_]] = {}  # which outputs came together with others of their user
    for mechanism, codes in encoded.items():
        alone = sent[users[mechanism]] == 1
        if alone.any():
            singles = Singles.build(mechanism, codes[alone], np.ones(int(alone.sum()), dtype=np.int64))
            built.append((singles, users[mechanism][alone], partial(singles.find, codes[alone])))
        if not alone.all():
            joint[mechanism] = ~alone
    if joint:
        sources, items = common_items([(mechanism, encoded[mechanism][own]) for mechanism, own in joint.items()])
        senders = np.concatenate([users[mechanism][own] for mechanism, own in joint.items()])
        numbers, who = np.unique(senders, return_inverse=True)
        ones = np.ones(numbers.size, dtype=np.int64)
        several, places = Joint.build_with_places(sources, who.ravel(), np.concatenate(items), ones)
        built.append((several, numbers, lambda: places))
    for block, _, _ in built:
        block.check_possible(None)
    reports = Reports(domain, in_order(block for block, _, _ in built))

    def patterns() -> Positions:
        found, start = np.empty(count, dtype=np.int64), 0
        for block in reports.blocks:
            numbers, places_of = next((own, places_of) for each, own, places_of in built if each is block)
            found[numbers] = start + places_of()
            start += block.weights.size
        return found

    return reports, patterns


def in_order(blocks: Iterable[Block]) -> tuple[Block, ...]:
    """Return blocks in an order that does not depend on arrival."""
    return tuple(sorted(blocks, key=lambda block: (type(block).__name__, [m.content_key for m in block.mechanisms])))
