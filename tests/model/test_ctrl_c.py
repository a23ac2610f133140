"""An interrupt is never lost and leaves no temporary folder behind."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from fencepost.model.core.ctrl_c import CtrlC
from fencepost.model.core.temporary_folder import TemporaryFolder

SWALLOWED = """
import os, signal, time
from fencepost.model.core.ctrl_c import CtrlC, resend_if_swallowed

def handler(_number, _frame):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise CtrlC

class Slow:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGTERM)
        for _ in range(100):
            pass

signal.signal(signal.SIGTERM, handler)
if {resend}:
    resend_if_swallowed(signal.SIGTERM, handler)
try:
    Slow()
    time.sleep({seconds})
    print("lost")
except CtrlC:
    print("caught")
"""


@pytest.mark.parametrize(("resend", "seconds", "answer"), [(True, 60, "caught"), (False, 0.1, "lost")])
def test_ctrl_c_survives_a_destructor(resend: bool, seconds: float, answer: str) -> None:
    script = SWALLOWED.format(resend=resend, seconds=seconds)
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    assert ran.stdout == f"{answer}\n"


def test_temporary_folder_survives_no_interrupt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = Path.mkdir

    def interrupted(path: Path, mode: int = 0o777, parents: bool = False, exist_ok: bool = False) -> None:
        made(path, mode, parents, exist_ok)
        raise CtrlC

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with monkeypatch.context() as patched:
        patched.setattr(Path, "mkdir", interrupted)
        with pytest.raises(CtrlC):
            TemporaryFolder("x-")
    assert list(tmp_path.iterdir()) == []


def test_temporary_folder_is_private_and_removed(tmp_path: Path) -> None:
    with TemporaryFolder("x-", tmp_path) as folder:
        assert folder.parent == tmp_path
        assert folder.stat().st_mode & 0o777 == 0o700
        (folder / "file").write_text("content")
    folder = TemporaryFolder("x-", tmp_path)
    path = folder.path
    del folder
    assert not path.exists()
    assert list(tmp_path.iterdir()) == []
