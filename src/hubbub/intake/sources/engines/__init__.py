"""Kinds of databases: how each is opened read-only, counted, and streamed."""
