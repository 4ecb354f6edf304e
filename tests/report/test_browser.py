"""The report in a real browser: headless Chromium with the page opened from disk."""

import time

import pandas as pd
import pytest

from tests.browsing import opened, requests, require_browser, set_screen
from tests.reports import NAMES, SCRIPT, hostile_fit

# Every piece of text outside scrolling boxes that leaves the window, or its own picture.
OVERFLOWING = """
const out = [], width = document.documentElement.clientWidth;
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (walker.nextNode()) {
  const node = walker.currentNode, parent = node.parentElement;
  if (!node.textContent.trim() || parent.closest('.scroll, script, style')) { continue; }
  const range = document.createRange();
  range.selectNodeContents(node);
  const svg = parent.closest('svg');
  const box = svg ? svg.getBoundingClientRect() : {left: 0, right: width};
  for (const r of range.getClientRects()) {
    if (r.right > box.right + 1.5 || r.left < box.left - 1.5) {
      out.push(node.textContent.trim().slice(0, 60));
    }
  }
}
return out;
"""


UNFOLD = "document.querySelectorAll('details').forEach(d => { d.open = true; })"


@pytest.fixture(scope="module")
def fit():
    return hostile_fit()


@pytest.fixture(scope="module")
def page(fit, tmp_path_factory):
    return fit.report(tmp_path_factory.mktemp("page") / "report.html")


@pytest.fixture(scope="module", autouse=True)
def _installed():
    require_browser()


@pytest.fixture
def browser(page, tmp_path):
    with opened(page, profile=tmp_path / "profile", width=1200) as driver:
        yield driver


def brightness(driver):
    color = driver.execute_script("return getComputedStyle(document.body).backgroundColor")
    return sum(int(part) for part in color.strip("rgba()").split(",")[:3]) / 3


def column(driver, position):
    return driver.execute_script(
        "return Array.from(document.querySelectorAll('#rows-table-1 tbody tr')).map(r => "
        "r.cells[arguments[0]].getAttribute('data-value') || r.cells[arguments[0]].textContent)",
        position,
    )


def click_heading(driver, position):
    driver.execute_script(
        "document.querySelectorAll('#rows-table-1 th button')[arguments[0]].click()", position
    )


def test_no_error_and_no_request(browser, page):
    assert browser.title == "800 rows: what the labels missed"
    messages = browser.get_log("browser")
    assert messages == []
    assert requests(browser, page) == [page.as_uri()]


def test_the_table_sorts(browser):
    probability = [float(v) for v in column(browser, 1)]
    assert probability == sorted(probability, reverse=True)
    click_heading(browser, 1)
    assert [float(v) for v in column(browser, 1)] == sorted(probability)
    click_heading(browser, 1)
    assert [float(v) for v in column(browser, 1)] == sorted(probability, reverse=True)
    click_heading(browser, 0)
    rows = [int(name.removeprefix("r")) for name in column(browser, 0)]
    assert rows == sorted(rows)
    assert rows != list(range(len(rows)))
    state = browser.execute_script(
        "return Array.from(document.querySelectorAll('#rows-table-1 th'))"
        ".map(t => t.getAttribute('aria-sort'))"
    )
    assert state[0] == "ascending"
    assert set(state[1:]) == {None}


def test_the_csv_downloads(browser, fit, tmp_path):
    folder = tmp_path / "downloads"
    folder.mkdir()
    browser.execute_cdp_cmd(
        "Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(folder)}
    )
    browser.execute_script("document.querySelector('button.download').click()")
    target = folder / "rows.csv"
    deadline = time.monotonic() + 20
    while not target.exists() and time.monotonic() < deadline:
        time.sleep(0.1)
    table = pd.read_csv(target)
    assert len(table) == int((fit.data.l == 0).sum())
    assert set(table["row"]) == set(fit.data.index[fit.data.l == 0])
    assert table["P(y=1 | x, l=0)"].is_monotonic_decreasing
    assert set(NAMES) <= set(table.columns)
    assert browser.get_log("browser") == []


def test_dark_mode_switches(browser):
    assert brightness(browser) > 200
    browser.execute_script("document.getElementById('theme').click()")
    assert brightness(browser) < 60
    ink = browser.execute_script(
        "return getComputedStyle(document.querySelector('figure svg text')).fill"
    )
    assert min(int(v) for v in ink.strip("rgb()").split(",")) > 180
    browser.execute_script("document.getElementById('theme').click()")
    assert brightness(browser) > 200


@pytest.mark.parametrize("width", [400, 1200])
def test_no_text_overflows(browser, width):
    set_screen(browser, width)
    browser.execute_script(UNFOLD)
    assert browser.execute_script("return window.innerWidth") == width
    assert browser.execute_script(OVERFLOWING) == []
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("width", [400, 800, 1200])
def test_tables_of_sentences_show_all_their_columns(browser, width):
    """Nothing has to be scrolled sideways to read what a check found and what would help."""
    set_screen(browser, width)
    browser.execute_script(UNFOLD)
    sizes = browser.execute_script(
        "return Object.fromEntries(Array.from(document.querySelectorAll('.scroll')).map(s => "
        "[s.getAttribute('aria-label'), [s.scrollWidth, s.clientWidth]]))"
    )
    content, room = sizes["Checks"]
    assert content <= room
    shown = browser.execute_script(
        "const row = document.querySelector('#checks-table-1 tbody tr');"
        "return Array.from(row.cells).map(c => c.getBoundingClientRect()).map(r => "
        "[r.left, r.right, r.width * r.height])"
    )
    assert all(left >= 0 and right <= width for left, right, area in shown if area)
    assert sum(area > 0 for _, _, area in shown) >= 5


@pytest.mark.parametrize("width", [400, 1300])
def test_the_first_screen_answers(browser, fit, width):
    """How many, whether to trust it, and which rows, before anything has to be scrolled."""
    set_screen(browser, width)
    bottom = browser.execute_script(
        "return ['.missed', '.trust', '.look p', '.look tbody tr'].map(q => "
        "document.querySelector(q).getBoundingClientRect().bottom)"
    )
    assert max(bottom) < 900
    shown = browser.execute_script("return document.querySelector('header').innerText")
    assert fit.answer.missed in shown
    assert not set(shown) & set("πσγλαβ·")


def test_hostile_names_are_shown_as_they_are(browser):
    from selenium.common.exceptions import NoAlertPresentException

    with pytest.raises(NoAlertPresentException):
        _ = browser.switch_to.alert
    heads = browser.execute_script(
        "return Array.from(document.querySelectorAll('th button')).map(b => b.textContent)"
    )
    assert set(NAMES) <= set(heads)
    drawn = browser.execute_script(
        "return Array.from(document.querySelectorAll('svg text')).map(t => t.textContent)"
    )
    assert SCRIPT in drawn
    assert "$x^2$ & 100%" in drawn
