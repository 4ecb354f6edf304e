"""What a fit returns."""

from bayes_lepu.result.fit import Fit, load

__all__ = ["Fit", "load"]
