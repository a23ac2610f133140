"""Install Debian's Chromium for the browser tests, where it is missing and may be installed.

Run by tox before the tests. Prints one line on what it did, or why it did nothing. The
tests then skip without a browser and say so; where ``FENCEPOST_REQUIRE_BROWSER`` is set, this fails instead.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
PACKAGES = ("chromium", "chromium-driver", "fonts-dejavu-core")
SECONDS = 600


def missing() -> list[str]:
    """What test_browser.py would not find: in the environment's CHROMIUM and CHROMEDRIVER, else on PATH."""
    found = {
        "Chromium": os.environ.get("CHROMIUM") or any(map(shutil.which, BROWSERS)),
        "chromedriver": os.environ.get("CHROMEDRIVER") or shutil.which("chromedriver"),
    }
    return [name for name, where in found.items() if not where]


def apt_get(*arguments: str) -> str | None:
    """Run apt-get without questions; what it said last where it failed."""
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    command = ["apt-get", "-q", "-y", *arguments]
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=SECONDS)
    except (OSError, subprocess.SubprocessError) as error:
        return f"{type(error).__name__}"
    said = (done.stderr.strip() or done.stdout.strip() or "nothing").splitlines()
    return None if done.returncode == 0 else f"exit {done.returncode}, {said[-1]}"


def install(packages: Sequence[str] = PACKAGES) -> tuple[bool, str]:
    """Whether the browser is there in the end, and one line about it."""
    lacking = " and ".join(missing())
    if not lacking:
        return True, "Chromium and chromedriver are there; nothing is installed"
    hint = f"{lacking} missing; install the Debian packages {' '.join(packages)}"
    if os.geteuid() != 0:
        return False, f"{hint} (not tried: not running as root)"
    if shutil.which("apt-get") is None:
        return False, f"{hint} (not tried: there is no apt-get)"
    # A failed update is told only where the installation fails too: the lists may be fresh enough.
    update = apt_get("update")
    failed = apt_get("install", "--no-install-recommends", *packages)
    if failed is not None:
        return False, f"{hint} (apt-get install: {failed}{f'; apt-get update: {update}' if update else ''})"
    left = " and ".join(missing())
    if left:
        return False, f"apt-get installed {' '.join(packages)}, and still there is no {left} on PATH"
    return True, f"apt-get installed {' '.join(packages)}"


def main() -> int:
    """Returns the exit code."""
    there, said = install()
    print(f"install_chromium: {said}")
    return 1 if not there and os.environ.get("FENCEPOST_REQUIRE_BROWSER") else 0


if __name__ == "__main__":
    sys.exit(main())
