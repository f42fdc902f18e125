"""Which texts RAPPOR's Bloom filters are about, and how many are on no list of candidates."""

from hubbub.text_decoding.api import decode_rappor
from hubbub.text_decoding.result import TextShares

__all__ = ["TextShares", "decode_rappor"]
