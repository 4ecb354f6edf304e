"""Who hears that work takes long."""

import logging
import time

from bayes_lepu.errors import LOGGER, announced, tell


def silence(monkeypatch):
    """Take pytest's own listeners away, which come with each phase of a test."""
    monkeypatch.setattr(logging.root, "handlers", [])
    monkeypatch.setattr(LOGGER, "handlers", [])
    monkeypatch.setattr(LOGGER, "level", logging.NOTSET)


def test_stderr_where_nobody_listens_and_nothing_on_request(monkeypatch, capsys):
    silence(monkeypatch)
    tell("Compiling")
    assert capsys.readouterr() == ("", "Compiling\n")
    monkeypatch.setattr(LOGGER, "level", logging.WARNING)
    tell("Compiling")
    assert capsys.readouterr() == ("", "")


def test_the_logger_where_somebody_does(caplog, capsys):
    caplog.set_level(logging.INFO, "bayes_lepu")
    tell("Compiling")
    assert caplog.messages == ["Compiling"]
    assert capsys.readouterr().err == ""


def test_long_work_says_what_it_is_and_how_long_it_took(caplog):
    caplog.set_level(logging.INFO, "bayes_lepu")
    with announced("Judging"):
        pass
    assert caplog.messages == []
    with announced("Judging", seconds=0.05):
        time.sleep(0.5)
        assert caplog.messages == ["Judging ..."]
    assert caplog.messages[1].startswith("Judging: ")
