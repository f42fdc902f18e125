"""How precisely the reports determine a share: intervals, bands, quantiles, and shares of sets."""

from hubbub.intervals.api import band, interval, quantile
from hubbub.intervals.result import Band, Interval, Quantile
from hubbub.intervals.set_intervals import NoSetShares, SetShares, set_shares

__all__ = ["Band", "Interval", "NoSetShares", "Quantile", "SetShares", "band", "interval", "quantile", "set_shares"]
