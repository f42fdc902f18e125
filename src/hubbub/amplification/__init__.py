"""Privacy after shuffling: what a central observer learns who sees all reports and not who sent which."""

from hubbub.amplification.api import amplify
from hubbub.amplification.local_budget import largest_local_epsilon
from hubbub.amplification.result import Amplification

__all__ = ["Amplification", "amplify", "largest_local_epsilon"]
