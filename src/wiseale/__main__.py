"""``python -m wiseale``."""

from wiseale.cli import main

main()
