"""What a fit returns."""

from bayes_lepu.result.fit import FittedModel

__all__ = ["FittedModel"]
