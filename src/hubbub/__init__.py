"""Recover what a crowd says."""
