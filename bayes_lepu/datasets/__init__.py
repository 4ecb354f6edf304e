"""The embedded demo, and the value that simulators and loaders return."""

from bayes_lepu.datasets.camera_trap import load_demo
from bayes_lepu.datasets.dataset import PUDataset

__all__ = ["PUDataset", "load_demo"]
