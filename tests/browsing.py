"""Pages in a real browser: headless Chromium with files opened from disk."""

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

BROWSER = shutil.which("chromium") or shutil.which("google-chrome")
DRIVER = shutil.which("chromedriver")
MISSING = "chromium and chromedriver are not installed; `make browser` installs them"
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)


def require_browser():
    """A missing browser is a skip on one's own machine and an error where LEPU_REQUIRE_BROWSER."""
    if BROWSER is None or DRIVER is None:
        if os.environ.get("LEPU_REQUIRE_BROWSER"):
            pytest.fail(MISSING)
        pytest.skip(MISSING)


@contextmanager
def opened(page, *, profile, width) -> Iterator:
    """A browser with a window of this width that shows the page."""
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = BROWSER
    for flag in (*FLAGS, f"--user-data-dir={profile}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(DRIVER))
    try:
        set_screen(driver, width)
        driver.get(page.as_uri())
        yield driver
    finally:
        driver.quit()


def set_screen(driver, width, *, scheme="light"):
    driver.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False},
    )
    driver.execute_cdp_cmd(
        "Emulation.setEmulatedMedia",
        {"features": [{"name": "prefers-color-scheme", "value": scheme}]},
    )


def requests(driver, page):
    """What this page asked for, in order; not what the browser's own start page did."""
    events = [json.loads(e["message"])["message"] for e in driver.get_log("performance")]
    return [
        e["params"]["request"]["url"]
        for e in events
        if e["method"] == "Network.requestWillBeSent"
        and e["params"]["documentURL"] == page.as_uri()
    ]
