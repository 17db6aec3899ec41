"""The entry point: finds the command, runs it, turns errors into messages and exit codes."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from clew import __version__
from clew.cli import demo, verify
from clew.errors import ClewError


def main(argv: Sequence[str] | None = None) -> int:
    """Runs a command; 0 is good, 1 is a violated guarantee, 2 is a call that cannot be carried out."""
    parser = argparse.ArgumentParser(prog="clew", description="Stateful pipelines that find their way back exactly.")
    parser.add_argument("--version", action="version", version=f"clew {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    verify.add_to(commands)
    demo.add_to(commands)
    args = parser.parse_args(argv)
    try:
        return int(args.run(args, sys.stdout))
    except ClewError as error:
        print(f"clew: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("clew: interrupted", file=sys.stderr)
        return 130


if __name__ == "__main__":
    raise SystemExit(main())
