"""Kinds of databases: how each is opened for reading alone, counted, and streamed."""
