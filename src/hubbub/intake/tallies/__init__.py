"""Tallies: written, read back, added to, durably and by one writer at a time."""
