"""The likelihood of observed patterns as linear operators over the domain."""

from hubbub.channels.base import Channel
from hubbub.channels.bits import Bits
from hubbub.channels.dense import Dense
from hubbub.channels.join import Joined, product
from hubbub.channels.spike import Spike

__all__ = ["Bits", "Channel", "Dense", "Joined", "Spike", "product"]
