"""Whether the reports determine one distribution, and what they leave open if they do not."""

from hubbub.identifiability.api import identify
from hubbub.identifiability.result import Identification

__all__ = ["Identification", "identify"]
