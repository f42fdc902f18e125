"""Whether the reports determine one distribution, and what they leave open if they do not."""

from hubbub.identifiability.api import Identification, identify

__all__ = ["Identification", "identify"]
