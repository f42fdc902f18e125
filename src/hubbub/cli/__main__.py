"""``python -m hubbub.cli``."""

from hubbub.cli import main

main()
