"""Survey designs for a sensitive question with two answers, in the parameters in which statisticians state them."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

import numpy as np

from hubbub.client import CROSSWISE_ANSWERS, SURVEY_DESIGNS, design_chances, epsilon_of_ratio, largest_chance_ratio
from hubbub.core.arrays import Array, Floats, as_array
from hubbub.core.errors import MechanismError, shorten
from hubbub.domains import Categories, Domain
from hubbub.mechanisms.base import Mechanism
from hubbub.mechanisms.parameters import Probability, check_domain, check_probability, check_ratio
from hubbub.sampling import TwoAnswerLaw


class SurveyDesign(Mechanism):
    """A question about membership in a sensitive group, answered in one of two ways.

    The first value of the domain is the sensitive one, "yes".
    """

    kind: ClassVar[str]  # in study files

    def _set(self, domain: Domain, *given: Probability) -> None:
        """Check the domain and the parameters, and keep the parameters as fractions."""
        name, (names, expected) = type(self).__name__, SURVEY_DESIGNS[self.kind]
        remedy = "list the sensitive value first, then the other: hubbub.Categories(['yes', 'no'])"
        check_domain(domain, Categories, name, remedy)
        if len(domain) != 2:
            what, got = "a survey design needs two values", f"{len(domain)} values"
            raise MechanismError(what, where=f"{name}(domain)", got=got, expected="Categories of two", remedy=remedy)
        object.__setattr__(self, "domain", domain)
        for parameter, value in zip(names, given, strict=True):
            object.__setattr__(self, parameter, check_probability(value, name, parameter))
        if self._chances is None:
            raise MechanismError(
                "these probabilities make no survey design",
                where=f"{name}({'=, '.join(names)}=)",
                got=shorten(given[0] if len(given) == 1 else given),
                expected=expected,
                remedy="state the probabilities of the device that picks the question",
            )
        check_ratio(largest_chance_ratio(self.chances), f"{name}({'=, '.join(names)}=)")

    @property
    def _chances(self) -> tuple[Fraction, Fraction] | None:
        return design_chances(self.kind, [getattr(self, name) for name in SURVEY_DESIGNS[self.kind][0]])

    @property
    def chances(self) -> tuple[Fraction, Fraction]:
        """P(the first output | value), exactly, for the sensitive value and for the other one."""
        chances = self._chances
        assert chances is not None  # noqa: S101  checked when it was built
        return chances

    @cached_property
    def epsilon(self) -> float:  # type: ignore[override]  # follows from the probabilities
        """The largest log-ratio, rounded up; infinite if only one of the values can give an output."""
        return epsilon_of_ratio(largest_chance_ratio(self.chances))

    @property
    def outputs(self) -> Array:
        """The values of the domain, the first as "yes", the second as "no"."""
        return self.domain.labels

    def matrix(self) -> Floats:
        """Return P(output | value): a row for each of the two values, a column for each answer."""
        return np.array([[float(chance), float(1 - chance)] for chance in self.chances])

    @cached_property
    def law(self) -> TwoAnswerLaw:
        """The two answers, exactly."""
        return TwoAnswerLaw(self.chances)


@dataclass(frozen=True)
class Warner(SurveyDesign):
    """Warner's design (1965): chance decides whether to ask for membership in A, or for not being in A.

    With probability p the question is "are you in A?", otherwise "are you not in A?"::

        P(yes | A) = p,   P(yes | not A) = 1 - p

    Guarantee: epsilon = ``|log(p / (1 - p))|``, plain.

    Parameters
    ----------
    domain
        Categories of two values, the sensitive one (A) first. Outputs are the values: the first one means yes.
    p
        The probability of the question about A: between 0 and 1, and not 1/2. It is taken as it is written: 0.7 is
        7/10, and Fraction(1, 6) or "1/6" is a sixth.

    Raises
    ------
    MechanismError
        If the domain is not `Categories` of two values, or p is not between 0 and 1, or is 1/2.

    Examples
    --------
    >>> import hubbub as hb
    >>> hb.Warner(hb.Categories(["yes", "no"]), p=0.7).matrix()
    array([[0.7, 0.3],
           [0.3, 0.7]])
    """

    domain: Domain
    p: Fraction
    kind: ClassVar[str] = "warner"

    def __init__(self, domain: Domain, p: Probability) -> None:
        self._set(domain, p)


@dataclass(frozen=True)
class ForcedResponse(SurveyDesign):
    """Forced response (Boruch 1971; Fox and Tracy 1986): chance asks for a yes, for a no, or for the truth.

    ::

        P(yes | A) = 1 - p_no,   P(yes | not A) = p_yes

    Guarantee: epsilon = log max((1 - p_no) / p_yes, (1 - p_yes) / p_no), plain; infinite if either is 0.

    Parameters
    ----------
    domain
        Categories of two values, the sensitive one (A) first. Outputs are the values: the first one means yes.
    p_yes, p_no
        The probabilities of having to say yes, and of having to say no, with a sum below 1. They are taken as they
        are written: "1/6" is a sixth.

    Raises
    ------
    MechanismError
        If the domain is not `Categories` of two values, or the probabilities do not have a sum below 1.

    Examples
    --------
    >>> import hubbub as hb
    >>> drugs = hb.Categories(["yes", "no"])
    >>> hb.ForcedResponse(drugs, p_yes="1/6", p_no="1/6").epsilon
    1.6094379124341005
    """

    domain: Domain
    p_yes: Fraction
    p_no: Fraction
    kind: ClassVar[str] = "forced-response"

    def __init__(self, domain: Domain, p_yes: Probability, p_no: Probability) -> None:
        self._set(domain, p_yes, p_no)


@dataclass(frozen=True)
class UnrelatedQuestion(SurveyDesign):
    """The unrelated question (Greenberg et al. 1969): chance decides between the sensitive and an innocuous question.

    ::

        P(yes | A) = p + (1 - p) prevalence,   P(yes | not A) = (1 - p) prevalence

    If the prevalence is not known, ask two samples with different p: see `unrelated_prevalence`.

    Guarantee: epsilon = the larger of log P(yes | A) / P(yes | not A) and log P(no | not A) / P(no | A), plain;
    infinite if the prevalence is 0 or 1.

    Parameters
    ----------
    domain
        Categories of two values, the sensitive one (A) first. Outputs are the values: the first one means yes.
    p
        The probability of the sensitive question, between 0 and 1.
    prevalence
        The known share of people who say yes to the innocuous question, whether they are in A or not. Both are taken
        as they are written: 0.7 is 7/10.

    Raises
    ------
    MechanismError
        If the domain is not `Categories` of two values, p is not between 0 and 1, or the prevalence not a probability.

    Examples
    --------
    >>> import hubbub as hb
    >>> drugs = hb.Categories(["yes", "no"])
    >>> hb.UnrelatedQuestion(drugs, p=0.5, prevalence=0.2).matrix()
    array([[0.6, 0.4],
           [0.1, 0.9]])
    """

    domain: Domain
    p: Fraction
    prevalence: Fraction
    kind: ClassVar[str] = "unrelated-question"

    def __init__(self, domain: Domain, p: Probability, prevalence: Probability) -> None:
        self._set(domain, p, prevalence)


@dataclass(frozen=True)
class CrosswiseModel(SurveyDesign):
    """The crosswise model (Yu, Tian and Tang 2008): whether the answers to two questions are the same.

    One question is sensitive, the other one innocuous. With p the known prevalence of the innocuous attribute, which is
    independent of A::

        P(same | A) = p,   P(same | not A) = 1 - p

    Guarantee: epsilon = ``|log(p / (1 - p))|``, plain.

    Parameters
    ----------
    domain
        Categories of two values, the sensitive one (A) first. Outputs are "same" and "different".
    p
        The prevalence of the innocuous attribute: between 0 and 1, and not 1/2. It is taken as it is written: "1/6"
        is a sixth.

    Raises
    ------
    MechanismError
        If the domain is not `Categories` of two values, or p is not between 0 and 1, or is 1/2.

    Examples
    --------
    >>> import hubbub as hb
    >>> hb.CrosswiseModel(hb.Categories(["yes", "no"]), p=0.25).outputs.tolist()
    ['same', 'different']
    """

    domain: Domain
    p: Fraction
    kind: ClassVar[str] = "crosswise-model"

    def __init__(self, domain: Domain, p: Probability) -> None:
        self._set(domain, p)

    @property
    def outputs(self) -> Array:
        """Same and different."""
        return as_array(list(CROSSWISE_ANSWERS))
