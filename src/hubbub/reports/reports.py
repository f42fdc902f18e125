"""Reports: distinct patterns and how many users sent each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from hubbub.channels import Channel, ConcatenatedChannel
from hubbub.core.arrays import Codes, Floats, Positions, as_array, as_integer, frozen
from hubbub.core.errors import OutputError, ReportsError, restated, shorten
from hubbub.core.serialization import Portable
from hubbub.core.text import plural
from hubbub.domains import Domain, Subset
from hubbub.mechanisms import Mechanism
from hubbub.mechanisms.output_spaces import encode_each
from hubbub.mechanisms.unary_encoding import UnaryEncoding
from hubbub.reports.blocks import BitSums, Block, Joint, Singles, common_items
from hubbub.reports.from_users import encoded_users
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

    # -- building ------------------------------------------------------------------------------------

    @classmethod
    def from_outputs(cls, mechanism: Mechanism, outputs: object) -> Reports:
        """Build reports from one output for each user, all from one mechanism.

        Parameters
        ----------
        mechanism : Mechanism
            The mechanism that the users ran.
        outputs : array
            One output for each user, in the form that ``mechanism.privatize`` returns.

        Returns
        -------
        Reports
        """
        check_mechanism(mechanism, "Reports.from_outputs")
        codes = mechanism.output_space.encode(outputs)
        return cls._from_singles(mechanism, codes, np.ones(len(codes), dtype=np.int64), "Reports.from_outputs")

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
    def from_bit_counts(cls, mechanism: Mechanism, ones: object, users: int) -> Reports:
        """Build reports from sums of bits, for unary mechanisms whose individual reports were not kept.

        Inversion works as with full reports; maximum likelihood treats the bits as independent and is approximate
        (estimates say so).

        Parameters
        ----------
        mechanism : Rappor, LongitudinalRappor or OptimizedUnary
            The mechanism that the users ran.
        ones : array of int
            How many users sent a one for each value, in the order of ``domain.labels``.
        users : int
            How many users the sums are over.

        Returns
        -------
        Reports
        """
        where = "Reports.from_bit_counts"
        check_mechanism(mechanism, where)
        if not isinstance(mechanism, UnaryEncoding):
            raise ReportsError(
                "this mechanism does not send one bit for each value",
                where=where,
                got=type(mechanism).__name__,
                expected="Rappor, LongitudinalRappor or OptimizedUnary",
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
    def from_users(cls, users: Iterable[Sequence[tuple[Mechanism, object]]]) -> Reports:
        """Build reports from lists of (mechanism, output) pairs.

        Parameters
        ----------
        users : iterable of lists
            One list of (mechanism, output) pairs for each user; a mechanism may repeat.

        Returns
        -------
        Reports
        """
        if isinstance(users, Mapping) or not isinstance(users, Iterable):
            raise ReportsError(
                "not a list of users",
                where="Reports.from_users",
                got=shorten(users),
                expected="[[(mechanism, output), ...], ...]: one list of pairs for each user",
                remedy="pass the lists alone, for a dictionary from users to lists its .values()",
            )
        return assemble(*encoded_users(users))

    @classmethod
    def _from_singles(cls, mechanism: Mechanism, codes: Codes, counts: Positions, where: str) -> Reports:
        block = Singles.build(mechanism, codes, counts)
        if block.users == 0:
            raise no_reports(where)
        block.check_possible(None)
        return cls(mechanism.domain, (block,))

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
        return Reports(self.domain, in_order(merged.values()))

    def __eq__(self, other: object) -> bool:
        """Whether both hold the same patterns, each from the same number of users, over the same domain."""
        if not isinstance(other, Reports):
            return NotImplemented
        return self.domain == other.domain and [b.content_key for b in self.blocks] == [
            b.content_key for b in other.blocks
        ]

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

        Raises
        ------
        ImpossibleReportError
            If no kept value can have produced one of the reports.
        """
        positions = np.unique(np.atleast_1d(self.domain.index(as_array(values))))
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
        return Reports(Subset(self.domain.unrestricted, tuple(kept.tolist())), self.blocks)

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
        return any(isinstance(block, BitSums) for block in self.blocks)

    @cached_property
    def weights(self) -> Floats:
        """The weight of each pattern in the log-likelihood: the number of its users."""
        return frozen(np.concatenate([block.weights for block in self.blocks]))

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
        return f"Reports({plural(self.users, 'user')}, {patterns}, {plural(len(self.mechanisms), 'mechanism')})"


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
    sent = np.zeros(count, dtype=np.int64)
    for numbers in users.values():
        sent += np.bincount(numbers, minlength=count)
    blocks: list[Block] = []
    joint: dict[Mechanism, NDArray[np.bool_]] = {}  # which outputs came together with others of their user
    for mechanism, codes in encoded.items():
        alone = sent[users[mechanism]] == 1
        if alone.any():
            blocks.append(Singles.build(mechanism, codes[alone], np.ones(int(alone.sum()), dtype=np.int64)))
        if not alone.all():
            joint[mechanism] = ~alone
    if joint:
        sources, items = common_items([(mechanism, encoded[mechanism][own]) for mechanism, own in joint.items()])
        senders = np.concatenate([users[mechanism][own] for mechanism, own in joint.items()])
        numbers, who = np.unique(senders, return_inverse=True)
        blocks.append(Joint.build(sources, who.ravel(), np.concatenate(items), np.ones(numbers.size, dtype=np.int64)))
    for block in blocks:
        block.check_possible(None)
    return Reports(domain, in_order(blocks))


def in_order(blocks: Iterable[Block]) -> tuple[Block, ...]:
    """Return blocks in an order that does not depend on arrival."""
    return tuple(sorted(blocks, key=lambda block: (type(block).__name__, [m.content_key for m in block.mechanisms])))
