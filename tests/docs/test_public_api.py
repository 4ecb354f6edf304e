"""The public surface: light to import, keyword-only options, documented, examples that run."""

import doctest
import importlib
import inspect
import pkgutil
import subprocess
import sys

import pytest

import bayes_lepu as lepu

HEAVY = ("pymc", "pytensor", "arviz", "matplotlib", "nutpie", "sklearn", "xarray", "h5netcdf")
MODULES = sorted(
    info.name
    for info in pkgutil.walk_packages(lepu.__path__, "bayes_lepu.")
    if not info.name.endswith("__main__")
)


def public_callables():
    """Name and object of every public function, class and method."""
    for name in lepu.__all__:
        thing = getattr(lepu, name)
        if inspect.ismodule(thing):
            for inner in thing.__all__:
                yield f"{name}.{inner}", getattr(thing, inner)
        elif inspect.isclass(thing):
            yield name, thing
            for inner, member in inspect.getmembers(thing):
                own = inspect.isfunction(member) or inspect.ismethod(member)
                if own and not inner.startswith("_") and "bayes_lepu" in member.__module__:
                    yield f"{name}.{inner}", member
        else:
            yield name, thing


CALLABLES = dict(public_callables())
FUNCTIONS = {k: v for k, v in CALLABLES.items() if not inspect.isclass(v)}


def test_import_is_light():
    """None of the heavy libraries is loaded by `import bayes_lepu`."""
    code = f"import sys, bayes_lepu; print([m for m in {HEAVY!r} if m in sys.modules])"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


def test_a_map_fit_needs_no_sampler():
    """MAP in milliseconds must not wait for PyMC: fit and predict load none of it."""
    code = (
        "import sys, numpy as np, bayes_lepu as lepu\n"
        "X = np.random.default_rng(0).normal(size=(60, 2))\n"
        "fit = lepu.fit(X, np.arange(60) % 2, model='scar', method='map', random_seed=0)\n"
        "fit.predict_proba(X)\n"
        "assert 'interval' not in repr(fit)\n"
        "assert lepu.result.summaries.interval_level() == 0.89  # that of ArviZ, not imported\n"
        "heavy = ('pymc', 'pytensor', 'nutpie', 'matplotlib', 'arviz_base')\n"
        "print([m for m in heavy if m in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


def test_all_is_sorted_and_complete():
    assert list(lepu.__all__) == sorted(lepu.__all__)
    assert len(set(lepu.__all__)) == len(lepu.__all__)
    for name in lepu.__all__:
        assert hasattr(lepu, name)
    public = {
        name
        for name, thing in vars(lepu).items()
        if not name.startswith("_") and not inspect.ismodule(thing)
    }
    assert public <= set(lepu.__all__)


def test_everything_public_is_documented():
    for name, thing in CALLABLES.items():
        first = (inspect.getdoc(thing) or "").partition("\n")[0].rstrip()
        assert len(first) > 10, name
        assert first.endswith((".", ":", "?")), name


def test_arguments_have_types_and_options_are_keyword_only():
    """What has a default is an option; only data (X, l) may also be given by position."""
    for name, function in FUNCTIONS.items():
        signature = inspect.signature(function)
        assert signature.return_annotation is not signature.empty, name
        for parameter in signature.parameters.values():
            where = f"{name}: {parameter}"
            if parameter.name in ("self", "cls"):
                continue
            assert parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD), where
            assert parameter.annotation is not parameter.empty, where
            optional = parameter.default is not parameter.empty
            if optional and parameter.name not in ("X", "l"):
                assert parameter.kind == parameter.KEYWORD_ONLY, where


def test_fit_documents_every_option():
    documented = inspect.getdoc(lepu.fit)
    for name in inspect.signature(lepu.fit).parameters:
        assert name in documented, name


def test_an_unknown_option_is_named_with_what_was_meant():
    with pytest.raises(TypeError, match=r"fit\(\): .*'modle'\. Did you mean 'model'\?"):
        lepu.fit([[0.0]], [1], modle="spm")


def examples():
    """Every docstring of the package with an example, by its name."""
    finder = doctest.DocTestFinder(exclude_empty=True)
    for name in ["bayes_lepu", *MODULES]:
        module = importlib.import_module(name)
        yield from (test for test in finder.find(module, module=module) if test.examples)
    for name in ("fit", "build_model", "from_trace", "compare", "diagnose"):  # decorated ones
        yield from finder.find(inspect.unwrap(getattr(lepu, name)), name, globs={})


@pytest.mark.parametrize("example", list(examples()), ids=lambda example: example.name)
def test_examples_run(example):
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    assert runner.run(example).failed == 0
