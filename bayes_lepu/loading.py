"""`load`: a fit back from its file."""

from pathlib import Path

from bayes_lepu.factors import Factor
from bayes_lepu.fitted import Fit
from bayes_lepu.result.saved import fields_of, open_saved
from bayes_lepu.runtime.interruption import stops_at_once


@stops_at_once
def load(path: str | Path, *, model: Factor | None = None, class_link: Factor | None = None) -> Fit:
    """Read a fit written by `Fit.save`.

    Parameters
    ----------
    path : str or Path
    model, class_link : Factor, optional
        The propensity and the class of the fit, where their links are your own.
    """
    path = Path(path)
    tree = open_saved(path)
    return Fit(**fields_of(tree, path, model, class_link))
