r"""Several annotators of the same rows.

.. math::
    P(L_i \mid x_i) = t \prod_{j\ \text{shown}} s_j^{l_{ij}} (1-s_j)^{1-l_{ij}}
        + (1-t)\,[\text{nobody labelled}],
    \qquad t = \sigma(a\cdot x+b), \quad s_j = \sigma(\alpha_j\cdot x+\beta_j).

What two annotators who saw the same row agree on identifies each of them (capture and recapture):
P(both label)/P(only the first labels) = s₂/(1-s₂). So t is told from s without any rule. The price
is one assumption: given x and the class, annotators label independently of each other.
"""

from bayes_lepu.panel.answer import PanelFit, load_panel
from bayes_lepu.panel.fitting import fit_panel

__all__ = ["PanelFit", "fit_panel", "load_panel"]
