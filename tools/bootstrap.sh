#!/bin/sh
# Make the virtual environment $1 with the first Python >= 3.12 found: the one named by
# .python-version (pyenv and uv resolve it as `python3`), then versioned names.
set -eu
venv=$1
want='import sys; raise SystemExit(sys.version_info < (3, 12))'
[ -x "$venv/bin/python" ] && "$venv/bin/python" -c "$want" && exit 0
for python in ${PYTHON:-} python3 "python$(cat .python-version)" python3.14 python3.13 python3.12 python; do
    if "$python" -c "$want" >/dev/null 2>&1; then
        exec "$python" -m venv --clear "$venv"
    fi
done
if command -v uv >/dev/null 2>&1; then
    exec uv venv --seed --clear --python "$(cat .python-version)" "$venv"
fi
echo "bayes_lepu needs Python 3.12 or newer and none was found." >&2
echo "Install one (pyenv install $(cat .python-version)), or run: make PYTHON=/path/to/python3.13 test" >&2
exit 1
