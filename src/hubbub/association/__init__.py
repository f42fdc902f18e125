"""Whether two attributes are related, and how strongly."""
