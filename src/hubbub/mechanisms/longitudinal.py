"""The base of mechanisms with memory: a permanent response on the device, and reports that are made from it.

**What reports spend.** All reports of a person about one value are made from one permanent response y, so that with
P1(y | x) its probability and P2(z | y) that of a report

    P(z_1, ..., z_m | x) = sum_y P1(y | x) prod_j P2(z_j | y).

The largest log-ratio of these between two values is what m reports spend: at most epsilon, that of the permanent
response itself, however many they are. It is not always at most m times what one report spends. Given the first report
the second is no new draw: where the first leaves open which response is behind it, the second one may settle it.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

import numpy as np

from hubbub.core.arrays import Array, Codes, Positions
from hubbub.core.errors import MechanismError
from hubbub.core.validation import whole
from hubbub.mechanisms.base import Mechanism
from hubbub.mechanisms.parameters import check_epsilon
from hubbub.sampling import Randomness, RandomSource, TwoStageLaw, source_of

ROUNDING = 2.0**-45  # relative, by which what reports spend is rounded up


class Longitudinal(Mechanism):
    """A mechanism for users who report about one value again and again.

    The **permanent response** is drawn once for a person and a value, and never leaves the device; each report is an
    **instantaneous response** to it. Both are encoded alike.

    Attributes
    ----------
    epsilon
        Plain epsilon of all reports about one value together.
    first
        Plain epsilon of a single report.
    """

    first: float
    law: TwoStageLaw
    without_memory: ClassVar[str] = ""  # the class for users who report once

    def _check_first(self) -> None:
        """Check the epsilon of a single report; that of all of them has been checked."""
        name = type(self).__name__
        object.__setattr__(self, "first", check_epsilon(self.first, name, "first"))
        if self.first >= self.epsilon:
            raise MechanismError(
                "first must be below epsilon, which is that of all reports together",
                where=f"{name}(first=)",
                got=f"first {self.first:g}, epsilon {self.epsilon:g}",
                expected="first below epsilon",
                remedy="choose a smaller first, such as half of epsilon; for a single report of each user use "
                f"{self.without_memory}",
            )

    # -- what reports spend --------------------------------------------------------------------------

    def spent(self, reports: int) -> float:
        """Return the epsilon of so many reports about one value together: the largest log-ratio that they can have.

        It is `first` for one report, grows with their number, and never exceeds `epsilon`.

        Parameters
        ----------
        reports
            The number of reports about one value.

        Returns
        -------
        float
            Plain epsilon.

        Raises
        ------
        MechanismError
            If the number of reports is not a whole number from 0.
        """
        number = whole(reports, "reports", f"{type(self).__name__}.spent", at_least=0, error=MechanismError)
        if number <= 1:
            return self.first * number
        return min(self._told(number) * (1.0 + ROUNDING), self.epsilon)

    @abstractmethod
    def _told(self, reports: int) -> float:
        """Return the largest log-ratio of two or more reports."""

    def spent_over_values(self, values: int) -> float:
        """Return the epsilon of any number of reports while a person's value takes so many different values.

        It bounds what reports tell of two lives in which permanent responses change and come back at the same times.
        That a response changed, and when, is not hidden: with many reports anybody can see it.

        Parameters
        ----------
        values
            The number of different values.

        Returns
        -------
        float
            Plain epsilon.

        Raises
        ------
        MechanismError
            If the number of values is not a whole number from 0.
        """
        where = f"{type(self).__name__}.spent_over_values"
        number = whole(values, "values", where, at_least=0, error=MechanismError)
        return min(number, self._most_responses) * self.epsilon

    @property
    def _most_responses(self) -> int:
        """How many permanent responses a device can ever hold."""
        return len(self.domain)

    def device_marks(self, codes: Codes) -> Positions:
        """Return a number for each output that all outputs of one device about one value share; 0 where none shows."""
        return np.zeros(len(codes), dtype=np.int64)

    # -- drawing -------------------------------------------------------------------------------------

    def permanent(self, values: object, *, rng: Randomness = None) -> Array:
        """Return the permanent response of each user.

        Keep it on the device; it must never be sent. A device whose value changes uses `hubbub.client`, which knows
        what stays.

        Parameters
        ----------
        values
            Labels of the domain, one for each user.
        rng
            None for real reports; a NumPy generator or a seed to simulate.

        Returns
        -------
        numpy.ndarray
            One response for each user, in the form of outputs.

        Raises
        ------
        DomainError
            If a value is not in the domain.
        MechanismError
            If `rng` is not a source of randomness.
        """
        positions, words = self._positions(values, "permanent"), source_of(rng)
        kept = self.law.permanent.draw(positions, words) if words.secure else self.draw_permanent(positions, words)
        return self.output_space.decode(kept)

    def instantaneous(self, responses: object, *, rng: Randomness = None) -> Array:
        """Return one report for each permanent response, to be sent.

        Parameters
        ----------
        responses
            Permanent responses, as `permanent` returns them.
        rng
            None for real reports; a NumPy generator or a seed to simulate.

        Returns
        -------
        numpy.ndarray
            One output for each user.

        Raises
        ------
        OutputError
            If one is not a permanent response of this mechanism.
        MechanismError
            If `rng` is not a source of randomness.
        """
        codes, words = self.output_space.encode(responses), source_of(rng)
        sent = self.law.report(codes, words) if words.secure else self.draw_instantaneous(codes, words)
        return self.output_space.decode(sent)

    def draw(self, positions: Positions, source: RandomSource) -> Codes:
        """Draw the first report of people who have no permanent response yet."""
        return self.draw_instantaneous(self.draw_permanent(positions, source), source)

    def draw_permanent(self, positions: Positions, source: RandomSource) -> Codes:
        """Draw permanent responses, to simulate.

        Parameters
        ----------
        positions
            The positions of the values, one for each user.
        source
            Where randomness comes from.

        Returns
        -------
        numpy.ndarray
            Encoded responses.
        """
        return self.law.permanent.draw(positions, source)

    def draw_instantaneous(self, codes: Codes, source: RandomSource) -> Codes:
        """Draw one report from each permanent response, to simulate.

        Parameters
        ----------
        codes
            Encoded permanent responses.
        source
            Where randomness comes from.

        Returns
        -------
        numpy.ndarray
            Encoded outputs.
        """
        return self.law.report(codes, source)
