"""Saved fits: nothing lost while writing, nothing wrong after reading."""

import errno
import random
import resource
import subprocess
import sys
import time
from io import BytesIO
from pathlib import Path

import arviz as az
import numpy as np
import pytest
import xarray as xr

import bayes_lepu as lepu
from bayes_lepu.model.parameters import ARRAYS
from bayes_lepu.result.saved import TRAILER, _trailer
from bayes_lepu.runtime.files import replace_file
from tests.patience import patience, slow
from tests.tiny import tiny_fit

LONGEST = 5.0  # seconds a load may take, whatever the bytes


@pytest.fixture(scope="module")
def fits():
    demo = lepu.load_demo()
    X, l = demo.X[:300], demo.l[:300]
    options = {"model": "scar", "random_seed": 1, "progressbar": False}
    return {
        "map": lepu.fit(X, l, method="map", **options),
        "nuts": lepu.fit(X, l, method="nuts", draws=50, tune=100, chains=2, **options),
        "panel": tiny_fit("panel"),
    }


@pytest.fixture(scope="module")
def saved(fits, tmp_path_factory):
    folder = tmp_path_factory.mktemp("saved")
    return {name: fit.save(folder / f"{name}.nc").read_bytes() for name, fit in fits.items()}


def assert_same(loaded, fit):
    point, data = vars(fit.parameters), fit.data
    for name in ARRAYS:
        np.testing.assert_array_equal(getattr(loaded.parameters, name), point[name])
    for name, values in fit.parameters.pooling.items():
        np.testing.assert_array_equal(loaded.parameters.pooling[name], values)
    for name in ("X", "labels", "center", "scale"):
        np.testing.assert_array_equal(getattr(loaded.data, name), getattr(data, name))


def test_other_tools_read_the_file(fits, tmp_path):
    path = fits["nuts"].save(tmp_path / "fit.nc")
    for open_file in (az.from_netcdf, xr.open_datatree):
        with open_file(path) as tree:
            assert tree["posterior"].sizes["draw"] == 50


def damage(whole: bytes, rng: random.Random) -> bytes:
    """The file with flipped bits, a zeroed or exchanged block, cut short or grown."""
    out = bytearray(whole)
    kind = rng.choice(("flip", "flips", "zeros", "noise", "cut", "grow", "move"))
    place = rng.randrange(len(out))
    length = rng.choice((1, 8, 512, 4096))
    if kind in ("flip", "flips"):
        for _ in range(1 if kind == "flip" else 20):
            out[rng.randrange(len(out))] ^= 1 << rng.randrange(8)
    elif kind == "zeros":
        out[place : place + length] = bytes(len(out[place : place + length]))
    elif kind == "noise":
        out[place : place + length] = rng.randbytes(len(out[place : place + length]))
    elif kind == "cut":
        del out[place:]
    elif kind == "grow":
        out += rng.randbytes(length)
    else:
        block = out[place : place + length]
        del out[place : place + length]
        out[:0] = block
    return bytes(out)


TRIALS = [("map", 0, 30), ("nuts", 0, 30), slow("panel", 0, 300)]


@pytest.mark.parametrize(("name", "first", "last"), TRIALS)
def test_a_damaged_file_is_refused(fits, saved, tmp_path, name, first, last):
    path = tmp_path / "fit.nc"
    for trial in range(first, last):
        path.write_bytes(damage(saved[name], random.Random(f"{name} {trial}")))
        begun = time.monotonic()
        try:
            loaded = lepu.load(path)
        except lepu.FileFormatError as error:
            assert str(path) in str(error)  # noqa: PT017 - either outcome is right
        else:
            assert_same(loaded, fits[name])
        assert time.monotonic() - begun < patience(LONGEST)


def test_the_checksum_itself_may_be_damaged(saved, tmp_path):
    whole, path = saved["map"], tmp_path / "fit.nc"
    for place in range(1, TRAILER + 1):
        path.write_bytes(
            whole[:-place] + bytes([whole[-place] ^ 1]) + whole[len(whole) - place + 1 :]
        )
        with pytest.raises(lepu.FileFormatError, match="checksum"):
            lepu.load(path)


def test_arrays_larger_than_their_file_are_refused(tmp_path):
    """HDF5 makes numbers that were never written out of a fill value, as many as it is told."""
    import h5netcdf

    path = tmp_path / "huge.nc"
    with h5netcdf.File(path, "w") as file:
        file.dimensions = {"n": 10**13}
        file.create_variable("x", ("n",), "f8", chunks=(1000,), fillvalue=0.0)
    content = path.read_bytes()
    path.write_bytes(content + _trailer(content))
    begun = time.monotonic()
    with pytest.raises(lepu.FileFormatError, match="claims to hold 80000000000000 bytes"):
        lepu.load(path)
    assert time.monotonic() - begun < patience(LONGEST)


