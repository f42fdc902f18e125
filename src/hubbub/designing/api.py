"""`design`: the mechanism that is best for a goal, under a privacy policy."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import numpy as np

from hubbub.core import validation
from hubbub.core.arrays import Floats
from hubbub.core.progress import Progress, stepwise
from hubbub.designing.blahut_arimoto import solve_rate_distortion
from hubbub.designing.column_costs import ServiceLoss, by_answer
from hubbub.designing.column_generation import optimal_columns
from hubbub.designing.design_question import question_from
from hubbub.designing.privacy_policy import ROUNDING_ROOM
from hubbub.designing.result import Design, design_of
from hubbub.designing.saved_columns import load_columns, save_columns
from hubbub.designing.service_loss_program import least_service_loss
from hubbub.designing.validation import RATE_DISTORTION, SERVICE_LOSS, check_path
from hubbub.designing.whole_mechanism import whole_columns
from hubbub.domains import Domain
from hubbub.sampling import Randomness

DEFAULT_USERS = 10_000


@stepwise
def design(
    domain: Domain,
    epsilon: float | None,
    *,
    privacy: object = "plain",
    goal: str = "risk",
    prior: object = None,
    users: int = DEFAULT_USERS,
    outputs: int | None = None,
    of: object = None,
    loss: object = None,
    max_loss: float | None = None,
    level: float = 0.95,
    rng: Randomness = None,
    path: str | Path | None = None,
) -> Generator[Progress, None, Design]:
    """Compute the mechanism that is best for a goal, among all mechanisms with this privacy.

    ``design.steps(...)`` yields progress.

    Parameters
    ----------
    domain : Domain
        The values: 2 to 400 for goals about losses, else to 100 (40 where privacy is plain).
    epsilon : float or None
        The privacy of one report: plain, or per unit of distance; None where every pair has its own bound.
    privacy : {"plain", "metric"}, list of pairs, or mapping, default "plain"
        Which values must be hard to tell apart: all of them alike ("plain"), the less the farther they are ("metric"),
        the pairs of a list [(value, other), ...], or pairs with bounds of their own {(value, other): epsilon}. Others
        follow by chains of pairs.
    goal : str, default "risk"
        What is to be small: the error of the estimate, given what distributions are plausible ("risk"); the total
        variance of unbiased shares ("variance"); the width of the interval of some shares ("width", with `of`); the
        expected loss of a single user ("service-loss"), or the information that a report gives away at such a loss
        ("rate-distortion"). With "information" the information is to be large.
    prior : str, array, mapping, Estimate or list of these, optional
        What is known of the crowd's distribution, as `truth` of `plan`; left out, equal shares. For "risk" a list of
        distributions stands for all that are plausible; otherwise the families that `auto` tries do, around the prior.
    users : int, default 10,000
        How many users will report. With more of them, less is left to what is plausible.
    outputs : int, optional
        The most outputs that the mechanism may have; what that costs is told.
    of : value, list, mapping, or list of these, optional
        For "width": what the intervals are about, as in `interval`; a list of lists or mappings for several.
    loss : array, optional
        What a user of each value (row) loses by each answer (column); left out, the distance.
    max_loss : float, optional
        The largest expected loss of a user: the best statistics at that loss.
    level : float, default 0.95
        For "width": the level of the intervals.
    rng : int or numpy.random.Generator, optional
        Where searches start; left out, a fixed seed.
    path : str or Path, optional
        A file that keeps what was found so far: called again after an interruption, the search continues.

    Returns
    -------
    Design
        The mechanism, how near the optimum it is, and how it compares with all built-in mechanisms.

    Raises
    ------
    SettingError
        If an argument has a wrong value, two have no meaning together, or the loss is impossible.
    DomainError
        If the domain has too few or too many values, or a pair names a value outside it.

    Examples
    --------
    On eight values of a line, the truncated geometric mechanism has four times the variance of the best one:

    >>> import hubbub as hb
    >>> steps = hb.Integers(0, 7)
    >>> best = hb.design(steps, 0.25, privacy="metric", goal="variance")
    >>> geometric = best.built_ins["truncated-geometric"]
    >>> print(f"{geometric / best.value:.1f} times the variance; {best.status.partition(':')[0]}")
    3.9 times the variance; certified

    The best that single users can be served, if their places are hard to tell apart:

    >>> least = hb.design(steps, 0.5, privacy="metric", goal="service-loss")
    >>> print(f"{least.value:.3f} steps; {least.status.partition(':')[0]}")
    1.244 steps; certified
    """
    generator, seed = validation.generator(rng, "design")
    question = question_from(
        domain,
        epsilon,
        privacy=privacy,
        goal=goal,
        prior=prior,
        users=users,
        outputs=outputs,
        of=of,
        loss=loss,
        max_loss=max_loss,
        level=level,
        seed=seed,
    )
    file = check_path(path, question.goal)
    if question.goal == SERVICE_LOSS:
        bounds = question.policy.bounds
        least = yield from least_service_loss.steps(bounds, question.centre, question.losses)
        matrix, bound = least.matrix, least.lower_bound
        if not question.policy.contains(matrix.T, tolerance=-ROUNDING_ROOM / 100):  # rounding could break a bound
            least = yield from least_service_loss.steps(bounds * (1 - ROUNDING_ROOM), question.centre, question.losses)
            matrix = least.matrix
        columns = by_answer(matrix.T, ServiceLoss(question.centre, question.losses))
        return design_of(question, columns, question.value_of(columns), bound, complete=True)
    if question.goal == RATE_DISTORTION:
        beta = question.policy.epsilon / 2
        rate = yield from solve_rate_distortion.steps(question.centre, question.losses, beta)
        return design_of(question, rate.channel.T, rate.information, rate.information - rate.gap, complete=True)
    program, start = yield from question.program()
    key = question.content_key
    known = None if file is None else load_columns(file, key, question.policy)
    start = start if known is None else np.vstack([start, known])

    def keep(columns: Floats, _: Floats) -> None:
        if file is not None:
            save_columns(file, key, columns)

    found = yield from optimal_columns(program, start, generator, kept=keep)
    columns = whole_columns(question, found, generator)
    value = question.value_of(columns)
    return design_of(question, columns, value, found.bound, complete=found.complete, unmerged=found.value)
