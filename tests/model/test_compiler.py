"""What was compiled is kept, and loaded again only where it is whole, this user's own, and of this very text."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from fencepost.model.core.errors import BadInput
from fencepost.model.interpret import compiler as compiling
from fencepost.model.interpret.compiler import MOST_KEPT, Compiler, compiled, find_compiler, kept

from .conftest import needs_compiler

pytestmark = needs_compiler

TEXT = "int answer(void) { return 42; }\n"
OTHER = "int answer(void) { return 43; }\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "fencepost" / "compiled"


@pytest.fixture
def gcc(monkeypatch: pytest.MonkeyPatch) -> Compiler:
    """The compiler; and nothing is loaded yet."""
    monkeypatch.setattr(compiling, "_loaded", {})
    found = find_compiler()
    assert found is not None
    return found


def test_it_is_compiled_once(folder: Path, gcc: Compiler, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not kept(gcc, TEXT)
    assert compiled(gcc, TEXT).answer() == 42
    assert kept(gcc, TEXT) and not kept(gcc, OTHER) and not kept(Compiler(gcc.command, "another version"), TEXT)
    (file,) = folder.iterdir()
    assert folder.stat().st_mode & 0o77 == 0
    monkeypatch.setattr(compiling, "_loaded", {})
    monkeypatch.setattr(compiling, "_compile", None)
    assert compiled(gcc, TEXT).answer() == 42 and list(folder.iterdir()) == [file]


def cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-100])


def empty(file: Path) -> None:
    file.write_bytes(b"")


def changed(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)


def open_to_others(file: Path) -> None:
    file.chmod(0o666)


def a_folder(file: Path) -> None:
    file.unlink()
    file.mkdir()
    file.rmdir()


@pytest.mark.parametrize("damage", [cut, empty, changed, open_to_others, a_folder])
def test_a_damaged_file_is_compiled_again(folder: Path, gcc: Compiler, damage: object) -> None:
    compiled(gcc, TEXT)
    compiling._loaded.clear()
    (file,) = folder.iterdir()
    # A copy: what is loaded may not be changed under a process's feet.
    copy = shutil.copy2(file, folder / "copy")
    Path(copy).replace(file)
    assert kept(gcc, TEXT)
    damage(file)  # type: ignore[operator]
    assert not kept(gcc, TEXT)
    assert compiled(gcc, TEXT).answer() == 42
    assert kept(gcc, TEXT)


def test_a_file_of_another_text_is_not_taken_for_this_one(folder: Path, gcc: Compiler) -> None:
    compiled(gcc, OTHER)
    (other,) = folder.iterdir()
    compiling._loaded.clear()
    compiled(gcc, TEXT)
    (mine,) = set(folder.iterdir()) - {other}
    compiling._loaded.clear()
    mine.unlink()
    shutil.copy2(other, mine)
    assert not kept(gcc, TEXT)
    assert compiled(gcc, TEXT).answer() == 42


def test_a_folder_that_others_may_write_to_is_not_used(folder: Path, gcc: Compiler) -> None:
    folder.mkdir(parents=True)
    folder.chmod(0o777)
    assert compiled(gcc, TEXT).answer() == 42
    assert list(folder.iterdir()) == [] and not kept(Compiler(gcc.command, gcc.version), OTHER)


def test_the_oldest_are_forgotten(folder: Path, gcc: Compiler) -> None:
    folder.mkdir(parents=True, mode=0o700)
    for number in range(MOST_KEPT + 3):
        (folder / f"{number}.so").touch()
    compiled(gcc, TEXT)
    assert len(list(folder.glob("*.so"))) == MOST_KEPT and kept(gcc, TEXT)


def test_a_text_that_does_not_compile_is_one_line(folder: Path, gcc: Compiler) -> None:
    with pytest.raises(BadInput, match="did not compile a search: ") as refused:
        compiled(gcc, "int answer(void) { return }\n")
    assert "\n" not in str(refused.value)
    assert list(folder.iterdir()) == []


def test_cc_names_the_compiler(tmp_path: Path) -> None:
    """In processes of their own: what was found is remembered."""
    program = (
        "from fencepost.model.core.errors import BadInput\n"
        "from fencepost.model.interpret.compiler import find_compiler\n"
        "try:\n    print(find_compiler())\nexcept BadInput as refused:\n    print(refused)\n"
    )

    def said(**environment: str) -> str:
        return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment).stdout

    assert said(PATH=str(tmp_path), CC="no-such-cc -x").startswith("CC: no-such-cc -x is no C compiler that runs; ")
    (tmp_path / "mycc").write_text("#!/bin/sh\necho mycc 1.0\n")
    (tmp_path / "mycc").chmod(0o755)
    mine = said(PATH=f"{tmp_path}:/usr/bin:/bin", CC="mycc -pipe")
    assert mine.startswith("Compiler(command=('mycc', '-pipe'), version='mycc 1.0')")
