"""The page that people open: what the crowd said, and how far to trust it."""
