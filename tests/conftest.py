"""What all tests share: warnings of other libraries' own imports are not ours to answer for."""

import pytest


def pytest_configure(config: pytest.Config) -> None:
    # PyMC 6.3 imports this name from where PyTensor no longer wants it to be imported.
    config.addinivalue_line("filterwarnings", "ignore:Importing 'IfElse':DeprecationWarning")
