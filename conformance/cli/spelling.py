"""Reject misspelt options before a command reads its arguments, and name the nearest option."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from difflib import get_close_matches
from inspect import Parameter as Kind

from cyclopts import App, ArgumentCollection
from cyclopts.utils import is_option_like

from ...model.core.errors import BadInput, FencepostError
from ...model.core.loading import is_place
from ...model.core.registry import PROTOCOLS, REGISTRY


def reject_unknown_options(app: App, arguments: Sequence[str]) -> None:
    """Raise BadInput for the first option that the command does not have.

    Commands accept a protocol's constants as options (``--replicas 3``). Cyclopts passes every option that it does not
    know to that parameter, so a misspelt option would be reported as a constant with a bad value.
    """
    names, apps, rest = app.parse_commands(list(arguments))
    if not names and rest and is_option_like(rest[0]):
        raise UnknownOption(rest[0].partition("=")[0], "see fencepost --help")
    command = apps[-1]
    typed = rest[: rest.index("--")] if "--" in rest else rest
    # The flags of the whole command line (--help, --version) are commands to Cyclopts.
    if not names or any(each.startswith("-") for each in names) or any(each in command.help_flags for each in typed):
        return
    options = command.assemble_argument_collection()
    for token in typed:
        if not is_option_like(token) or len(token) == 1:
            continue
        name = token.partition("=")[0]
        if _is_option(options, name) or (_takes_constants(options) and _is_constant(name, typed)):
            continue
        known = [*_names(options), *(_constants_of(typed) if _takes_constants(options) else ())]
        # Without the dashes, which all options share.
        words = [each.lstrip("-") for each in known]
        close = get_close_matches(name.lstrip("-"), words, n=1)
        see = f"see fencepost {' '.join(names)} --help"
        raise UnknownOption(name, f"did you mean --{close[0]}?" if close else see)


class UnknownOption(BadInput):
    """An option that a command does not have; ``str(error)`` is ``unknown option --varient; MEND``."""

    def __init__(self, option: str, mend: str) -> None:
        super().__init__("unknown option", option, mend)
        self.args = (f"unknown option {option}; {mend}",)

    def __reduce__(self) -> tuple[type[UnknownOption], tuple[str, str]]:  # type: ignore[override]
        return type(self), (self.where, self.mend)


def _is_option(options: ArgumentCollection, name: str) -> bool:
    """Check whether the command declares an option, other than its constants."""
    try:
        found, _, _ = options.match(name)
    except ValueError:
        return False
    return found.field_info.kind is not Kind.VAR_KEYWORD


def _takes_constants(options: ArgumentCollection) -> bool:
    return any(each.field_info.kind is Kind.VAR_KEYWORD for each in options)


def _is_constant(name: str, typed: Sequence[str]) -> bool:
    return any(name.replace("_", "-") == each for each in _constants_of(typed))


def _constants_of(typed: Sequence[str]) -> Iterator[str]:
    """List constants as options: those of the protocols on this command line first, then those of all protocols."""
    for token in typed:
        word = token.partition("=")[2] or token
        if word in REGISTRY or is_place(word):
            # The command reports a protocol that cannot be imported.
            with suppress(FencepostError):
                yield from map(_option, REGISTRY.named(word, token).protocol.constants)
    for protocol in PROTOCOLS.values():
        yield from map(_option, protocol.constants)


def _option(constant: str) -> str:
    return f"--{constant.replace('_', '-')}"


def _names(options: ArgumentCollection) -> Iterator[str]:
    """List the names of a command's options."""
    for each in options:
        if each.field_info.kind is not Kind.VAR_KEYWORD:
            yield from (name for name in (*each.names, *each.negatives) if name.startswith("--"))
