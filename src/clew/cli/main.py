"""The entry point: finds the command, runs it, turns errors into messages and exit codes."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from clew import __version__
from clew.cli import check, demo, doctor, dry_run, explain, run, status, verify
from clew.cli.interrupt import Interrupted
from clew.errors import ClewError, LogDamaged, RunFailed


def main(argv: Sequence[str] | None = None) -> int:
    """Runs a command.

    0 is good. 1 is a result that is not: a violated guarantee, a failed run, a damaged log, an unfit machine. 2 is a
    call that cannot be carried out. 130 and 143 are commands that SIGINT and SIGTERM have stopped.
    """
    parser = argparse.ArgumentParser(prog="clew", description="Stateful pipelines that find their way back exactly.")
    parser.add_argument("--version", action="version", version=f"clew {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for command in (demo, dry_run, verify, run, status, explain, check, doctor):
        command.add_to(commands)
    args = parser.parse_args(argv)
    try:
        return int(args.run(args, sys.stdout))
    except ClewError as error:
        print(f"clew: {error}", file=sys.stderr)
        return 1 if isinstance(error, LogDamaged | RunFailed) else 2
    except Interrupted as interrupted:
        print("clew: interrupted", file=sys.stderr)
        return interrupted.exit_code
    except BrokenPipeError:  # Whoever read the output, as `head` does, has seen enough.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except KeyboardInterrupt:
        print("clew: interrupted", file=sys.stderr)
        return 130


if __name__ == "__main__":
    raise SystemExit(main())
