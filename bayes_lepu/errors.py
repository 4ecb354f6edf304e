"""The library's own errors and warnings."""

from pathlib import Path

import numpy as np

# Warnings point at the first line outside of these: NumPy's, because its error state wraps `fit`.
OWN_CODE = (str(Path(__file__).parent), str(Path(np.__file__).parent))


class LepuError(Exception):
    """Base class of every error raised on purpose by this library."""


class DataError(LepuError, ValueError):
    """The data handed in cannot be used as they are."""


class ModelError(LepuError, ValueError):
    """A model, prior, penalty or option was asked for that does not exist or does not fit."""


class FileFormatError(LepuError, ValueError):
    """A saved file is not one of ours, or comes from a version this one does not know."""


class ConvergenceError(LepuError, RuntimeError):
    """An optimiser or sampler ended without a usable answer."""


class LepuWarning(UserWarning):
    """Base class of every warning issued on purpose by this library."""


class DataWarning(LepuWarning):
    """The data can be used, but something about them deserves attention."""


class IdentifiabilityWarning(LepuWarning):
    """The data leave open something that the printed estimate seems to settle."""


class ConvergenceWarning(LepuWarning):
    """An optimiser or sampler stopped before meeting its own criterion."""