def outside(file, folder):
    secret = folder / "secret"
    secret.write_bytes(bytes(8000))
    file.create_dataset("outside", (1000,), "f8", external=[(str(secret), 0, 8000)])


def deep(file, folder):
    file.create_group("a" + "/a" * 50)


def cycle(file, folder):
    file["posterior" if "posterior" in file else "map"]["itself"] = file["/"]


def linked(file, folder):
    import h5py

    file["other"] = h5py.ExternalLink(str(folder / "other.h5"), "/")


def aliased(file, folder):
    import h5py

    file["again"] = h5py.SoftLink("/")


def packed(file, folder):
    file.create_dataset("zeros", data=np.zeros(10**6), chunks=(10**6,), compression="gzip")


def nested_text(file, folder):
    file["state"]["call"]["JSON"][()] = "[" * 10**4


def not_finite(file, folder):
    file["state"]["parameters"]["b"][...] = np.nan


def no_rates(file, folder):
    file["state"]["parameters"]["log_w"][...] = np.nan


def impossible(file, folder):
    file["state"]["data"]["scale"][...] = -1.0


def incomplete(file, folder):
    del file["state"]["data"]["labels"]


@pytest.mark.parametrize(
    "change",
    [
        outside,
        deep,
        cycle,
        linked,
        aliased,
        packed,
        nested_text,
        not_finite,
        no_rates,
        impossible,
        incomplete,
    ],
)
def test_a_file_made_to_hurt_is_refused(saved, tmp_path, change):
    import h5py

    held = BytesIO(saved["map"][:-TRAILER])
    with h5py.File(held, "a") as file:
        change(file, tmp_path)
    path = tmp_path / "hostile.nc"
    path.write_bytes(held.getvalue() + _trailer(held.getvalue()))
    begun = time.monotonic()
    with pytest.raises(lepu.FileFormatError, match="hostile"):
        lepu.load(path)
    assert time.monotonic() - begun < patience(LONGEST)


def test_a_hostile_formula_in_a_file_is_refused(fits, tmp_path):
    from bayes_lepu.result.saved import read_tree, write_tree

    demo = lepu.load_demo()
    options = {"model": "scar", "method": "map", "class_features": "~ bs(wind_ms, df=4)"}
    tree = read_tree(lepu.fit(demo.X[:300], demo.l[:300], **options).save(tmp_path / "fit.nc"))
    data = tree["state/data"]
    data["JSON"] = str(data["JSON"].item()).replace("df=4", "df=4**9")
    with pytest.raises(lepu.FileFormatError, match="whole number from 1 to 200"):
        lepu.load(write_tree(tree, tmp_path / "hostile.nc"))


def test_a_link_is_followed(fits, tmp_path):
    (tmp_path / "link.nc").symlink_to(tmp_path / "real.nc")
    fits["map"].save(tmp_path / "link.nc")
    assert (tmp_path / "link.nc").is_symlink()
    assert lepu.load(tmp_path / "real.nc").method == "map"


def test_places_that_cannot_be_written_are_named(fits, tmp_path):
    with pytest.raises(OSError, match="there is no folder"):
        fits["map"].save(tmp_path / "nowhere" / "fit.nc")
    with pytest.raises(OSError, match="is a folder"):
        fits["map"].save(tmp_path)


def under_a_size_limit(code: str, path: Path, limit: int) -> subprocess.CompletedProcess:
    def restrict():
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    return subprocess.run(
        [sys.executable, "-c", code, str(path)],
        preexec_fn=restrict,
        capture_output=True,
        text=True,
        timeout=120,
    )


SAVE = """
import sys
import bayes_lepu as lepu
fit = lepu.load(sys.argv[1])
try:
    fit.save(sys.argv[1])
except OSError as error:
    print(error, error.errno)
"""


def test_a_disk_without_room_keeps_the_old_file(fits, tmp_path):
    path = fits["map"].save(tmp_path / "fit.nc")
    before = path.read_bytes()
    done = under_a_size_limit(SAVE, path, 4096)
    assert done.returncode == 0, done.stderr
    assert "was not written" in done.stdout
    assert str(errno.EFBIG) in done.stdout
    assert path.read_bytes() == before
    assert [f.name for f in tmp_path.iterdir()] == ["fit.nc"]


KILLED = """
import sys
from pathlib import Path
from bayes_lepu.runtime.files import replace_file
content = [bytes([k]) * 30_000_000 for k in (1, 2)]
print("begun", flush=True)
while True:
    for c in content:
        replace_file(Path(sys.argv[1]), c)
"""


@pytest.mark.parametrize("trial", [0, *map(slow, range(1, 6))])
def test_a_killed_writer_leaves_a_whole_file(tmp_path, trial):
    path = tmp_path / "file"
    replace_file(path, b"\1" * 30_000_000)
    command = [sys.executable, "-c", KILLED, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(random.Random(trial).uniform(0.02, 0.3))
        process.kill()
    content = path.read_bytes()
    assert len(content) == 30_000_000
    assert len(set(content)) == 1
