"""`synthesize`: invented records, drawn from an estimated distribution."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hubbub.core import validation
from hubbub.core.arrays import Array
from hubbub.core.errors import EstimateError, SettingError, shorten
from hubbub.domains import Domain
from hubbub.estimators import Estimate

if TYPE_CHECKING:
    import pandas as pd

MAX_RECORDS = 1_000_000_000  # more would not fit in memory
WHERE = "synthesize"


def synthesize(estimate: Estimate, n: int, *, rng: np.random.Generator | int | None = None) -> pd.DataFrame:
    """Draw records of people who do not exist from an estimated distribution.

    Records are drawn one by one, independently, with the probabilities of the estimate. They say nothing that the
    estimate does not say: they are computed from it alone, and so are exactly as private as the reports behind it. They
    repeat its errors and add noise of their own, so an interval computed from them, as if they were people who were
    asked, is too narrow. Take intervals from the reports (`band`, `interval`).

    Parameters
    ----------
    estimate : Estimate
        The distribution, over any domain.
    n : int
        How many records.
    rng : numpy.random.Generator or int, optional
        The source of randomness, or its seed; left out, a fixed seed: the same estimate gives the same records.

    Returns
    -------
    pandas.DataFrame
        A column ``value``, or one for each attribute of a `Product`; a row for each record. Values are labels; of bins,
        they are the numbers in the middle of the bins, because a record from `Bins` is a raw number.

    Raises
    ------
    EstimateError
        If `estimate` is not an estimate, or has shares below 0.
    SettingError
        If `n` is not a whole number, at least 1 and at most a billion, or `rng` is no source of randomness.

    Examples
    --------
    >>> import hubbub as hb
    >>> tea, age = hb.Categories(["yes", "no"]), hb.Bins([18, 40, 65, 90])
    >>> both = hb.Split(tea=hb.RandomizedResponse(tea, epsilon=2.0), age=hb.RandomizedResponse(age, epsilon=2.0))
    >>> reports = hb.Reports.from_outputs(both, [("yes", 0)] * 60 + [("no", 0)] * 20 + [("no", 2)] * 40)
    >>> people = hb.synthesize(hb.estimate(reports, "mle"), 1_000, rng=1)
    >>> print(people.head(3))
       tea   age
    0  yes  29.0
    1   no  77.5
    2  yes  29.0
    >>> len(people)
    1000
    """
    if not isinstance(estimate, Estimate):
        raise EstimateError(
            "there is no distribution to draw from",
            where=f"{WHERE}(estimate)",
            got=shorten(estimate),
            expected="an estimate",
            remedy="pass what hubbub.estimate(reports) returned",
        )
    records = validation.whole(n, "n", WHERE)
    if records > MAX_RECORDS:
        raise SettingError(
            "so many records do not fit in memory",
            where=f"{WHERE}(n=)",
            got=f"{records:,}",
            expected=f"at most {MAX_RECORDS:,}",
            remedy="draw fewer, or several times with different seeds",
        )
    generator, _ = validation.generator(rng, WHERE)
    shares = validation.distribution(
        estimate.probabilities, len(estimate.domain), f"{WHERE}(estimate)", error=EstimateError
    )
    positions = generator.choice(shares.size, size=records, p=shares)
    import pandas as pd

    product = estimate.domain.product
    if product is None:
        return pd.DataFrame({"value": record_values(estimate.domain)[positions]})
    coordinates = zip(product.attributes.items(), product.coordinates_of(positions), strict=True)
    return pd.DataFrame({name: record_values(own)[places] for (name, own), places in coordinates})


def record_values(domain: Domain) -> Array:
    """Return what a record has for each value: its label, or the number in the middle of a bin of raw numbers."""
    if domain.raw_locator is not None and domain.places is not None:
        return domain.places
    return domain.labels
