"""The report as a file: its parts, its escaping, its sizes."""

import inspect
import re
import sys
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import bayes_lepu as lepu
from bayes_lepu.model.parameters import Parameters
from bayes_lepu.report.sections import ORDER, PROBABILITY, checks_table, ranked_rows
from bayes_lepu.result.numbers_in_words import number
from tests.reports import NAMES, QUOTE, SCRIPT, hostile_fit
from tests.test_budget import BUDGETS
from tests.tiny import tiny_table

SECTIONS = (
    "rows",
    "answer",
    "annotator",
    "labels",
    "checks",
    "data",
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
    assert links == ["#rows", *(f"#{key}" for key in SECTIONS)]


def test_every_figure_has_a_reading_and_none_is_said_twice(html):
    """Below the figure, or once above all figures of its section."""
    readings = []
    for section in re.findall(r"<section.*?</section>", html, flags=re.DOTALL):
        shared = re.findall(r'<p class="reading">(.*?)</p>', section, flags=re.DOTALL)
        readings += shared
        for figure in re.findall(r"<figure>(.*?)</figure>", section, flags=re.DOTALL):
            assert "<svg" in figure
            own = re.findall(r"<figcaption>(.*?)</figcaption>", figure, flags=re.DOTALL)
            assert own or shared
            readings += own
    assert len(readings) > 8
    assert min(len(reading) for reading in readings) > 20
    assert len(set(readings)) == len(readings)


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


def test_the_answer_comes_first_without_symbols(html, fit):
    text = "".join(Page(html).text)
    head = text[: text.index("The sections below use symbols")]
    said = fit.answer
    for sentence in (said.missed, said.look, said.trust, said.help):
        assert sentence in head
    assert said.call not in head  # which a manager reads; it stands at the end
    assert said.call in text
    assert not set(head) & set("πσγλαβ·")
    for name in said.decision.rows.index[:8]:
        assert str(name) in head
    found = fit.identifiability
    assert found.verdict in text[len(head) :]
    for carrier in found.carried_by:
        assert carrier in text


def test_both_orders_are_shown_where_the_class_is_not_named(tmp_path):
    fit = hostile_fit(model="spm", n=400)
    text = "".join(Page(fit.report(tmp_path / "r.html").read_text("utf-8")).text)
    assert "With class and annotator swapped" in text
    assert "with t and s swapped" in text
    assert fit.answer.missed in text


def test_what_needs_attention_comes_first_among_the_checks(html, fit):
    rows = checks_table(fit.identifiability).rows
    assert len(rows) == len(fit.identifiability.checks)
    statuses = [ORDER.index(status.text) for _, status, *_ in rows]
    assert statuses == sorted(statuses)
    text = "".join(Page(html).text)
    assert all(row[4].text in text for row in rows)


def test_the_report_computes_nothing_that_the_verdict_has(fit, html, tmp_path, monkeypatch):
    for target in (
        "bayes_lepu.verdict.evidence.trace_profile",
        "bayes_lepu.verdict.evidence.compare_rivals",
        "bayes_lepu.verdict.evidence.form_range",
        "bayes_lepu.verdict.evidence.weigh_audit",
        "bayes_lepu.model.density.LogDensity.sample_prior",
        "bayes_lepu.actions.plain_answer.answer",
    ):
        monkeypatch.setattr(target, _forbidden)
    assert fit.report(tmp_path / "again.html").exists()


def _forbidden(*args, **kwargs):
    raise AssertionError("computed again")


def test_pictures_follow_the_theme(html):
    svgs = "".join(re.findall(r"<svg.*?</svg>", html, flags=re.DOTALL))
    assert "var(--propensity)" in svgs
    # No colour may be left that is the same in light and dark.
    assert not re.findall(r"#[0-9a-fA-F]{6}", svgs)


def test_listed_rows_are_the_most_probable_unlabelled_ones(fit):
    X = pd.DataFrame(
        fit.data.X * fit.data.scale + fit.data.center, columns=NAMES, index=fit.data.index
    )
    expected = fit.missed(X).loc[fit.data.l == 0, "mean"].sort_values(ascending=False)
    found = ranked_rows(fit)
    assert set(found.index) == set(expected.index)
    assert found[PROBABILITY].is_monotonic_decreasing
    np.testing.assert_allclose(found[PROBABILITY], expected.loc[found.index], rtol=1e-9)
    # Shown with seven digits.
    np.testing.assert_allclose(found[NAMES[0]], X.loc[found.index, NAMES[0]], rtol=1e-5)


def test_nothing_is_missed_where_all_is_audited(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2))
    y, l = Parameters.of(a=[2, 0], b=0.5, alpha=[0, 1], beta=0).simulate(X, rng)
    fit = lepu.fit(X, l, y=y, model="spm", method="map", random_seed=1)
    text = fit.report(tmp_path / "r.html").read_text("utf-8")
    assert "every unlabelled row has been checked" in text
    assert 'id="rows"' not in text


@pytest.mark.parametrize("model", ["naive", "scar", "spm"])
def test_every_model_and_a_point_estimate_have_a_report(model, tmp_path):
    fit = hostile_fit(model=model, method="map")
    text = fit.report(tmp_path / "r.html", title="A & B", group_by=QUOTE).read_text("utf-8")
    assert "<title>A &amp; B</title>" in text
    assert "Label rate by a&#34;b" in text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (2500, "2\u202f500"),
        (-1.5, "−1.50"),
        (0.05234, "0.0523"),
        (123.456, "123"),
        (3e-5, "3.00e−05"),
        (-8.88e-16, "0"),
        (float("nan"), "–"),
        (float("inf"), "∞"),
    ],
)
def test_numbers_as_a_reader_wants_them(value, text):
    assert number(value) == text


def test_few_modules_are_crossed_from_fit_to_the_page(tmp_path):
    """Those whose functions are called; `tests/test_budget.py` says how many may be."""
    X, l, *_ = tiny_table()
    package, watch, crossed = str(Path(lepu.__file__).parent), sys.monitoring, set()

    def note(code, _):
        if code.co_flags & inspect.CO_OPTIMIZED:  # of a function, no import
            crossed.add(code.co_filename)
        return watch.DISABLE  # once is enough

    watch.use_tool_id(watch.PROFILER_ID, "modules")
    watch.register_callback(watch.PROFILER_ID, watch.events.PY_START, note)
    watch.set_events(watch.PROFILER_ID, watch.events.PY_START)
    try:
        fit = lepu.fit(X, l, model="spm", method="map", random_seed=1)
        fit.report(tmp_path / "page.html")
    finally:
        watch.set_events(watch.PROFILER_ID, 0)
        watch.free_tool_id(watch.PROFILER_ID)
    found = [name for name in crossed if name.startswith(package) and name.endswith(".py")]
    assert 0 < len(found) <= BUDGETS["modules from fit to page"]
