"""Findings of a run besides broken promises."""

from __future__ import annotations

from pathlib import Path

from tests.chaos.run import mistakes


def test_a_traceback_in_the_log_of_a_reactor_fails_the_run(tmp_path: Path) -> None:
    said = ["level=info msg=ok", 'level=error msg="it failed" error="Traceback (most recent call last): …"']
    (tmp_path / "reactor-1.log").write_text("\n".join(said) + "\n", "utf-8")
    (tmp_path / "reactor-0.log").write_text('level=error msg="the bus\'s disk is full"\n', "utf-8")
    assert mistakes(tmp_path) == [f"reactor-1.log:2: {said[1]}"]


def test_a_source_that_ends_by_itself_fails_the_run(tmp_path: Path) -> None:
    said = 'level=error msg="a source ended by itself, starting it again" source=web'
    (tmp_path / "reactor-0.log").write_text(said, "utf-8")
    assert mistakes(tmp_path) == [f"reactor-0.log:1: {said}"]
