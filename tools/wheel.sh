#!/bin/sh
# Build wheel and sdist into dist/, then use the wheel as a stranger would: in an environment of its
# own and an empty folder, with the demo and the lines of the README. PYTHON names the interpreter.
set -eu
here=$PWD
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
sh tools/bootstrap.sh "$place/build"
"$place/build/bin/python" -m pip install --quiet --disable-pip-version-check "build>=1.2"
rm -rf dist
"$place/build/bin/python" -m build --quiet --outdir dist .
"$place/build/bin/python" tools/wheel_contents.py dist
sh tools/bootstrap.sh "$place/venv"
python=$place/venv/bin/python
"$python" -m pip install --quiet --disable-pip-version-check "$(ls "$here"/dist/*.whl)"
"$python" -m pip check
mkdir "$place/empty"
cd "$place/empty"
"$place/venv/bin/bayes-lepu" --version
"$place/venv/bin/bayes-lepu" demo
test -s demo-report.html
"$python" "$here/tools/fences.py" "$here/README.md"
test -s report.html && test -s lepu-photos/report.html && test -s predictions.csv
echo "The wheel works on its own, on $("$python" --version): $(ls "$here"/dist/*.whl)"
