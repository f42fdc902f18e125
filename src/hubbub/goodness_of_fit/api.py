"""`fit_test`: a test of whether any distribution over the domain explains the reports."""

from __future__ import annotations

import zlib
from collections.abc import Generator

import numpy as np

from hubbub.core import validation
from hubbub.core.progress import Progress, stepwise
from hubbub.estimators.validation import check_reports
from hubbub.goodness_of_fit.evidence import Evidence, collect_evidence
from hubbub.goodness_of_fit.partial_tests import MAX_SHOWN_MISFITS, PartialTest, law_test, repeats_test, shares_test
from hubbub.goodness_of_fit.reference_distribution import MAX_DRAWS
from hubbub.goodness_of_fit.result import FitTest
from hubbub.reports import Reports
from hubbub.sampling import Randomness

DEFAULT_LEVEL = 0.01


@stepwise
def fit_test(
    reports: Reports, level: float = DEFAULT_LEVEL, *, rng: Randomness = None
) -> Generator[Progress, None, FitTest]:
    """Test whether any distribution over the domain explains the reports, under the mechanisms they name.

    A small p-value says that the model is wrong: another epsilon or mechanism than the study's, made-up reports,
    reports counted twice, or users of one mechanism who differ from those of another. A large one does not say that it
    is right: what an honest population could have sent cannot be distinguished from one (`reason` says what remains
    undetected).

    The parts are the shares of all outputs (of pairs of outputs if users sent several; of those with the same
    attributes where reports lack some), the number of ones in unary reports and the size of hashed reports' sets, whose
    laws are the same for all values, which attribute `SampleOne` sends and which hash a sketch, the bits that two
    reports of a user share if devices keep a permanent response, and repeated reports or seeds. `p_value` is the
    smallest of theirs, times their number.

    Parameters
    ----------
    reports : Reports
        The reports to test.
    level : float, default 0.01
        The rate of false alarms.
    rng : numpy.random.Generator or int, optional
        The source of randomness, or a seed. By default the same reports give the same answer.

    Returns
    -------
    FitTest
        With `p_value`, `rejected`, `reason`, `worst` and `explain()`.

    Raises
    ------
    SettingError
        If `level` is not between 0 and 1, or `rng` is not a source of randomness.
    EstimateError
        If `reports` are not reports in this process.

    Examples
    --------
    >>> import hubbub as hb
    >>> coin = hb.RandomizedResponse(hb.Categories(["yes", "no"]), epsilon=1.0)
    >>> hb.fit_test(hb.Reports.from_counts(coin, {"yes": 950, "no": 50})).rejected  # at most 73% can say yes
    True
    """
    check_reports(reports, "fit_test", filter_sums=True)
    reports = reports.unweighted  # whoever was sampled: what they sent comes from some distribution
    level = validation.share(
        level, "level", "fit_test", expected="a rate of false alarms between 0 and 1, such as 0.01"
    )
    generator, seed = validation.generator(rng, "fit_test")
    if isinstance(seed, int):  # with one seed for all reports, the same users would be drawn from every study
        generator = np.random.default_rng([seed, zlib.crc32(reports.weights.tobytes())])
    return _fit_test(reports, level, generator, seed)


def _fit_test(
    reports: Reports, level: float, rng: np.random.Generator, seed: int | str
) -> Generator[Progress, None, FitTest]:
    yield Progress(0, MAX_DRAWS, "counting outputs")
    evidence = collect_evidence(reports, rng)
    tests: list[PartialTest] = [test for law in evidence.laws if (test := law_test(law)) is not None]
    tests += [repeats_test(repeats) for repeats in evidence.repeats]
    fits_anything = len(evidence.tables) == 1 and evidence.tables[0].explains_anything
    if evidence.tables and not fits_anything:
        shares = yield from shares_test(evidence.tables, rng)
        tests += [] if shares is None else [shares]
    if not tests:
        reason = _why_untestable(evidence, fits_anything=fits_anything)
        return FitTest(False, None, level, False, reason, (), (), seed)
    parts = tuple(test.part for test in tests)
    misfits = sorted((misfit for test in tests for misfit in test.misfits), key=lambda misfit: -abs(misfit.residual))
    p_value = min(1.0, len(parts) * min(part.p_value for part in parts))
    worst = tuple(misfits[:MAX_SHOWN_MISFITS])
    return FitTest(True, p_value, level, p_value <= level, _undetectable(evidence), parts, worst, seed)


def _undetectable(evidence: Evidence) -> str:
    """Return what no test of these reports could detect."""
    limits = [
        "this test cannot detect users who run the mechanism on a false value, or any other distribution of outputs "
        "that honest users could produce"
    ]
    if any(law.noun == "ones" for law in evidence.laws):
        limits.append("made-up reports with a plausible number of ones")
    if any(law.noun == "values in the set" for law in evidence.laws):
        limits.append("almost all made-up reports with fresh seeds and the bucket of one value")
    return "; ".join([*limits, *evidence.limits])


def _why_untestable(evidence: Evidence, *, fits_anything: bool) -> str:
    if fits_anything:
        return "; ".join(["the channel can explain any reports", *evidence.limits])
    too_few = ["there are too few users: no two cells would hold five of them"] if evidence.tables else []
    return "; ".join([*too_few, *evidence.limits])
