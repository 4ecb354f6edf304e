"""What all tests share: one seed, printed in the header, and other libraries' own warnings."""

import signal
from importlib.metadata import version
from zlib import crc32

import numpy as np
import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--seed", type=int, default=0, help="seed of the fixture rng (default: 0)")


def pytest_report_header(config: pytest.Config) -> str:
    known = ", ".join(f"{name} {version(name)}" for name in ("numpy", "numba", "pymc", "arviz"))
    return f"bayes_lepu: --seed {config.getoption('seed')}; {known}"


def pytest_configure(config: pytest.Config) -> None:
    # PyMC 6.3 imports this name from where PyTensor no longer wants it to be imported.
    config.addinivalue_line("filterwarnings", "ignore:Importing 'IfElse':DeprecationWarning")
    # Shells start commands in the background deaf to Ctrl-C; tests interrupt themselves.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def rng(request: pytest.FixtureRequest) -> np.random.Generator:
    """A generator of this test's own: what it checks must hold for any seed."""
    name = request.node.nodeid.partition("::")[2]
    return np.random.default_rng([request.config.getoption("seed"), crc32(name.encode())])
