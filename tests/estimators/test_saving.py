"""Classifiers in files of plain data: the same again, or a clear error, and nothing is run."""

import hashlib
import json
import pickle

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("sklearn")

from sklearn.exceptions import NotFittedError

from bayes_lepu.errors import FileFormatError, ModelError
from bayes_lepu.estimators import ElkanNotoClassifier, PUClassifier, PUClassifierCV, load
from bayes_lepu.links import sigmoid


@pytest.fixture(scope="module")
def sample():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    return X, (rng.random(300) < sigmoid(X[:, 0] - 0.5)).astype(int)


def saved(sample):
    X, l = sample
    table = pd.DataFrame(X, columns=["=heat", "wind\n", "μ"])
    words = np.where(l == 1, "yes", "no")
    return table, [
        PUClassifier(model="spm", random_state=0).fit(table, words),
        PUClassifier(model="probit", random_state=0).fit(table, words),
        PUClassifierCV(model="scar", class_penalties=[0.1, 1.0], cv=2).fit(X, l),
        ElkanNotoClassifier(random_state=0).fit(table, l),
    ]


def test_a_saved_classifier_is_the_same_again(sample, tmp_path):
    table, estimators = saved(sample)
    for estimator in estimators:
        again = load(estimator.save(tmp_path / "estimator.json"))
        assert type(again) is type(estimator)
        assert str(again.get_params()) == str(estimator.get_params())
        assert vars(again).keys() == vars(estimator).keys()
        X = table if hasattr(estimator, "feature_names_in_") else table.to_numpy()
        np.testing.assert_array_equal(again.predict(X), estimator.predict(X))
        np.testing.assert_array_equal(again.predict_proba(X), estimator.predict_proba(X))
        np.testing.assert_array_equal(again.predict_propensity(X), estimator.predict_propensity(X))
        if hasattr(estimator, "modes_"):
            pd.testing.assert_frame_equal(again.modes_, estimator.modes_)


def test_a_damaged_or_foreign_classifier_is_refused(sample, tmp_path):
    X, l = sample
    path = PUClassifier(model="naive").fit(X, l).save(tmp_path / "estimator.json")
    whole, rng = path.read_bytes(), np.random.default_rng(0)
    for _ in range(100):
        damaged = bytearray(whole)
        damaged[rng.integers(len(whole))] ^= 1 << rng.integers(8)
        path.write_bytes(damaged)
        with pytest.raises(FileFormatError, match="estimator"):
            load(path)
    head, body = whole.split(b"\n", 1)
    foreign = [b"", b"[]", b"{}", b"\xff", whole[:50], pickle.dumps(1), b"[" * 100_000]
    for content in (*foreign, head.replace(b'"version": 1', b'"version": 2') + b"\n" + body):
        path.write_bytes(content)
        with pytest.raises(FileFormatError, match="estimator"):
            load(path)
    with pytest.raises(FileFormatError, match="cannot be read"):
        load(tmp_path / "nowhere.json")


def test_only_what_the_library_wrote_is_set(tmp_path):
    def forged(**content):
        body = json.dumps(content).encode()
        head = {"format": "bayes_lepu.estimator", "version": 1}
        head["sha256"] = hashlib.sha256(body).hexdigest()
        path = tmp_path / "forged.json"
        path.write_bytes(json.dumps(head).encode() + b"\n" + body)
        return path

    for content in (
        {"class": "Popen", "parameters": {}, "fitted": {}},
        {"class": "PUClassifier", "parameters": {}, "fitted": {"predict": 1}},
        {"class": "PUClassifier", "parameters": {}, "fitted": {"__class__": 1}},
        {"class": "PUClassifier", "parameters": {"zz": 1}, "fitted": {}},
        {
            "class": "PUClassifier",
            "parameters": {},
            "fitted": {"x_": {"array": [1], "dtype": "V8"}},
        },
        {
            "class": "PUClassifier",
            "parameters": {},
            "fitted": {"x_": {"array": [1], "dtype": "zz"}},
        },
        {"class": "PUClassifier", "parameters": {}, "fitted": {"x_": {"other": 1}}},
        {"class": ["PUClassifier"], "parameters": {}, "fitted": {}},
    ):
        with pytest.raises(FileFormatError, match="is incomplete"):
            load(forged(**content))


def test_what_is_no_plain_data_is_not_saved(sample, tmp_path):
    X, l = sample
    fitted = PUClassifier(model="naive", random_state=np.random.RandomState(0)).fit(X, l)
    with pytest.raises(ModelError, match="random_state"):
        fitted.save(tmp_path / "estimator.json")
    assert not list(tmp_path.iterdir())
    with pytest.raises(NotFittedError):
        PUClassifier().save(tmp_path / "estimator.json")
