"""The comparison with real Timely where there is no Timely: it says why, and ends well unless it is required."""

import subprocess

import pytest
from tools.timely import compare


def test_without_cargo_it_is_skipped(monkeypatch, capsys):
    monkeypatch.setattr(compare.shutil, "which", lambda _: None)
    assert compare.main([]) == 0
    assert "timely: skipped: cargo was not found; install a Rust toolchain" in capsys.readouterr().out


def test_without_cargo_it_fails_if_it_is_required(monkeypatch, capsys):
    monkeypatch.setattr(compare.shutil, "which", lambda _: None)
    assert compare.main(["--require"]) == 1
    assert "timely: cannot run: cargo was not found" in capsys.readouterr().out


def test_without_the_crates_it_is_skipped(monkeypatch, capsys):
    monkeypatch.setattr(compare.shutil, "which", lambda _: "cargo")
    monkeypatch.setattr(
        compare.subprocess, "run", lambda command, **_: subprocess.CompletedProcess(command, 101, "", "no network")
    )
    assert compare.main([]) == 0
    said = capsys.readouterr().out
    assert "timely: skipped: cargo could not fetch the crates" in said
    assert "no network" in said


def test_a_program_that_fails_is_no_agreement(monkeypatch):
    monkeypatch.setattr(
        compare.subprocess, "run", lambda command, **_: subprocess.CompletedProcess(command, 101, "", "it panicked")
    )
    with pytest.raises(SystemExit, match="it panicked"):
        compare.records("trackers", 0, 1)


def test_the_version_is_the_locked_one():
    assert f'timely = {{ version = "={compare.version()}"' in (compare.HERE / "Cargo.toml").read_text()
