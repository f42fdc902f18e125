"""Whether any distribution over the domain explains the reports."""

from hubbub.goodness_of_fit.api import fit_test
from hubbub.goodness_of_fit.result import FitTest

__all__ = ["FitTest", "fit_test"]
