"""What a fit returns."""

from bayes_lepu.result.fitted_model import FittedModel

__all__ = ["FittedModel"]
