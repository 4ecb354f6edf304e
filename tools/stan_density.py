"""Stan's log density at given points, computed now; run by Stan's own Python.

``tools/stan_env.sh`` makes that Python. The request is a JSON file::

    {"program": "<path>.stan", "data": [{...}, ...], "points": [[{...}, ...], ...]}

with one list of points per data block, in the constrained parameters of the program. The answer
holds one list of log densities per data block, every constant included and no Jacobian::

    .stan-venv/bin/python tools/stan_density.py request.json answer.json

Stan keeps compiled programs in ``$XDG_CACHE_HOME/httpstan``: the second run takes seconds.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path


def main(request: Path, answer: Path) -> None:
    """Answer one request."""
    import stan

    asked = json.loads(request.read_text(encoding="utf-8"))
    program = Path(asked["program"]).read_text(encoding="utf-8")
    found = []
    for data, points in zip(asked["data"], asked["points"], strict=True):
        model = stan.build(program, data=data, random_seed=1)
        found.append(
            [
                model.log_prob(model.unconstrain_pars(point), adjust_transform=False)
                for point in points
            ]
        )
    answer.write_text(json.dumps(found), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
