"""The report as a file: its parts, its escaping, its sizes."""

import re
import time
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest

import bayes_lepu as lepu
from bayes_lepu.diagnostics.records import Identifiability
from bayes_lepu.models.parameters import Parameters
from bayes_lepu.report import write_report
from bayes_lepu.report.content import call_text
from bayes_lepu.report.missed import SHOWN, missed_rows
from bayes_lepu.report.tables import Cell, Table, number, table
from tests.reports import NAMES, QUOTE, SCRIPT, hostile_fit

SECTIONS = (
    "data",
    "answer",
    "annotator",
    "labels",
    "identifiability",
    "comparison",
    "coefficients",
    "missed",
    "health",
    "reproduce",
)


class Page(HTMLParser):
    """Tags with attributes, section ids in order, and the text outside scripts and styles."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self._inside: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag in ("script", "style"):
            self._inside.append(tag)

    def handle_endtag(self, tag):
        if self._inside and self._inside[-1] == tag:
            self._inside.pop()

    def handle_data(self, data):
        if not self._inside:
            self.text.append(data)

    def count(self, tag):
        return sum(t == tag for t, _ in self.tags)


@pytest.fixture(scope="module")
def fit():
    return hostile_fit()


@pytest.fixture(scope="module")
def html(fit, tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "report.html"
    assert fit.report(path) == path
    return path.read_text(encoding="utf-8")


def test_sections_stand_in_the_order_a_colleague_asks(html):
    page = Page(html)
    found = [a["id"] for tag, a in page.tags if tag == "section"]
    assert tuple(found) == SECTIONS
    links = [a["href"] for tag, a in page.tags if tag == "a"]
    assert links == [f"#{key}" for key in SECTIONS]


def test_every_figure_has_a_reading(html):
    figures = re.findall(r"<figure>(.*?)</figure>", html, flags=re.DOTALL)
    assert len(figures) > 10
    for figure in figures:
        reading = re.search(r"<figcaption>(.*?)</figcaption>", figure, flags=re.DOTALL)
        assert reading is not None
        assert len(reading.group(1).strip()) > 20
        assert "<svg" in figure


def test_column_names_are_text(html):
    page = Page(html)
    assert page.count("script") == 2  # the page's own, and the CSV
    text = "".join(page.text)
    for name in NAMES:
        assert name in text
    assert SCRIPT not in html
    assert all("alert" not in (v or "") for t, a in page.tags if t != "svg" for v in a.values())
    assert any(a.get("aria-label") == QUOTE for t, a in page.tags if t == "svg")


def test_the_page_refers_to_nothing_outside_itself(html):
    page = Page(html)
    for _, attributes in page.tags:
        for name in ("src", "href", "xlink:href", "action", "data"):
            value = attributes.get(name)
            assert value is None or value.startswith("#")
    assert "@import" not in html
    assert not re.search(r"url\((?!#)", html)
    assert "default-src 'none'" in html


def test_ids_are_unique(html):
    ids = [a["id"] for _, a in Page(html).tags if "id" in a]
    assert len(ids) == len(set(ids))


def test_the_verdict_comes_first_with_what_carries_it(html, fit):
    text = "".join(Page(html).text)
    found = fit.identifiability
    assert found.verdict in text
    assert text.index(found.verdict) < text.index("The data")
    for carrier in found.carried_by:
        assert carrier in text


def test_the_head_gives_the_class_prior_under_both_namings(tmp_path):
    fit = hostile_fit(model="spm")
    other = fit.identifiability.exchanged_pi
    text = "".join(Page(fit.report(tmp_path / "r.html").read_text("utf-8")).text)
    own = fit.class_prior().loc["pi", "mean"]
    assert f"{own:.3f} or {other['mean']:.3f}" in text
    assert f"with the factors exchanged: 89% interval {other['lower']:.3f} to" in text


def test_pictures_follow_the_theme(html):
    svgs = "".join(re.findall(r"<svg.*?</svg>", html, flags=re.DOTALL))
    assert "var(--propensity)" in svgs
    # No colour may be left that is the same in light and dark.
    assert not re.findall(r"#[0-9a-fA-F]{6}", svgs)


def test_same_fit_same_page(fit, html, tmp_path):
    again = fit.report(tmp_path / "again.html").read_text(encoding="utf-8")

    def without_date(text):
        return re.sub(r"Written [^<]*by", "", text)

    assert without_date(again) == without_date(html)


def test_missed_rows_are_the_most_probable_unlabelled_ones(fit):
    X = pd.DataFrame(
        fit.data.X * fit.data.scale + fit.data.center, columns=NAMES, index=fit.data.index
    )
    expected = fit.missed(X).loc[fit.data.l == 0, "mean"].sort_values(ascending=False)
    found = missed_rows(fit)
    listed = [row[0].text for row in found.table.rows]
    # The report uses every second draw of 1000: ranks may move, probabilities hardly.
    assert len(listed) == SHOWN
    np.testing.assert_allclose(
        expected.loc[listed].to_numpy(), expected.iloc[:SHOWN].to_numpy(), atol=0.03
    )
    assert found.total == int((fit.data.l == 0).sum())
    assert found.expected == pytest.approx(expected.sum(), rel=0.02)


def test_audited_rows_are_not_listed_as_missed():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    _, l = Parameters.of(a=[2, 0], b=0.5, alpha=[0, 1], beta=0).simulate(X, rng)
    y = np.full(300, np.nan)
    audited = np.flatnonzero(l == 0)[:40]
    y[audited] = rng.integers(0, 2, 40)
    fit = lepu.fit(X, l, y=y, model="spm", method="map", random_seed=1)
    listed = {int(row[0].text) for row in missed_rows(fit).table.rows}
    assert listed.isdisjoint(audited.tolist())
    assert listed <= set(np.flatnonzero(l == 0).tolist())


def test_nothing_is_missed_where_all_is_audited(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2))
    y, l = Parameters.of(a=[2, 0], b=0.5, alpha=[0, 1], beta=0).simulate(X, rng)
    fit = lepu.fit(X, l, y=y, model="spm", method="map", random_seed=1)
    assert missed_rows(fit).total == 0
    given = Identifiability(1, "Known.", ("data",), ())
    path = write_report(fit, tmp_path / "r.html", identifiability=given)
    assert "Of 0 unlabelled rows" in path.read_text("utf-8")


@pytest.mark.parametrize("model", ["naive", "scar", "spm"])
def test_every_model_and_a_point_estimate_have_a_report(model, tmp_path):
    fit = hostile_fit(model=model, method="map")
    text = fit.report(tmp_path / "r.html", title="A & B", group_by=[QUOTE]).read_text("utf-8")
    assert "<title>A &amp; B</title>" in text
    assert "Label rate by a&#34;b" in text


def test_the_call_can_be_run_again(fit):
    assert "random_seed=3" in call_text(fit)
    masked = hostile_fit(model="spm", method="map", selection_features=[QUOTE])
    assert f"selection_features=[{QUOTE!r}]" in call_text(masked)
    scope: dict[str, object] = {}
    code = call_text(masked).splitlines()[1]
    X = pd.DataFrame(masked.data.X * masked.data.scale + masked.data.center, columns=NAMES)
    exec(code, {"lepu": lepu, "X": X, "l": masked.data.l}, scope)  # the page's own promise
    np.testing.assert_allclose(scope["fit"].draws.a, masked.draws.a, rtol=1e-6)


def test_a_name_the_font_lacks_is_still_text(tmp_path):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(200, 2)), columns=["明るさ", "_hidden"])
    _, l = Parameters.of(a=[2, 1], b=0).simulate(X.to_numpy(), rng)
    l[:5] = 0
    fit = lepu.fit(X, l, model="spm", method="map", random_seed=1)
    text = fit.report(tmp_path / "r.html").read_text("utf-8")
    svgs = "".join(re.findall(r"<svg.*?</svg>", text, flags=re.DOTALL))
    assert "明るさ</text>" in svgs
    assert "_hidden</text>" in svgs


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (2500, "2\u2009500"),
        (-1.5, "−1.50"),
        (0.05234, "0.0523"),
        (123.456, "123"),
        (3e-5, "3.00e−05"),
        (float("nan"), "–"),
        (float("inf"), "∞"),
    ],
)
def test_numbers_as_a_reader_wants_them(value, text):
    assert number(value) == text


def test_tables_know_their_numbers_and_widths():
    made = table(["name", "value"], [["short", 1.5], ["x" * 80, float("nan")]])
    assert made.numeric == (False, True)
    assert made.widths[0] == 24
    assert made.rows[1][1] == Cell("–", None)
    assert Table(("a",), ()).numeric == (False,)


@pytest.mark.slow
def test_large_data_stay_small_and_quick(tmp_path):
    rng = np.random.default_rng(1)
    sizes = {}
    for n in (5_000, 100_000):
        X = rng.normal(size=(n, 10))
        point = Parameters.of(a=np.r_[2.0, 1, 1, np.zeros(7)], b=0, alpha=np.r_[np.zeros(8), 1, 1])
        _, l = point.simulate(X, rng)
        method = "nuts" if n == 5_000 else "laplace"
        fit = lepu.fit(X, l, method=method, random_seed=1, progressbar=False)
        start = time.process_time()
        path = fit.report(tmp_path / f"{n}.html")
        if n == 5_000:
            assert time.process_time() - start < 20
        sizes[n] = path.stat().st_size
    assert sizes[5_000] < 5e6
    assert sizes[100_000] < 8e6
