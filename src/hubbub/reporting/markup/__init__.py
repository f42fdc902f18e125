"""From what a page holds to the pieces of its HTML: words, sections, numbers, policy."""
