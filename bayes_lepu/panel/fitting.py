"""`fit_panel`: from a table and the labels of several annotators to an answer."""

from collections.abc import Sequence
from typing import Any

from bayes_lepu._fit import check_sampler, library_versions, read_seed
from bayes_lepu.errors import ModelError
from bayes_lepu.inference.nuts import NutsOptions
from bayes_lepu.interruption import stops_at_once
from bayes_lepu.panel.answer import PanelFit
from bayes_lepu.panel.data import read_panel
from bayes_lepu.panel.density import PanelDensity
from bayes_lepu.panel.sampling import sample_panel
from bayes_lepu.panel.specification import complete_priors, get_form
from bayes_lepu.priors import Priors


@stops_at_once
def fit_panel(
    X: Any,
    L: Any,
    *,
    model: str = "spm",
    y: Any = None,
    class_features: Sequence[str | int] | None = None,
    selection_features: Sequence[str | int] | None = None,
    standardize: bool = True,
    priors: Priors | None = None,
    draws: int = 1000,
    tune: int = 1000,
    chains: int = 4,
    cores: int | None = None,
    target_accept: float = 0.95,
    random_seed: int | None = None,
    progressbar: bool = True,
) -> PanelFit:
    r"""Learn the class and the propensity of every annotator from labels of the same rows.

    .. math::
        P(L_i \mid x_i) = t \prod_{j\ \text{shown}} s_j^{l_{ij}} (1-s_j)^{1-l_{ij}}
            + (1-t)\,[\text{nobody labelled}], \qquad
        t = \sigma(a\cdot x+b), \quad s_j = \sigma(\alpha_j\cdot x+\beta_j)

    Rows that two annotators saw identify both (capture and recapture), so no rule is needed to
    tell the class from the annotators, who may be as picky as they like. One assumption is bought
    instead: given x and the class, annotators label independently of each other. Where some
    positives are hard for everybody, π comes out too low; ``fit.identifiability`` looks for it.

    Parameters
    ----------
    X : DataFrame or array of shape (n, p)
        Features. Column names are kept and matched in predictions.
    L : DataFrame or array of shape (n, J)
        One column per annotator, named by the column: 1 labelled (only positives are), 0 seen and
        not labelled, NaN not shown.
    model : {"spm", "scar"}
        ``spm``: s_j depends on x; ``scar``: every annotator labels positives at random, s_j = c_j.
        Either way annotators are partially pooled.
    y : sequence, optional
        Audited classes (0 or 1), NaN where unknown.
    class_features, selection_features : sequence, optional
        Columns that may enter t and every s_j.
    standardize : bool
        Work on standardised columns; priors refer to that scale.
    priors : mapping of str to Prior, optional
        On top of the defaults, by name: ``a``, ``b``, ``alpha_mean``, ``beta_mean`` (normal),
        ``sigma_alpha``, ``sigma_beta`` (half-normal, how much annotators differ).
    draws, tune, chains, cores, target_accept
        Options of the sampler.
    random_seed : int, optional
        Seed of every random draw; one is made and recorded where none is given.
    progressbar : bool

    Returns
    -------
    PanelFit

    Examples
    --------
    >>> import numpy as np
    >>> import bayes_lepu as lepu
    >>> rng = np.random.default_rng(1)
    >>> X = rng.normal(size=(400, 2))
    >>> y = rng.random(400) < 1 / (1 + np.exp(-3 * X[:, 0]))
    >>> L = (y[:, None] & (rng.random((400, 3)) < [0.8, 0.6, 0.4])).astype(float)
    >>> L[200:, 2] = np.nan  # the third annotator saw half of the rows
    >>> fit = lepu.fit_panel(
    ...     X, L, model="scar", draws=200, tune=200, chains=2, random_seed=1, progressbar=False
    ... )
    >>> fit.annotators()["seen"].tolist()
    [400, 400, 200]
    """
    form = get_form(model)
    if selection_features is not None and not form.has_selection:
        raise ModelError(
            f"selection_features={selection_features!r}, but no column enters the propensities of "
            f"model={model!r}. Leave the option out, or use model='spm'."
        )
    check_sampler(
        "nutpie", draws=draws, tune=tune, chains=chains, cores=cores, target_accept=target_accept
    )
    data = read_panel(
        X,
        L,
        y=y,
        class_features=class_features,
        selection_features=selection_features,
        standardize=standardize,
    )
    chosen = complete_priors(form, data, priors)
    seed = read_seed(random_seed)
    options = NutsOptions(draws, tune, chains, cores, target_accept, seed, progressbar)
    posterior = sample_panel(PanelDensity(form, data, chosen), options)
    settings = {
        "model": model,
        "standardize": standardize,
        "tune": tune,
        "target_accept": target_accept,
        "random_seed": seed,
        "mode_weights": list(posterior.mode_weights),
        "versions": dict(library_versions()),
    }
    return PanelFit(
        form=form,
        data=data,
        priors=chosen,
        parameters=posterior.parameters,
        settings=settings,
        stats=posterior.stats,
    )
