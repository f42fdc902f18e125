"""How precisely the reports determine a share: intervals, bands, quantiles, and shares of sets."""

from hubbub.intervals.api import Interval, interval
from hubbub.intervals.quantiles import Quantile, quantile
from hubbub.intervals.set_intervals import SetShares, Untold, set_shares
from hubbub.intervals.value_bands import Band, band, banding

__all__ = [
    "Band",
    "Interval",
    "Quantile",
    "SetShares",
    "Untold",
    "band",
    "banding",
    "interval",
    "quantile",
    "set_shares",
]
