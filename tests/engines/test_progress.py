"""Lines about a sampler that takes long."""

import logging
from types import SimpleNamespace

import bayes_lepu as lepu
from bayes_lepu.engines import nuts


def chains(*done, total=1000):
    return [SimpleNamespace(finished_draws=n, total_draws=total) for n in done]


def test_a_sampler_reports(monkeypatch, caplog):
    monkeypatch.setattr(nuts, "FIRST", 0.0)
    caplog.set_level(logging.INFO, "bayes_lepu")
    demo = lepu.load_demo()
    lepu.fit(demo.X, demo.l, model="scar", draws=500, tune=200, chains=2, random_seed=1)
    lines = [r.getMessage() for r in caplog.records]
    assert "Sampling 2 chains of 200 warm-up and 500 draws" in lines
    assert any(line.startswith("Sampled ") and " of 1400 draws" in line for line in lines)
