"""The two pictures of the README. `python docs/generator/screenshots.py` takes them again.

`check.svg` is a command in a terminal of 80 columns. `counterexample.png` is a page of `fencepost explore`
in a headless Chromium; it needs Chromium and its driver.
"""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.text import Text
from selenium.webdriver.common.by import By

_ROOT: Final = Path(__file__).parents[2]
_IMAGES: Final = _ROOT / "docs" / "images"
CHECK: Final = "fencepost check traces/bundled/failover/6-unclean-election/broker-*"
EXPLORE: Final = "fencepost explore fencing --drop follower_fetch.epoch_not_fenced --html"
_STAGE: Final = "traces/bundled/failover/6-unclean-election"
_WIDTH: Final = 80


def terminal(command: str, output: str) -> str:
    """Return a picture of a command and its coloured output, as SVG without fonts from elsewhere."""
    console = Console(record=True, width=_WIDTH, file=io.StringIO(), force_terminal=True, color_system="truecolor")
    console.print(Text(f"$ {command}", style="bold"))
    console.print(Text.from_ansi(output.rstrip()))
    svg = console.export_svg(title="fencepost check", unique_id="check")
    svg = re.sub(r"@font-face \{.*?\}\s*|<!--.*?-->\s*", "", svg, flags=re.DOTALL)
    return svg.replace("Fira Code, monospace", "ui-monospace, Menlo, Consolas, monospace")


def take_check() -> None:
    """Write `check.svg`."""
    brokers = [f"{_STAGE}/broker-{number}" for number in (1, 2, 3)]
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, "-m", "fencepost", "check", *brokers, "--report", f"{folder}/report", "--no-search"],
            cwd=_ROOT,
            env={**os.environ, "COLUMNS": str(_WIDTH), "FORCE_COLOR": "1", "TERM": "xterm-256color"},
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 1, done.stderr
    (_IMAGES / "check.svg").write_text(terminal(CHECK, done.stdout), encoding="utf-8")


def take_counterexample() -> None:
    """Write `counterexample.png`: the page at the step that breaks the invariant."""
    sys.path.insert(0, str(_ROOT))
    from tests.traces.report.browser import started

    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "counterexample.html"
        subprocess.run([sys.executable, "-m", *EXPLORE.split(), str(page)], cwd=_ROOT, check=False, capture_output=True)
        with started(Path(folder)) as browser:
            browser.set_window_size(1280, 1060)
            browser.get(page.as_uri())
            browser.find_element(By.XPATH, "//button[contains(., 'Where it breaks')]").click()
            browser.save_screenshot(str(_IMAGES / "counterexample.png"))


if __name__ == "__main__":
    take_check()
    take_counterexample()
    for name in ("check.svg", "counterexample.png"):
        print(f"docs/images/{name}: {(_IMAGES / name).stat().st_size:,} bytes")
