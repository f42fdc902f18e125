"""The front door: `estimate` with its table of methods, `log_likelihood` and `optimality_gap`."""

from __future__ import annotations

from collections.abc import Callable, Generator

from hubbub.core import validation
from hubbub.core.errors import EstimateError
from hubbub.core.progress import Progress, stepwise
from hubbub.core.remembering import Remembered
from hubbub.core.threads import limit_threads_per_step
from hubbub.estimators import own_estimators
from hubbub.estimators.auto.api import auto
from hubbub.estimators.base import Method, evaluate
from hubbub.estimators.em import ems, ibu
from hubbub.estimators.matrix_inversion import INVERSIONS
from hubbub.estimators.method_settings import MethodSettings, check_scattered
from hubbub.estimators.mle import mle
from hubbub.estimators.result import Estimate
from hubbub.estimators.validation import check_any_reports
from hubbub.likelihood import Evaluation, ScatteredReports
from hubbub.reports import Reports
from hubbub.reports.filter_sums import refuse_filter_sums
from hubbub.sampling import Randomness
from hubbub.solvers import SolverProgress

METHODS = {
    "auto": Method(auto, frozenset({"max_iter", "rng"})),
    "ibu": Method(ibu, frozenset({"start", "delta", "max_iter", "history"})),
    "ems": Method(ems, frozenset({"start", "delta", "max_iter", "history"})),
    "mle": Method(mle, frozenset({"start", "tol", "max_iter", "history", "solver"})),
    **INVERSIONS,
}
OF_SUMS = ("mle", "ibu", "ems")  # for which sums of the bits of filters will do


DEFAULT_ESTIMATES: Remembered[Estimate] = Remembered()  # the last one of each reports, by "auto" as it is by default


