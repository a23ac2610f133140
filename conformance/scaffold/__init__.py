"""What ``fencepost new`` writes: a small protocol with everything that a protocol can have, to be changed into yours.

``two-phase commit`` in seven files, each a Jinja template whose one word is the protocol's name.
"""

from __future__ import annotations

import keyword
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from jinja2 import Environment, PackageLoader, StrictUndefined

from ...model.core.errors import BadInput
from ...model.core.registry import REGISTRY

FILES: Final[Mapping[str, str]] = {
    "protocol.py.j2": "{name}.py",
    "proof.py.j2": "{name}_proof.py",
    "harness.py.j2": "{name}_harness.py",
    "system.py.j2": "{name}_system.py",
    "free.py.j2": "{name}_free.py",
    "test.py.j2": "test_{name}.py",
    "pyproject.toml.j2": "pyproject.toml",
}
"""By template, the name of the file."""


def files_of(name: str) -> dict[str, str]:
    """The text of each file of a new protocol, by the file's name. Raises BadInput for a name that cannot be one."""
    if not name.isidentifier() or keyword.iskeyword(name) or not name.isascii() or name != name.lower():
        raise BadInput(f"{name!r} cannot name a protocol", "NAME", "take small letters, digits and _")
    if name in REGISTRY:
        raise BadInput(f"there is a protocol {name!r}", "NAME", "take another name")
    if name in sys.stdlib_module_names or name in ("fencepost", "pytest", "test"):
        raise BadInput(f"{name!r} is the name of another module", "NAME", "take another name")
    environment = Environment(  # noqa: S701 - what is written is Python, not HTML
        loader=PackageLoader(__name__, ""), undefined=StrictUndefined, keep_trailing_newline=True
    )
    return {
        target.format(name=name): environment.get_template(template).render(name=name)
        for template, target in FILES.items()
    }


def write_new(name: str, folder: Path) -> list[Path]:
    """Write a new protocol into a folder, which is made if it is not there. Raises BadInput where a file is already."""
    texts = files_of(name)
    taken = sorted(each for each in texts if (folder / each).exists())
    if taken:
        raise BadInput(f"there is a {taken[0]} already", str(folder), "name another folder with --out")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for each, text in texts.items():
            (folder / each).write_text(text, encoding="utf-8")
    except OSError as error:
        raise BadInput(f"cannot write: {error.strerror}", str(folder), "name a folder that is writable") from error
    return [folder / each for each in texts]
