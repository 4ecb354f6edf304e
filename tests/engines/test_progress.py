"""Lines about a sampler that takes long."""

import logging
from types import SimpleNamespace

import pytest

import bayes_lepu as lepu
from bayes_lepu.engines import progress


def chains(*done, total=1000):
    return [SimpleNamespace(finished_draws=n, total_draws=total) for n in done]


@pytest.fixture
def clock(monkeypatch):
    now = SimpleNamespace(time=100.0)
    monkeypatch.setattr(progress.time, "monotonic", lambda: now.time)
    return now


def test_lines_come_ever_more_seldom_and_tell_the_time_left(clock, caplog):
    caplog.set_level(logging.INFO, "bayes_lepu")
    show = progress.Progress(aloud=False)
    for second in range(0, 75, 5):
        clock.time = 100.0 + second
        show(chains(4 * second, 4 * second))
    assert [r.getMessage() for r in caplog.records] == [
        "Sampled 80 of 2000 draws, warm-up included; about 4 minutes left",
        "Sampled 240 of 2000 draws, warm-up included; about 4 minutes left",
        "Sampled 560 of 2000 draws, warm-up included; about 3 minutes left",
    ]


def test_a_sampler_reports(monkeypatch, caplog):
    monkeypatch.setattr(progress, "FIRST", 0.0)
    caplog.set_level(logging.INFO, "bayes_lepu")
    demo = lepu.load_demo()
    lepu.fit(demo.X, demo.l, model="scar", draws=500, tune=200, chains=2, random_seed=1)
    lines = [r.getMessage() for r in caplog.records]
    assert "Sampling 2 chains of 200 warm-up and 500 draws" in lines
    assert any(line.startswith("Sampled ") and " of 1400 draws" in line for line in lines)
