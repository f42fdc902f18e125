"""How far an answer can be trusted: uniqueness, intervals, tests of the fit, fake users, and single inputs."""

from hubbub.solvers.stages import Progress
from hubbub.trust.fit import FitTest, fit_test
from hubbub.trust.identification import Identification, identify
from hubbub.trust.interval_band import Band, band, banding
from hubbub.trust.intervals import Interval, interval
from hubbub.trust.quantiles import Quantile, quantile
from hubbub.trust.sets import SetShares, Untold, set_shares
from hubbub.trust.shift import Shift, worst_case_shift
from hubbub.trust.single import error_probability
from hubbub.trust.trust_check import Check, affordable, check, checking

__all__ = [
    "Band",
    "Check",
    "FitTest",
    "Identification",
    "Interval",
    "Progress",
    "Quantile",
    "SetShares",
    "Shift",
    "Untold",
    "affordable",
    "band",
    "banding",
    "check",
    "checking",
    "error_probability",
    "fit_test",
    "identify",
    "interval",
    "quantile",
    "set_shares",
    "worst_case_shift",
]