@stepwise
def estimate(
    reports: Reports | ScatteredReports,
    method: str = "auto",
    *,
    start: object = None,
    tol: float | None = None,
    delta: float | None = None,
    max_iter: int | None = None,
    rng: Randomness = None,
    history: bool = False,
    solver: str | None = None,
    **own: object,
) -> Generator[Progress | SolverProgress, None, Estimate]:
    """Estimate the distribution of the users' true values from their reports.

    The same reports give the same answer. A keyword that the method does not use is refused.
    ``estimate.steps(...)`` takes the same arguments and yields progress on the way to the result.

    Parameters
    ----------
    reports : Reports or ClusterReports
        What the users sent. Reports that the workers of a cluster hold are taken by ``"ibu"``, ``"ems"``, and ``"mle"``
        by accelerated EM: these send theta to the reports and get sums of the domain's size back.
    method : str, default "auto"
        How to estimate:

        * ``"auto"``: maximum likelihood, with as much caution as the reports ask for. Categories are shrunk towards
          equal shares or empirical Bayes, two or three values not at all. On a line or a map many candidates (EM
          stopped early or late, smooth curves, flat pieces with jumps, ...) predict held-out reports and are averaged
          by how well they predict and how stable they are; ``settings["selection"]`` holds all of them and can be
          plotted. ``status`` says in one sentence what the answer is.
        * ``"ibu"``: the paper's Algorithm 1, EM from `start` until the total log-likelihood changes by less than
          `delta`. Stopped early it is smooth and often close to the truth; it is not the maximum.
        * ``"ems"``: EM with smoothing after each update (on lines and maps), until the change is below `delta`.
        * ``"mle"``: the maximum of the likelihood, to a certified gap of at most `tol` (see `optimality_gap`).
        * ``"inv"``: matrix inversion, of several mechanisms by weighted least squares. It is unbiased, and so seldom a
          distribution: shares may be negative or have another sum than 1.
        * ``"inv-n"``, ``"inv-p"``: the same, cut at 0 and normalised, or projected on the simplex.
        * ``"norm-sub"``, ``"norm-cut"``, ``"base-cut"``: the same, with what Wang and others (2020) do to make it a
          distribution: as ``"inv-p"``; small shares set to 0 until the sum is 1; only shares that are significantly
          above 0 kept.

        Also a method of your own: see `register_estimator`.
    start : "uniform", "empirical" or a distribution, default "uniform"
        Where ``"ibu"``, ``"ems"`` and ``"mle"`` start; ``"empirical"`` is the shares of the outputs, where these are
        values. A distribution must give every value a positive probability.
    tol : float, default 1e-9
        The gap, in nats per user, at which ``"mle"`` stops.
    delta : float, default 0.1 for "ibu" and 0.001 for "ems"
        The change of the total log-likelihood, in nats, at which these methods stop.
    max_iter : int, optional
        The limit of iterations; for ``"auto"`` the limit of EM updates.
    rng : int or numpy.random.Generator, optional
        How ``"auto"`` deals users into folds; left out, it is a fixed, recorded seed.
    history : bool, default False
        Whether to keep all iterates, in ``estimate.history``.
    solver : str, optional
        How ``"mle"`` finds the maximum: a ``"closed form"`` where there is one (k-RR; one pattern), ``"interior
        point"``, ``"support generation"`` (few values at a time, all priced) or ``"accelerated em"``. Left out, the
        structure and size of the problem decide; ``estimate.settings`` names the choice.
    **own
        The keywords of a method of your own.

    Returns
    -------
    Estimate
        The distribution over the domain, with its status and certificate.

    Raises
    ------
    SettingError
        If a keyword has a wrong value or is not used by the method.
    ReportsError
        If the method needs more than sums of bits of Bloom filters.
    EstimateError
        If `reports` are not reports, or the method cannot be applied to them, as inversion to reports that cannot tell
        all values apart; or if an estimator of your own returns no distribution.

    Examples
    --------
    >>> import hubbub as hb
    >>> coin = hb.RandomizedResponse(hb.Categories(["yes", "no"]), epsilon=1.0)
    >>> reports = hb.Reports.from_counts(coin, {"yes": 600, "no": 400})
    >>> hb.estimate(reports).probabilities.round(4)
    array([0.7164, 0.2836])

    Another method, and how it ended:

    >>> hb.estimate(reports, method="ibu", delta=0.001).status
    'stopped by the delta rule; gap 5.2e-04'
    """
    check_any_reports(reports, "estimate")
    chosen = find_method(method, "estimate")
    settings = MethodSettings(start, tol, delta, max_iter, rng, history, solver, own)
    settings.refuse_unused(chosen.keywords, method)
    if isinstance(reports, Reports) and method not in OF_SUMS:
        refuse_filter_sums(reports.blocks, f"estimate(method={method!r})")
    check_scattered(reports, method, settings)
    patterns = 1 if isinstance(reports, ScatteredReports) else reports.weights.size
    run = limit_threads_per_step(chosen.run(reports, settings), patterns * len(reports.domain))
    return run if method != "auto" or settings != MethodSettings() else _remembered(run, reports)


def find_method(name: str, where: str) -> Method:
    """Return the method of a name: hubbub's, a registered one, or one that an installed package offers."""
    return own_estimators.method_named(name, METHODS, where)


def register_estimator(name: str, function: Callable[..., object]) -> None:
    """Register an estimator of your own: a method of `estimate` and of all that take a method, in this process.

    An installed package needs no call: its entry points of the group ``hubbub.estimators`` are found by their names,
    also at the terminal. hubbub computes the log-likelihood, the gap and the status of what the function returns.

    Parameters
    ----------
    name : str
        What the method is called: lower-case words with hyphens, none of hubbub's own.
    function : callable
        Takes `Reports` and returns probabilities in the order of ``reports.domain.labels``, or an estimate. Its
        keyword-only arguments become keywords of ``estimate`` for this method.

    Raises
    ------
    SettingError
        If the name is taken or has another form, or the function is none of reports.

    Examples
    --------
    >>> import hubbub as hb
    >>> def towards_uniform(reports, *, towards=0.5):
    ...     shares = hb.estimate(reports, "inv-p").probabilities
    ...     return (1 - towards) * shares + towards / len(shares)
    >>> hb.register_estimator("towards-uniform", towards_uniform)
    >>> coin = hb.RandomizedResponse(hb.Categories(["yes", "no"]), epsilon=1.0)
    >>> reports = hb.Reports.from_counts(coin, {"yes": 600, "no": 400})
    >>> hb.estimate(reports, method="towards-uniform", towards=0.2).probabilities.round(4)
    array([0.6731, 0.3269])
    """
    own_estimators.register(name, function, METHODS)


