"""Optimal mechanisms: channels that are computed for a domain, an epsilon and what is known of the crowd."""

from hubbub.designing.api import design
from hubbub.designing.privic_loop import PrivicRun, privic
from hubbub.designing.result import Design

__all__ = ["Design", "PrivicRun", "design", "privic"]
