"""From a model and data to estimates: MAP, Laplace, NUTS, and the orientation of the factors."""