def _remembered(
    run: Generator[Progress | SolverProgress, None, Estimate], reports: Reports | ScatteredReports
) -> Generator[Progress | SolverProgress, None, Estimate]:
    """Remember the estimate, which intervals and verdicts of these reports will be about, unless they are told."""
    return DEFAULT_ESTIMATES.put(reports, (yield from run))


def log_likelihood(reports: Reports | ScatteredReports, probabilities: object) -> float:
    r"""Return the total log-likelihood of a distribution: how well it explains the reports.

    This is :math:`\sum_i \log f_i` over the users, where :math:`f_i` is the probability that a user whose value has
    this distribution sends the report of user i.

    Parameters
    ----------
    reports : Reports or ClusterReports
        What the users sent.
    probabilities : array of float
        A distribution over the domain, in the order of ``domain.labels``.

    Returns
    -------
    float
        The sum over users, in nats; -inf if a report has probability 0.

    Raises
    ------
    EstimateError
        If `reports` are not reports, or `probabilities` are not a distribution over their domain.

    Examples
    --------
    >>> import hubbub as hb
    >>> coin = hb.RandomizedResponse(hb.Categories(["yes", "no"]), epsilon=1.0)
    >>> reports = hb.Reports.from_counts(coin, {"yes": 600, "no": 400})
    >>> round(hb.log_likelihood(reports, [0.5, 0.5]), 2), round(hb.log_likelihood(reports, [0.7, 0.3]), 2)
    (-693.15, -673.13)
    """
    return _evaluation(reports, probabilities, "log_likelihood").log_likelihood


def optimality_gap(reports: Reports | ScatteredReports, probabilities: object) -> float:
    r"""Return a certified bound on how far the mean log-likelihood of a distribution is below its maximum.

    The bound is :math:`\log \max_x \frac{1}{n} \sum_i g_{xi} / f_i`, where :math:`g_{xi}` is the probability that
    value x sends the report of user i, and :math:`f_i` the average of these over the distribution. It holds because the
    log-likelihood is concave, and is computed at the distribution alone: whoever doubts an estimate can check it.

    Parameters
    ----------
    reports : Reports or ClusterReports
        What the users sent.
    probabilities : array of float
        A distribution over the domain, in the order of ``domain.labels``.

    Returns
    -------
    float
        The bound in nats per user: 0 at a maximum, inf where a report has probability 0.

    Raises
    ------
    EstimateError
        If `reports` are not reports, or `probabilities` are not a distribution over their domain.

    Examples
    --------
    >>> import hubbub as hb
    >>> coin = hb.RandomizedResponse(hb.Categories(["yes", "no"]), epsilon=1.0)
    >>> reports = hb.Reports.from_counts(coin, {"yes": 600, "no": 400})
    >>> round(hb.optimality_gap(reports, [0.5, 0.5]), 4)
    0.0884
    >>> hb.optimality_gap(reports, hb.estimate(reports, "mle").probabilities) < 1e-9
    True
    """
    return _evaluation(reports, probabilities, "optimality_gap").gap


def _evaluation(reports: Reports | ScatteredReports, probabilities: object, where: str) -> Evaluation:
    check_any_reports(reports, where)
    theta = validation.distribution(probabilities, len(reports.domain), f"{where}(probabilities)", error=EstimateError)
    return evaluate(reports, theta)
