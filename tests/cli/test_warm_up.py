"""``bayes-lepu warm-up`` runs what has to be compiled."""

import json

import pytest

from bayes_lepu.cli.app import main


@pytest.mark.slow
def test_warm_up_runs_and_tells_how_long_it_took(capsys):
    assert main(["warm-up", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["seconds"] > 0
