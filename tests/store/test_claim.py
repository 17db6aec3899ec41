"""Claims: one run at a time works on a log, and a claim ends with its process."""

from __future__ import annotations

import subprocess
import sys

import pytest

from clew.errors import LogError
from clew.log.claim import claim
from clew.log.memory import MemoryStore

from .places import Place


def test_a_second_claim_is_refused_until_the_first_is_released(durable_place: Place) -> None:
    store = durable_place.create()
    first = claim(store)
    other = durable_place.open()
    with pytest.raises(LogError, match=r"is in use: .* runs its pipeline now. Wait until it is over, or stop it"):
        claim(other)
    first.release()
    claim(other).release()
    store.close()
    other.close()


def test_a_claim_ends_with_its_process(sqlite_place: Place) -> None:
    store = sqlite_place.create()
    program = (
        "import os, sys; from clew.log.claim import claim; from clew.log.sqlite import open_sqlite; "
        "claim(open_sqlite(sys.argv[1])); print('claimed', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, str(store.path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"claimed\n"
        with pytest.raises(LogError, match=f"process {child.pid} runs its pipeline"):
            claim(store)
        child.kill()
        child.wait()
    claim(store).release()


def test_a_store_that_keeps_nothing_needs_no_claim() -> None:
    claim(MemoryStore({})).release()
