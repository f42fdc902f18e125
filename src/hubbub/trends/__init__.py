"""Shares and numbers over time: bands, changes, and smoothing."""

from hubbub.trends.api import trend
from hubbub.trends.result import Change, Trend

__all__ = ["Change", "Trend", "trend"]
