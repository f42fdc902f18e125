"""From rows to patterns: entries checked once, users sorted, rows that are not taken told."""
