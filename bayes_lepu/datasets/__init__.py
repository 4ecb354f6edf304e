"""The embedded demo, and the value that simulators and loaders return."""

from bayes_lepu.datasets.dataset import PUDataset
from bayes_lepu.datasets.demo import load_demo

__all__ = ["PUDataset", "load_demo"]
