"""Features of photographs: the activation of a network's first fully connected layer.

.. code-block:: python

    table = image_features("stimuli/")                  # VGG16, weights from torchvision
    save_features("vgg16.npz", table)
    run_animal(features=read_features("vgg16.npz"))     # or: reproduce animal --features vgg16.npz

A network is anything with the three stages of torchvision's VGG: ``features``, ``avgpool`` and
``classifier``, the last a sequence whose first element is the layer wanted. VGG16 itself needs
torch, torchvision and Pillow; other networks bring their own ``read``.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from bayes_lepu.errors import DataError, FileFormatError
from bayes_lepu.links import Array

ENDINGS = frozenset({".jpg", ".jpeg", ".png", ".bmp", ".tif", ".tiff"})

Read = Callable[[list[Path]], Any]
"""From files to one batch of inputs, shape (files, ...), as the network takes it."""


def image_features(
    folder: str | Path,
    *,
    network: Any = None,
    read: Read | None = None,
    activation: bool = True,
    batch_size: int = 16,
) -> pd.DataFrame:
    r"""Activations of the first fully connected layer, one row per photograph.

    .. math:: f(x) = \max(0,\; W\,\mathrm{flatten}(\mathrm{avgpool}(\mathrm{features}(x))) + w)

    Parameters
    ----------
    folder : path
        Photographs, each with its number in its name (``imgo17.jpg``, ``0017.png``), which becomes
        the index: that of the trials' column ``image``.
    network : object, optional
        With callable ``features`` and ``avgpool``, and a sequence ``classifier`` whose first
        element is the layer. Default: torchvision's VGG16 with its ImageNet weights, which are
        fetched on first use.
    read : callable, optional
        From a list of files to a batch. Default: what VGG16 was trained on (shorter side 256,
        centre 224 by 224, ImageNet mean and spread).
    activation : bool
        Apply the rectifier after the layer, as the paper's "activation"; False gives its input.
    batch_size : int
        Photographs at a time.

    Returns
    -------
    DataFrame
        Columns f1, f2, ...; index ``image``, ascending.
    """
    files = _numbered(Path(folder).expanduser())
    if network is None:
        network, ready = _vgg16()
        read = read or ready
    elif read is None:
        read = _read_for(network)
    images = sorted(files)
    with _without_gradients(network):
        rows = [
            first_layer(network, read([files[i] for i in batch]), activation=activation)
            for batch in _batches(images, batch_size)
        ]
    values = np.concatenate(rows)
    columns = [f"f{j + 1}" for j in range(values.shape[1])]
    return pd.DataFrame(values, index=pd.Index(images, name="image"), columns=columns)


def first_layer(network: Any, batch: Any, *, activation: bool = True) -> Array:
    """Output of a network's first fully connected layer, shape (batch, units)."""
    pooled = network.avgpool(network.features(batch))
    flat = pooled.reshape(len(pooled), -1)
    values = _as_array(network.classifier[0](flat))
    return np.maximum(values, 0.0) if activation else values


def save_features(path: str | Path, features: pd.DataFrame) -> Path:
    """Write features as an ``npz`` with arrays ``image`` and ``X``."""
    path = Path(path)
    with path.open("wb") as file:  # numpy would add an ending to a bare name
        np.savez_compressed(
            file,
            image=features.index.to_numpy(dtype=np.int64),
            X=features.to_numpy(dtype=np.float32),
        )
    return path


def read_features(path: str | Path) -> pd.DataFrame:
    """Features from an ``npz`` with arrays ``image`` (n,) and ``X`` (n, p)."""
    path = Path(path).expanduser()
    try:
        with np.load(path) as archive:
            image, X = archive["image"], archive["X"].astype(float)
    except FileNotFoundError:
        raise
    except Exception as error:
        raise FileFormatError(
            f"{path} cannot be read as features ({error}). Expected an npz file with arrays image "
            "(n,) and X (n, p), such as save_features writes."
        ) from error
    if image.ndim != 1 or X.ndim != 2 or len(image) != len(X):
        raise FileFormatError(
            f"{path} holds image of shape {image.shape} and X of shape {X.shape}; expected (n,) "
            "and (n, p)."
        )
    columns = [f"f{j + 1}" for j in range(X.shape[1])]
    return pd.DataFrame(X, index=pd.Index(image.astype(np.int64), name="image"), columns=columns)


def _numbered(folder: Path) -> dict[int, Path]:
    """Photographs by the last number in their names."""
    if not folder.is_dir():
        raise DataError(f"{folder} is not a folder; expected one with photographs.")
    files: dict[int, Path] = {}
    for file in sorted(folder.iterdir()):
        if file.suffix.lower() not in ENDINGS:
            continue
        numbers = re.findall(r"\d+", file.stem)
        if not numbers:
            raise DataError(f"{file.name} has no number in its name; expected the image's own.")
        number = int(numbers[-1])
        if number in files:
            raise DataError(
                f"{file.name} and {files[number].name} both bear the number {number}; expected one "
                "file per image."
            )
        files[number] = file
    if not files:
        raise DataError(f"{folder} holds no photographs ({', '.join(sorted(ENDINGS))}).")
    return files


def _batches(images: list[int], size: int) -> Iterator[list[int]]:
    if size < 1:
        raise DataError(f"batch_size = {size}; expected one or above.")
    for start in range(0, len(images), size):
        yield images[start : start + size]


def _without_gradients(network: Any) -> AbstractContextManager[Any]:
    """Torch keeps every intermediate result for gradients unless told otherwise."""
    if not hasattr(network, "parameters"):
        return nullcontext()
    import torch

    return torch.inference_mode()


def _as_array(values: Any) -> Array:
    """A NumPy array from an array or a torch tensor."""
    if hasattr(values, "detach"):
        values = values.detach().cpu().numpy()
    return np.asarray(values, dtype=np.float64)


def _vgg16() -> tuple[Any, Read]:
    """VGG16 with its ImageNet weights, and the transform these weights expect."""
    try:
        from torchvision.models import VGG16_Weights, vgg16
    except ImportError as error:
        raise ImportError(
            "VGG16 needs torch and torchvision, which are not installed. Install them with pip "
            "install torch torchvision pillow, or pass a network and a read function of your own."
        ) from error
    weights = VGG16_Weights.IMAGENET1K_V1
    return vgg16(weights=weights).eval(), _torch_reader(weights.transforms())


def _read_for(network: Any) -> Read:
    """The usual ImageNet transform for a torch network of the user's own."""
    if not hasattr(network, "parameters"):
        raise DataError(
            "The network is not a torch module, so how it takes photographs is unknown. Pass "
            "read=, a function from a list of files to a batch."
        )
    from torchvision.models import VGG16_Weights

    network.eval()
    return _torch_reader(VGG16_Weights.IMAGENET1K_V1.transforms())


def _torch_reader(transform: Callable[[Any], Any]) -> Read:
    def read(files: list[Path]) -> Any:
        import torch
        from PIL import Image

        batch = []
        for file in files:
            with Image.open(file) as image:
                batch.append(transform(image.convert("RGB")))
        return torch.stack(batch)

    return read
