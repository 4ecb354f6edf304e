"""The Stan twins compiled and run now: Stan's log density and the compiled one agree.

``test_reference.py`` compares with recorded values on every run; this compares with Stan itself,
on data and points that no file has recorded. The first run compiles the four programs (one to
three minutes each); environment and programs are kept in ``.stan-venv``.
"""

import json
import os
import subprocess
from pathlib import Path

import numpy as np
import pytest

from tests.densities import VARIANTS, constant, make_density
from tools.reference import NAMES

ROOT = Path(__file__).resolve().parents[2]
VENV = ROOT / ".stan-venv"
DATA = ("plain", "masks", "audited", "both")

pytestmark = pytest.mark.slow


@pytest.fixture(scope="session")
def stan_python():
    """Stan's own Python, made where it is not there yet."""
    script = ["sh", str(ROOT / "tools" / "stan_env.sh"), str(VENV)]
    made = subprocess.run(script, capture_output=True, text=True, timeout=1200)
    if made.returncode:
        last = " / ".join((made.stderr or made.stdout).strip().splitlines()[-3:])
        pytest.skip(f"STAN WAS NOT RUN, its environment cannot be made here: {last}")
    return VENV / "bin" / "python"


def points_of(density):
    """Ordinary, steep and far points in the density's own coordinates."""
    rng = np.random.default_rng(17)
    ordinary = [rng.normal(0, 1.5, density.dim) for _ in range(6)]
    steep = [12 * rng.normal(0, 1, density.dim) for _ in range(2)]
    far = rng.normal(0, 1, (4, density.dim))
    far[:, density.blocks.b] = np.array([[300.0], [-300.0], [300.0], [-300.0]])
    far[:, density.blocks.beta] = np.array([[300.0], [300.0], [-300.0], [-300.0]])
    points = np.array([*ordinary, *steep, *far])
    # c and the weights are handed over as such, so that 1 - c must not be lost to rounding.
    block = points[:, density.blocks.rates]
    points[:, density.blocks.rates] = rng.normal(0, 1.5, block.shape)
    points[:, density.blocks.epsilon] = rng.normal(-3, 1, points[:, density.blocks.epsilon].shape)
    return list(points)


def stan_data(density):
    """The data block of the twin."""
    data, priors = density.data, density.priors
    kind = data.kind.astype(int)
    if density.spec.false_marks:  # a mark is no proof: that it was confirmed makes a kind
        kind[(data.l == 1) & (data.y == 1)] = 5
    block = {"N": data.n, "p": data.p, "X": data.X.tolist(), "kind": kind.tolist()}
    block |= {"class_columns": data.class_mask.astype(int).tolist()}
    if density.spec.has_selection:
        block |= {"selection_columns": data.selection_mask.astype(int).tolist()}
    for name, prior in priors.items():
        if name == "c":
            block["c_1"], block["c_2"] = prior.concentration
        elif name == "epsilon":
            block["epsilon_1"], block["epsilon_2"] = prior.concentration
        elif name == "rates":
            block["conc"] = list(prior.concentration)
        else:
            block[f"scale_{name}"] = float(prior.scale)
    return block


def stan_point(density, z):
    """A point under the names of the twin, masked slopes left out."""
    point, names = density.unpack(z), {"a": "a_free", "alpha": "alpha_free", "rates": "w"}
    values = {"a": point.a[density.data.class_mask], "b": point.b}
    values |= {"alpha": point.alpha[density.data.selection_mask], "beta": point.beta}
    values |= {"c": point.gamma, "rates": np.exp(point.log_w), "epsilon": point.epsilon}
    wanted = density.spec.parameters
    return {names.get(name, name): np.asarray(values[name]).tolist() for name in wanted}


@pytest.mark.parametrize("name", NAMES)
def test_stan_and_the_compiled_density_agree(name, stan_python, tmp_path):
    densities = [make_density(name, jacobian=False, **VARIANTS[variant]) for variant in DATA]
    points = [points_of(density) for density in densities]
    both = list(zip(densities, points, strict=True))
    request = {
        "program": str(ROOT / "models" / name / f"{name}.stan"),
        "data": [stan_data(density) for density in densities],
        "points": [[stan_point(density, z) for z in some] for density, some in both],
    }
    asked, answer = tmp_path / "request.json", tmp_path / "answer.json"
    asked.write_text(json.dumps(request), encoding="utf-8")
    run = subprocess.run(
        [str(stan_python), str(ROOT / "tools" / "stan_density.py"), str(asked), str(answer)],
        env={**os.environ, "XDG_CACHE_HOME": str(VENV / "cache")},
        capture_output=True,
        text=True,
        timeout=1200,
    )
    assert run.returncode == 0, run.stderr[-3000:]
    stan = json.loads(answer.read_text(encoding="utf-8"))
    for (density, some), theirs in zip(both, stan, strict=True):
        # Every constant is kept on both sides, so that not even one is left between them.
        ours = np.array([density.logp(z) for z in some]) + constant(density)
        np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-8)
