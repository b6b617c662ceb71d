"""``python -m wiseale``."""

import sys

try:
    from wiseale.cli import main
except KeyboardInterrupt:
    print("wiseale: interrupted", file=sys.stderr)
    sys.exit(130)

main()
