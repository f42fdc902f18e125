"""From rows to patterns: entries checked once, users sorted, bad rows rejected."""
