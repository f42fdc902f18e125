"""How precisely the reports determine a share: intervals, bands, quantiles, and shares of sets."""

from hubbub.intervals.api import band, interval
from hubbub.intervals.moment_intervals import Moments, correlation, moments
from hubbub.intervals.quantiles import quantile
from hubbub.intervals.result import Band, Interval, Quantile
from hubbub.intervals.set_intervals import NoSetShares, SetShares, set_shares
from hubbub.intervals.unbiased_mean import Mean, mean

__all__ = [
    "Band",
    "Interval",
    "Mean",
    "Moments",
    "NoSetShares",
    "Quantile",
    "SetShares",
    "band",
    "correlation",
    "interval",
    "mean",
    "moments",
    "quantile",
    "set_shares",
]
