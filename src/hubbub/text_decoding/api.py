"""`decode_rappor`: shares of candidate texts and of the rest, from noisy Bloom filters."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy import special

from hubbub.core import validation
from hubbub.core.arrays import Floats, frozen
from hubbub.core.errors import EstimateError, shorten
from hubbub.estimators import estimate
from hubbub.estimators.validation import check_reports
from hubbub.goodness_of_fit import fit_test
from hubbub.mechanisms.bloom_rappor import BloomRappor
from hubbub.reports import Block, FilterSums, Joint, Reports, Singles
from hubbub.text_decoding.cohort_scores import share_errors
from hubbub.text_decoding.lasso import BitCounts, lasso_shares
from hubbub.text_decoding.result import TextShares

METHODS = ("mle", "lasso")
REST = "(not on the list)"


def decode_rappor(
    reports: Reports, *, method: str = "mle", level: float = 0.95, fit_level: float = 0.01, tol: float = 1e-7
) -> TextShares:
    """Return the shares of candidate texts, and of texts that are not on the list.

    By maximum likelihood, the rest is one more value: a text with random hashes, which has other bits in each cohort.
    The intervals of shares are the wider of two: by the curvature of the likelihood, and by how the scores of cohorts
    scatter, which holds where a few unknown texts make up the rest. By ``"lasso"``, the method of google/rappor, the
    rest is what candidates leave of 1.

    Parameters
    ----------
    reports : Reports
        Reports of one `BloomRappor`, or sums of their bits.
    method : {"mle", "lasso"}
        Maximum likelihood; or LASSO on the bits' counts, and least squares on what it selects.
    level : float, default 0.95
        The level of each interval.
    fit_level : float, default 0.01
        The rate of false alarms of the test whether the list explains the reports.
    tol : float, default 1e-7
        The gap at which maximum likelihood stops, in nats per user.

    Returns
    -------
    TextShares
        With `shares`, their intervals, `rest` and `fit`; `to_frame()` and `explain()` show them.

    Raises
    ------
    EstimateError
        If the reports are not of one `BloomRappor`, or `method` is unknown.
    SettingError
        If a level is not between 0 and 1.

    Examples
    --------
    >>> import hubbub as hb
    >>> pages = hb.Categories(["example.org", "example.com", "example.net"])
    >>> start = hb.BloomRappor(pages, cohorts=16, bits=16, hashes=2, f=0.25, p=0.25, q=0.75, rest="example.net")
    >>> sent = start.privatize(["example.org"] * 3000 + ["example.net"] * 1000, rng=1)  # example.net: any other text
    >>> decoded = hb.decode_rappor(hb.Reports.from_outputs(start, sent))
    >>> round(decoded.rest, 2), decoded.candidates
    (0.25, ('example.org', 'example.com'))
    """
    check_reports(reports, "decode_rappor", filter_sums=True)
    if method not in METHODS:
        raise EstimateError(
            "no such method",
            where="decode_rappor(method=)",
            got=shorten(method),
            expected=" or ".join(map(repr, METHODS)),
            remedy="use maximum likelihood, or LASSO to compare with google/rappor",
        )
    checked = validation.share(level, "level", "decode_rappor", expected="a level between 0 and 1, such as 0.95")
    mechanism = _mechanism_of(reports)
    extended = mechanism if mechanism.rest is not None else mechanism.with_rest(_new_label(mechanism))
    whole = Reports(extended.domain, tuple(_about(block, extended) for block in reports.blocks))
    labels = extended.domain.labels.tolist()
    positions = np.delete(np.arange(len(labels)), extended.rest_position)
    candidates = tuple(labels[place] for place in positions)
    fit = fit_test(whole.restrict(list(candidates)), fit_level)
    blank = TextShares(candidates, *(np.empty(0),) * 4, 0.0, 0.0, 1.0, None, fit, method, checked, reports.users)  # type: ignore[arg-type]
    if method == "lasso":
        return _by_lasso(blank, extended, whole)
    theta = estimate(whole, method="mle", tol=tol).probabilities
    errors = share_errors(whole.blocks, extended, theta)
    low, high = errors.interval(checked)
    least, _ = errors.interval(1.0 - (1.0 - checked) / len(candidates))
    rest = extended.rest_position
    return replace(
        blank,
        shares=frozen(theta[positions]),
        low=frozen(low[positions]),
        high=frozen(high[positions]),
        detected=frozen(least[positions] > 0.0),
        rest=float(theta[rest]),
        rest_low=float(low[rest]),
        rest_high=float(high[rest]),
    )


def _by_lasso(blank: TextShares, mechanism: BloomRappor, reports: Reports) -> TextShares:
    """Return what LASSO says: intervals by least squares, cut at 0 and 1."""
    positions = np.delete(np.arange(len(mechanism.domain)), mechanism.rest_position)
    found = lasso_shares(mechanism, positions, _bit_counts(mechanism, reports))
    reach = float(special.ndtri(0.5 + blank.level / 2))
    half = np.nan_to_num(reach * found.errors)
    rest = max(0.0, 1.0 - float(found.shares.sum()))
    spread = 1.0 if np.isnan(found.error_of_sum) else reach * found.error_of_sum
    return replace(
        blank,
        shares=frozen(found.shares),
        low=frozen(np.clip(found.shares - half, 0.0, 1.0)),
        high=frozen(np.clip(found.shares + half, 0.0, 1.0)),
        detected=frozen(found.p_values < (1.0 - blank.level) / positions.size),
        p_values=frozen(found.p_values),
        rest=rest,
        rest_low=max(0.0, rest - spread),
        rest_high=min(1.0, rest + spread),
    )


def _mechanism_of(reports: Reports) -> BloomRappor:
    mechanisms = reports.mechanisms
    if len(mechanisms) == 1 and isinstance(mechanisms[0], BloomRappor):
        return mechanisms[0]
    raise EstimateError(
        "these are not reports of one BloomRappor",
        where="decode_rappor(reports)",
        got=shorten([type(mechanism).__name__ for mechanism in mechanisms]),
        expected="reports with Bloom filters, of one mechanism",
        remedy="use estimate, which takes reports of any mechanisms; read google/rappor's files by read_rappor",
    )


def _new_label(mechanism: BloomRappor) -> str:
    label, taken = REST, {str(label) for label in mechanism.domain.labels}
    while label in taken:
        label += "'"
    return label


def _about(block: Block, mechanism: BloomRappor) -> Block:
    """Return the same reports, read by a mechanism with more values."""
    if isinstance(block, Singles | FilterSums):
        return replace(block, mechanism=mechanism)
    assert isinstance(block, Joint)  # noqa: S101  # reports of filters are of these three forms
    return replace(block, sources=tuple((mechanism, codes) for _, codes in block.sources))


def _bit_counts(mechanism: BloomRappor, reports: Reports) -> BitCounts:
    """Return the shares of ones; of several reports of a user, each counts."""
    ones, senders = np.zeros((mechanism.cohorts, mechanism.bits)), np.zeros(mechanism.cohorts)
    for block in reports.blocks:
        if isinstance(block, FilterSums):
            own = block.ones.astype(np.float64), block.senders.astype(np.float64)
        else:
            own = mechanism.ones_by_cohort(*_sent(block))
        ones, senders = ones + own[0], senders + own[1]
    cohorts = np.flatnonzero(senders)
    return BitCounts(ones[cohorts] / senders[cohorts, None], senders[cohorts], cohorts)


def _sent(block: Block) -> tuple[Floats, Floats]:
    if isinstance(block, Singles):
        return block.codes, block.weights
    assert isinstance(block, Joint)  # noqa: S101  # see _about
    return block.sources[0][1], np.asarray(block.weights @ block.repeats)
