#!/bin/sh
# Make the virtual environment $1 (default .stan-venv) with Stan, apart from the library's own:
# the reference posteriors in models/ come from an engine that shares no code with bayes_lepu.
# Stan 2.35 (httpstan 4.13) on Python 3.11; it compiles each model with a C++ compiler.
set -eu
venv=${1:-.stan-venv}
want='import sys; raise SystemExit(sys.version_info[:2] != (3, 11))'
if ! command -v "${CXX:-g++}" >/dev/null 2>&1 && ! command -v c++ >/dev/null 2>&1; then
    echo "Stan compiles every model and no C++ compiler was found: install g++ or clang." >&2
    exit 1
fi
make_venv() {
    [ -x "$venv/bin/python" ] && "$venv/bin/python" -c "$want" && return 0
    for python in ${PYTHON:-} python3.11 "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3.11.*/bin/python python3; do
        if "$python" -c "$want" >/dev/null 2>&1; then
            "$python" -m venv --clear "$venv"
            return
        fi
    done
    if command -v uv >/dev/null 2>&1; then
        uv venv --seed --clear --python 3.11 "$venv"
        return
    fi
    echo "Stan's Python interface needs Python 3.11 and none was found." >&2
    echo "Install one (pyenv install 3.11), or run: PYTHON=/path/to/python3.11 sh tools/stan_env.sh $venv" >&2
    return 1
}
make_venv
# pystan 3.10 imports pkg_resources, which setuptools dropped in version 81.
"$venv/bin/python" -m pip install --quiet "setuptools<81" "numpy>=2" "pystan==3.10.*" "httpstan==4.13.*"
"$venv/bin/python" -c 'import stan; print("Stan is ready: pystan", stan.__version__)'
