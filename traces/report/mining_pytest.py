"""A pytest file for a mined bug: it fails as long as the bug is there, and says why."""

from __future__ import annotations

import json
import re
from typing import Final

from ..mine.answer import Group

_TEXT: Final = '''\
"""A bug that fencepost mine found in {corpus}: {bug}.

Traces that show it: {count}. The shortest story of it lies beside this file, and is held against the model by

    pytest {file}

which fails until the system is mended and has left another trace of that name. With an adapter
(docs/how-to/test-in-lockstep.md of Fencepost explains it) the system tries the steps of the trace, in lockstep with
the model:

    FENCEPOST_IMPL=my_log.py:Adapter pytest {file}
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from fencepost.conformance.cli import main

TRACE = str(Path(__file__).with_name({trace}))
VARIANT = {variant}


def test_{name}(capsys: pytest.CaptureFixture[str]) -> None:
    adapter = os.environ.get("FENCEPOST_IMPL")
    if adapter:
        code = main(["conform", "--impl", adapter, "--replay", TRACE])
    else:
        code = main(["replay", TRACE, "--variant", VARIANT])
    said = capsys.readouterr()
    assert code == 0, "\\n" + said.out + said.err
'''


def pytest_file(group: Group, corpus: str, trace: str, file: str) -> str:
    """The text of a test. ``trace`` and ``file``: the names of the trace beside it and of itself."""
    return _TEXT.format(
        corpus=_plain(corpus),
        bug=_plain(str(group.bug)),
        count=f"{group.count:,}",
        trace=json.dumps(trace),
        file=file,
        variant=json.dumps(group.variant),
        name=slug(str(group.bug)).replace("-", "_"),
    )


def slug(text: str) -> str:
    """What is safe of a text in the name of a file."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:60].rstrip("-") or "bug"


def _plain(text: str) -> str:
    """A text that can stand in a docstring, whatever it holds."""
    return ascii(text)[1:-1].replace('"', "'").replace("\\", "/")
