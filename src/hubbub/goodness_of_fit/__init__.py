"""Whether any distribution over the domain explains the reports."""

from hubbub.goodness_of_fit.api import FitTest, fit_test

__all__ = ["FitTest", "fit_test"]
