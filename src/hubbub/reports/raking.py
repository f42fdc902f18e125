"""Raking: survey weights adjusted until the sample has the known margins of the population."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from hubbub.core.arrays import Floats, Positions, as_array, frozen
from hubbub.core.errors import ReportsError, SettingError, shorten
from hubbub.reports.survey_weights import check_survey

MAX_ROUNDS = 1_000
MAX_MISMATCH = 1e-10  # of a margin, relative to its total


def rake(weights: object, columns: Mapping[str, object], margins: Mapping[str, Mapping[object, float]]) -> Floats:
    """Adjust survey weights to known margins of the population, by raking (iterative proportional fitting).

    One margin alone is post-stratification. Each round multiplies the weights of a label by what brings their sum to
    its total, margin after margin, until all totals are met. Intervals take the weights as given: the precision that
    known margins add is not counted, which makes intervals longer rather than shorter.

    Parameters
    ----------
    weights : array
        The weight of each user before raking; an array of ones where there are none.
    columns : mapping from names to arrays
        What is known of each user: ``{"sex": ["f", "m", ...], "region": [...]}``.
    margins : mapping from names to mappings
        How many people of the population have each label, or which share of them:
        ``{"sex": {"f": 0.51, "m": 0.49}, "region": {...}}``. All margins must have the same total.

    Returns
    -------
    array
        The new weights, which add up to the margins' total: the `weights` of `Reports.from_outputs`.

    Raises
    ------
    SettingError
        If there are no margins, their totals differ, a margin has no column, or a column and its margin do not have the
        same labels.
    ReportsError
        If a weight is not a positive number, or no weights meet all margins.

    Examples
    --------
    >>> import hubbub as hb
    >>> weights = hb.rake([1, 1, 1, 1], {"sex": ["f", "f", "f", "m"]}, {"sex": {"f": 0.5, "m": 0.5}})
    >>> weights.round(3).tolist()
    [0.167, 0.167, 0.167, 0.5]
    """
    current = np.array(as_array(weights), dtype=np.float64)
    current, _, _ = check_survey(current.size, "rake", weights=current, strata=None, clusters=None)
    tables = [_table(name, columns, margin, current.size) for name, margin in margins.items()]
    if not tables:
        raise SettingError(
            "there is nothing to rake to",
            where="rake(margins)",
            got="no margins",
            expected="at least one, such as {'sex': {'f': 0.51, 'm': 0.49}}",
            remedy="pass the known totals of the population",
        )
    totals = [float(targets.sum()) for _, targets in tables]
    if not np.allclose(totals, totals[0], rtol=1e-6):
        raise SettingError(
            "the margins do not add up to the same total",
            where="rake(margins)",
            got=", ".join(f"{name}: {total:g}" for name, total in zip(margins, totals, strict=True)),
            expected="margins of one population",
            remedy="use shares that add up to 1 in each margin, or totals of the same year",
        )
    for _ in range(MAX_ROUNDS):
        for place, targets in tables:
            current = current * (targets / np.bincount(place, current, minlength=targets.size))[place]
        mismatch = max(
            float(np.abs(np.bincount(place, current, minlength=targets.size) - targets).max())
            for place, targets in tables
        )
        if mismatch <= MAX_MISMATCH * totals[0]:
            return frozen(current)
    raise ReportsError(
        "no weights meet all margins",
        where="rake",
        got=f"{mismatch / totals[0]:.2g} of the total is still missing after {MAX_ROUNDS:,} rounds",
        expected="margins that the sample can have together",
        remedy="join rare labels, or leave a margin out: users with some combination of labels are missing",
    )


def _table(
    name: str, columns: Mapping[str, object], margin: Mapping[object, float], users: int
) -> tuple[Positions, Floats]:
    """Return which total each user belongs to, and the totals."""
    if name not in columns:
        raise SettingError(
            "a margin has no column",
            where=f"rake(margins), {name}",
            got=f"columns {shorten(list(columns))}",
            expected=f"what {name} is for each user",
            remedy="add the column, or leave the margin out",
        )
    labels = np.ravel(as_array(columns[name])).tolist()
    if len(labels) != users:
        raise SettingError(
            "a column is not one entry for each user",
            where=f"rake(columns), {name}",
            got=f"{len(labels):,} entries",
            expected=f"{users:,}, one for each weight",
            remedy="pass one label for each user, in the order of the weights",
        )
    places = {label: place for place, label in enumerate(margin)}
    unknown = next((label for label in labels if label not in places), None)
    missing = next((label for label in margin if label not in set(labels)), None)
    if unknown is not None or missing is not None:
        raise SettingError(
            "users and margin do not have the same labels",
            where=f"rake, {name}",
            got=f"users with {shorten(unknown)}" if unknown is not None else f"no user with {shorten(missing)}",
            expected=f"users with each of {shorten(list(margin))}, and no others",
            remedy="add the label to the margin" if unknown is not None else "join the label to a similar one",
        )
    targets = np.array([float(total) for total in margin.values()])
    if not ((targets > 0.0) & np.isfinite(targets)).all():
        raise SettingError(
            "a total is not a positive number",
            where=f"rake(margins), {name}",
            got=shorten(dict(margin)),
            expected="how many people have each label, or which share",
            remedy="leave labels out that nobody has",
        )
    return np.array([places[label] for label in labels], dtype=np.int64), targets
