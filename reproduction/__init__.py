"""The paper's experiments, as it ran them: outside the library, run from a clone."""
