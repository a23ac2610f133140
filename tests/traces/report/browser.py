"""A page opened in a headless Chromium, and what the browser does with it.

Needs Selenium, Chromium and its driver (Debian: ``chromium`` and ``chromium-driver``). They are taken from
``CHROMIUM`` and ``CHROMEDRIVER``, else from PATH. Without them the tests are skipped, unless
``FENCEPOST_REQUIRE_BROWSER`` is set: then that is a failure.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

import pytest


def absent(what: str) -> NoReturn:
    if os.environ.get("FENCEPOST_REQUIRE_BROWSER"):
        pytest.fail(f"FENCEPOST_REQUIRE_BROWSER is set, but {what}")
    pytest.skip(f"absent: {what}")


@contextmanager
def started(profile: Path) -> Iterator[Any]:
    """A browser with a fresh profile."""
    try:
        from selenium import webdriver
        from selenium.webdriver.chrome.service import Service
    except ImportError:
        absent("Selenium is not installed")
    names = ("chromium", "chromium-browser", "google-chrome")
    browser = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, names)), None)
    if browser is None:
        absent("there is no Chromium: set CHROMIUM or install the package chromium")
    server = os.environ.get("CHROMEDRIVER") or shutil.which("chromedriver")
    if server is None:
        absent("there is no chromedriver: set CHROMEDRIVER or install the package chromium-driver")
    options = webdriver.ChromeOptions()
    options.binary_location = browser
    for flag in (
        "--headless",
        "--no-sandbox",  # a container's root cannot use the sandbox, and the page is our own
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--disable-quic",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--window-size=1300,1000",
        f"--user-data-dir={profile}",
    ):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"performance": "ALL", "browser": "ALL"})
    found = webdriver.Chrome(options=options, service=Service(executable_path=server))
    try:
        yield found
    finally:
        found.quit()


class Page:
    """A file opened in the browser, and what the browser did with it."""

    def __init__(self, driver: Any) -> None:
        self.driver = driver

    def open(self, path: Path, fragment: str = "") -> Page:
        self.driver.get("about:blank")
        for log in ("performance", "browser"):
            self.driver.get_log(log)  # reading empties it
        self.driver.get(path.as_uri() + fragment)
        return self

    def script(self, text: str, *arguments: object) -> Any:
        return self.driver.execute_script(f"return {text}", *arguments)

    def text(self, selector: str) -> str:
        return str(self.script("document.querySelector(arguments[0]).textContent", selector))

    def texts(self, selector: str) -> list[str]:
        return list(self.script("[...document.querySelectorAll(arguments[0])].map((n) => n.textContent)", selector))

    def click(self, selector: str) -> None:
        self.driver.find_element("css selector", selector).click()

    def press(self, key: str, selector: str = "body") -> None:
        self.driver.find_element("css selector", selector).send_keys(key)

    def step(self) -> str:
        """The step shown; all the places that name it must agree."""
        shown = self.text("#where").split()[1]
        assert self.text("#step-title").startswith(f"Step {shown}: ")
        assert self.text("#live").startswith(f"Step {shown} of ")
        assert self.script("document.getElementById('slider').value") == shown
        selected = self.script("document.querySelectorAll('[aria-selected=true]').length")
        assert selected == 1
        assert self.script("document.querySelector('[aria-selected=true]').id") == f"column-{shown}"
        return shown

    def requests(self) -> list[str]:
        """Every address that the page asked for since it was opened, whether it was let through or not."""
        messages = [json.loads(each["message"])["message"] for each in self.driver.get_log("performance")]
        return [each["params"]["request"]["url"] for each in messages if each["method"] == "Network.requestWillBeSent"]

    def complaints(self) -> list[str]:
        return [each["message"] for each in self.driver.get_log("browser")]
