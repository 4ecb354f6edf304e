#!/bin/sh
# Build wheel and sdist into dist/, then use the wheel as a stranger would: in an environment of its
# own and an empty folder. $1 is a Python with `build` installed.
set -eu
python=$1
here=$PWD
rm -rf dist
"$python" -m build --quiet --outdir dist .
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
"$python" "$here/tools/wheel_contents.py" dist
"$python" -m venv "$place/venv"
"$place/venv/bin/pip" install --quiet "$(ls "$here"/dist/*.whl)[sklearn]"
"$place/venv/bin/pip" check
mkdir "$place/empty"
cd "$place/empty"
"$place/venv/bin/bayes-lepu" --version
"$place/venv/bin/bayes-lepu" demo
test -s demo-report.html
"$place/venv/bin/python" - <<'PYTHON'
import bayes_lepu as lepu

demo = lepu.load_demo()
fit = lepu.fit(demo.X, demo.l, model="psychm", method="map", random_seed=1)
print(fit)
fit.save("fit.nc")
assert (lepu.load("fit.nc").predict_proba(demo.X) == fit.predict_proba(demo.X)).all()
PYTHON
echo "The wheel works on its own: $(ls "$here"/dist/*.whl)"
