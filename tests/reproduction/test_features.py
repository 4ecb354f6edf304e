"""Features of photographs: any network with features, avgpool and classifier."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from bayes_lepu.errors import DataError
from reproduction.experiments import image_features, read_features, save_features
from reproduction.experiments.features import first_layer

SHAPE = (3, 4, 6)  # channels, height, width


def tiny_network() -> Any:
    """A NumPy network with the stages of torchvision's VGG, randomly initialised."""
    rng = np.random.default_rng(0)
    mix, weights = rng.normal(size=(2, 3)), rng.normal(size=(5, 2 * 2 * 2))

    def features(x: np.ndarray) -> np.ndarray:
        return np.maximum(np.einsum("oc,nchw->nohw", mix, x), 0.0)

    def avgpool(x: np.ndarray) -> np.ndarray:
        n, c, h, w = x.shape
        return x.reshape(n, c, 2, h // 2, 2, w // 2).mean(axis=(3, 5))

    def never(x: np.ndarray) -> np.ndarray:
        raise AssertionError("only the first fully connected layer is wanted")

    def layer(x: np.ndarray) -> np.ndarray:
        return x @ weights.T + 0.1

    return SimpleNamespace(features=features, avgpool=avgpool, classifier=[layer, never, never])


def read(files: list[Path]) -> np.ndarray:
    return np.stack([np.loadtxt(f).reshape(SHAPE) for f in files])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rng = np.random.default_rng(1)
    for name in ("imgo12.jpg", "imgo3.jpg", "set2_0040.PNG"):
        np.savetxt(tmp_path / name, rng.normal(size=SHAPE).ravel())
    (tmp_path / "notes.txt").write_text("not a photograph")
    return tmp_path


def test_one_row_per_photograph_in_the_order_of_its_number(folder: Path) -> None:
    network = tiny_network()
    table = image_features(folder, network=network, read=read, batch_size=2)
    back = read_features(save_features(folder / "own.npz", table))
    pd.testing.assert_frame_equal(back, table, check_exact=False, rtol=1e-6)
    assert table.index.tolist() == [3, 12, 40]
    assert table.index.name == "image"
    assert table.shape == (3, 5)
    x = read([folder / "imgo12.jpg"])
    pooled = network.avgpool(network.features(x)).ravel()
    expected = np.maximum(network.classifier[0](pooled), 0.0)
    np.testing.assert_allclose(table.loc[12], expected)


def test_what_cannot_be_used_is_refused(tmp_path: Path) -> None:
    options: dict[str, Any] = {"network": tiny_network(), "read": read}
    with pytest.raises(DataError, match="is not a folder"):
        image_features(tmp_path / "absent", **options)
    with pytest.raises(DataError, match="holds no photographs"):
        image_features(tmp_path, **options)
    (tmp_path / "cat.jpg").touch()
    with pytest.raises(DataError, match=r"cat\.jpg has no number"):
        image_features(tmp_path, **options)
    (tmp_path / "cat.jpg").unlink()
    for name in ("a7.jpg", "b07.jpg"):
        np.savetxt(tmp_path / name, np.zeros(SHAPE).ravel())
    with pytest.raises(DataError, match=r"b07\.jpg and a7\.jpg both bear the number 7"):
        image_features(tmp_path, **options)


def test_a_torch_network_gives_what_its_own_forward_pass_computes(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch", reason="the extra images is not installed")
    pytest.importorskip("torchvision", reason="the extra images is not installed")
    from PIL import Image

    class Tiny(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.features = torch.nn.Conv2d(3, 2, 3)
            self.avgpool = torch.nn.AdaptiveAvgPool2d(2)
            self.classifier = torch.nn.Sequential(torch.nn.Linear(8, 5), torch.nn.ReLU())

        def forward(self, x: Any) -> Any:
            return self.classifier(torch.flatten(self.avgpool(self.features(x)), 1))

    torch.manual_seed(0)
    network = Tiny()
    rng = np.random.default_rng(0)
    for k, size in enumerate(((300, 400), (300, 280, 3))):
        pixels = rng.integers(0, 255, size, dtype=np.uint8)
        Image.fromarray(pixels).save(tmp_path / f"{k}.png")
    table = image_features(tmp_path, network=network)
    from torchvision.models import VGG16_Weights

    transform = VGG16_Weights.IMAGENET1K_V1.transforms()
    batch = [transform(Image.open(tmp_path / f"{k}.png").convert("RGB")) for k in range(2)]
    inputs = torch.stack(batch)  # noqa: PD013 - torch, not pandas
    expected = network(inputs).detach().numpy()
    np.testing.assert_allclose(table, expected, atol=1e-6)
    assert first_layer(network, inputs).shape == (2, 5)
