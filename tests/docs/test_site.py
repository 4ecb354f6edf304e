"""The built pages: strict and offline, searched from disk, nothing cut off."""

import os
import re
import subprocess
import sys
import time

import pytest

from tests.browsing import opened, requests, require_browser
from tests.documents import ROOT
from tests.patience import patience, slow

SOME = (  # the widest outputs, code and tables
    "notebooks/08_fraud.html",
    "notebooks/11_moderation.html",
    "coming-from.html",
    "real-tables.html",
)
# Boxes whose contents are wider than they are, and whatever leaves the window.
CUT_OFF = """
const width = document.documentElement.clientWidth, out = [];
for (const e of document.querySelectorAll('.md-content *')) {
  const box = e.getBoundingClientRect(), style = getComputedStyle(e);
  const scrolls = e.clientWidth > 0 && style.overflowX !== 'visible';
  if (e.tagName === 'NAV' || e.closest('nav')) { continue; }
  if ((scrolls && e.scrollWidth > e.clientWidth + 1.5) || box.right > width + 1.5) {
    out.push(e.tagName + ': ' + e.textContent.trim().slice(0, 60));
  }
}
return out;
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """All pages, built strictly, without any network."""
    folder = tmp_path_factory.mktemp("built") / "site"
    code = (
        "import socket, sys\n"
        "def refuse(*_): raise OSError('the build reached for the network')\n"
        "socket.socket.connect = refuse\n"
        "from mkdocs.__main__ import cli\n"
        f"cli(['build', '--strict', '--quiet', '--site-dir', {str(folder)!r}])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_docs_build_without_warnings(site):
    """And nothing in the pages is fetched from elsewhere."""
    page = (site / "reference" / "fitting.html").read_text("utf-8")
    assert "<math" in page
    assert ":math:" not in page
    assert ".. math::" not in page
    described = page[page.index('id="bayes_lepu.fit"') :]
    row = described[described.index("<code>model</code>") :].split("</tr>")[0]
    assert "auto" in row.split("</td>")[3], "the default is the signature's"
    fetched = re.findall(r"<(?:script|link|img)[^>]+(?:src|href)=\"?(https?://[^\"> ]+)", page)
    assert not fetched


def test_links_between_pages_lead_somewhere(site):
    """To a file, and where they name a place in it, to that place."""
    texts = {page: page.read_text("utf-8") for page in site.rglob("*.html")}
    ids = {page: set(re.findall(r"\bid=\"?([^\"\s>]+)", text)) for page, text in texts.items()}
    broken = []
    for page, text in texts.items():
        if page.name == "404.html":
            continue  # its links start at the root of the published site
        for link in re.findall(r"<a\s[^>]*?href=\"?([^\"\s>]+)", text):
            if re.match(r"[a-z]+:", link):
                continue
            name, _, place = link.partition("#")
            target = (page.parent / name).resolve() if name else page
            there = target.is_file() and (not place or place in ids.get(target, {place}))
            if not there:
                broken.append(f"{page.relative_to(site)}: {link}")
    assert not broken


def test_pages_opened_from_disk_can_be_searched(site, tmp_path):
    require_browser()
    from selenium.webdriver.common.by import By

    page = site / "index.html"
    with opened(page, profile=tmp_path / "profile", width=1300) as driver:
        box = driver.find_element(By.CSS_SELECTOR, "input.md-search__input")
        box.click()
        box.send_keys("prevalence")
        found, until = [], time.monotonic() + patience(20)
        while not found and time.monotonic() < until:
            time.sleep(0.2)
            links = driver.find_elements(By.CSS_SELECTOR, ".md-search-result__link")
            found = [link.get_attribute("href") for link in links]
        assert any("known-prevalence.html" in link for link in found)
        assert all(asked.startswith(("file:", "data:")) for asked in requests(driver, page))


@pytest.mark.parametrize("pages", ["some", slow("all")])
def test_nothing_is_cut_off_at_1300_pixels(site, tmp_path, pages):
    require_browser()
    every = [page for page in sorted(site.rglob("*.html")) if page.name != "404.html"]
    chosen = every if pages == "all" else [site / name for name in SOME]
    with opened(chosen[0], profile=tmp_path / "profile", width=1300) as driver:
        for page in chosen:
            driver.get(page.as_uri())
            assert not driver.execute_script(CUT_OFF), page.relative_to(site)
