"""What Python would do by itself in a text, and say nothing: it is found in the source, and refused.

- It asks nobody what ``is`` gives, nor, of most terms, whether one is in a set or a key of a dict: a term is never the
  same object as a number, so the answer is a constant, and the condition around it says nothing. So is what it answers
  of the object that a term is: by ``isinstance``, ``type``, ``hash``, ``match``.
- It makes a set of terms by what they are, not by the values that they will have: of ``len({x, y})`` nobody learns
  whether x and y are equal.
- It writes a term as text where it is asked to (an f-string, ``str``), once, when the text is traced: of the value that
  the term will have, the words say nothing.
- It lets go of a mistake in a ``try``, and goes on as if the text had said something else.
- A lambda that is kept for later reads a loop's variable when it is called: all that were kept read its last value.
- A function that is given for a row of cells need not read the cell's index: all cells then get one value, that of a
  cell whose index stands there by mistake, say.

Functions that a text calls, or hands on, are looked into as well, where they are given what depends on the state.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Collection, Iterator
from functools import cache
from types import FunctionType, ModuleType
from typing import Any, NamedTuple

from .errors import BadText
from .source_lint import parsed_source
from .source_location import place

_ONCE = "is decided by Python, once and for all"
_OBJECT = "write == or !=, k.all, k.ite of the values; what differs between variants is asked of k.rules"
_ASKS_THE_OBJECT = frozenset({"type", "isinstance", "hash", "id", "callable", "is_", "is_not"})
_MAKES_A_SET = frozenset({"set", "frozenset", "fromkeys", "Counter"})
_AS_TEXT = "a condition is written by ==, <, k.all; a guard's name is a literal"
_Function = ast.FunctionDef | ast.Lambda


class _Found(NamedTuple):
    what: str
    where: str
    mend: str


def python_decides_nothing(text: Callable[..., Any]) -> None:
    """Refuse a text in which Python does by itself what the text's author wants done with a term (see above).

    What ``k.rules`` say is Python's, and may be asked in any way. Raises BadText.
    """
    found = _decided(text)
    if found is not None:
        raise BadText(*found)


@cache
def _decided(text: Callable[..., Any]) -> _Found | None:
    names = list(inspect.signature(text).parameters)
    return _decided_in(text, frozenset(names[1:]), frozenset(names[:1]), frozenset())


def _decided_in(
    text: Callable[..., Any], terms: frozenset[str], algebra: frozenset[str], seen: frozenset[Callable[..., Any]]
) -> _Found | None:
    """What is found in a function of whose parameters these are terms, or the state, and these the algebra."""
    parsed = parsed_source(text)
    if parsed is None:
        return None
    tree, file, first = parsed
    function = next((node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.Lambda)), None)
    if function is None:
        return None
    looked = _Looked(function, terms, algebra)
    for node in looked.parts:
        found = looked.refused(node)
        if found is not None:
            what, mend, line = found
            return _Found(what, place(file, first + line - 1), mend)
    for helper, given, with_k in looked.helpers(text):
        if helper not in seen:
            inner = _decided_in(helper, given, with_k, seen | {text, helper})
            if inner is not None:
                return inner
    return None


class _Looked:
    """One function, and which names in it stand for what depends on the state."""

    def __init__(self, function: _Function, terms: Collection[str], algebra: Collection[str]) -> None:
        # Not its decorators: what they ask of the rules is Python's.
        body = function.body if isinstance(function.body, list) else [function.body]
        self.parts = [part for statement in body for part in ast.walk(statement)]
        self.algebra = frozenset(algebra)
        self.inner = {part.name: part for part in self.parts if isinstance(part, ast.FunctionDef)}
        self.terms = self._names_of_terms(terms)

    def _names_of_terms(self, given: Collection[str]) -> frozenset[str]:
        """The names of what depends on the state: it, the parameters, and what is made of them.

        The algebra is none: ``k.rules`` and what is made of them alone are Python's.
        """
        found = set(given)
        found |= {each.arg for node in self.parts if isinstance(node, ast.Lambda) for each in node.args.args}
        while True:
            more = {
                name.id
                for node in self.parts
                if isinstance(node, ast.Assign | ast.AnnAssign | ast.NamedExpr) and node.value
                if _reads(node.value, found)
                for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
                for name in ast.walk(target)
                if isinstance(name, ast.Name)
            }
            for node in self.parts:
                more |= self._parameters(node, found)
            if more <= found:
                return frozenset(found)
            found |= more

    def _parameters(self, node: ast.AST, terms: Collection[str]) -> set[str]:
        """The parameters of functions within the text that this node gives terms to, or hands on to be given some."""
        if not isinstance(node, ast.Call):
            return set()
        found = set()
        inner = self.inner.get(node.func.id) if isinstance(node.func, ast.Name) else None
        if inner is not None:
            found |= {name for name, value in _bound(inner.args, node) if _reads(value, terms)}
        for value in node.args:
            if isinstance(value, ast.Name) and value.id in self.inner:
                found |= {each.arg for each in self.inner[value.id].args.args}
        return found

    def refused(self, node: ast.AST) -> tuple[str, str, int] | None:
        """What is wrong with a node, how to mend it, and its line."""
        line = getattr(node, "lineno", 1)
        if isinstance(node, ast.Compare) and self._reads(node):
            for operator in node.ops:
                if isinstance(operator, ast.Is | ast.IsNot):
                    return f"{ast.unparse(node)} {_ONCE}", "write == or !=", line
                if isinstance(operator, ast.In | ast.NotIn):
                    mend = "write k.member for a set of replicas, and else k.any(x == a, x == b)"
                    return f"{ast.unparse(node)} {_ONCE}", mend, line
        if self._asks_the_object(node):
            asked = f"match {ast.unparse(node.subject)}" if isinstance(node, ast.Match) else ast.unparse(node)
            return f"{asked} {_ONCE}", _OBJECT, line
        if self._makes_a_set(node):
            told = f"{ast.unparse(node)} is made of terms, and Python does not know which of them are equal"
            return told, "compare them: k.all(x != y, ...); a set of replicas is made by k.with_member", line
        if isinstance(node, ast.Call) and self._looks_up(node):
            return f"{ast.unparse(node)} is looked up by Python, which knows no values", "write k.ite", line
        if self._is_text(node):
            return f"{ast.unparse(node)} makes words of a term, which has no value yet", _AS_TEXT, line
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Compare) and self._reads(node.value):
            mend = "join it to the others by k.all, or take it out"
            return f"nothing is done with {ast.unparse(node)}", mend, line
        if self._swallows(node):
            return "a mistake in these terms would be swallowed", "take the try out; by k.rules ask what there is", line
        return self._late(node) or self._unread(node)

    def _reads(self, node: ast.AST) -> bool:
        return _reads(node, self.terms)

    def _asks_the_object(self, node: ast.AST) -> bool:
        """Whether Python is asked of the object that a term is, which says nothing of its value."""
        if isinstance(node, ast.Match):
            return self._reads(node.subject)
        return isinstance(node, ast.Call) and _called(node) in _ASKS_THE_OBJECT and self._is_given_terms(node)

    def _makes_a_set(self, node: ast.AST) -> bool:
        """Whether Python is to see which terms are equal, as what has each of its elements once does."""
        if isinstance(node, ast.Set | ast.SetComp):
            return any(self._reads(each) for each in (node.elts if isinstance(node, ast.Set) else [node.elt]))
        return isinstance(node, ast.Call) and _called(node) in _MAKES_A_SET and self._is_given_terms(node)

    def _is_given_terms(self, call: ast.Call) -> bool:
        return any(self._reads(each) for each in (*call.args, *(keyword.value for keyword in call.keywords)))

    def _looks_up(self, call: ast.Call) -> bool:
        """Whether this asks a dict for a key that is a term, and has a value ready where it is not there."""
        method = isinstance(call.func, ast.Attribute) and call.func.attr == "get"
        return method and any(self._reads(each) for each in call.args[:1])

    def _is_text(self, node: ast.AST) -> bool:
        """Whether words are made of a term: by an f-string, ``%``, ``str.format``, or a function that does that."""
        if isinstance(node, ast.JoinedStr):
            return self._reads(node)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod) and _is_words(node.left):
            return self._reads(node.right)
        if not isinstance(node, ast.Call):
            return False
        formats = isinstance(node.func, ast.Attribute) and node.func.attr == "format" and _is_words(node.func.value)
        writes = isinstance(node.func, ast.Name) and node.func.id in ("str", "repr", "ascii", "format")
        return (formats or writes) and self._is_given_terms(node)

    def _swallows(self, node: ast.AST) -> bool:
        """Whether a mistake in what is done here with terms would go unseen."""
        if isinstance(node, ast.Try):
            return bool(node.handlers) and any(self._makes(each) for each in node.body)
        if not isinstance(node, ast.With):
            return False
        called = [each.context_expr for each in node.items if isinstance(each.context_expr, ast.Call)]
        suppresses = any(_called(each) == "suppress" for each in called)
        return suppresses and any(self._makes(each) for each in node.body)

    def _makes(self, node: ast.AST) -> bool:
        """Whether something is made of terms, or by the algebra: what ``k.rules`` say is Python's."""
        asked = (part for part in ast.walk(node) if isinstance(part, ast.Attribute) and part.attr != "rules")
        return self._reads(node) or any(isinstance(p.value, ast.Name) and p.value.id in self.algebra for p in asked)

    def _late(self, node: ast.AST) -> tuple[str, str, int] | None:
        """A lambda that is kept, in a loop, and reads the loop's variable when it is called."""
        loops: list[tuple[ast.AST, list[ast.AST]]] = []
        if isinstance(node, ast.For):
            loops = [(node.target, list(node.body))]
        elif isinstance(node, ast.ListComp | ast.SetComp | ast.GeneratorExp):
            loops = [(each.target, [ast.Tuple([node.elt], ast.Load())]) for each in node.generators]
        elif isinstance(node, ast.DictComp):
            loops = [(each.target, [ast.Tuple([node.value], ast.Load())]) for each in node.generators]
        for target, within in loops:
            names = {each.id for each in ast.walk(target) if isinstance(each, ast.Name)}
            for kept in (found for each in within for part in ast.walk(each) for found in _kept(part)):
                own = {each.arg for each in (*kept.args.args, *kept.args.kwonlyargs)}
                late = sorted(each for each in names - own if _reads(kept.body, {each}))
                if late:
                    told = f"{ast.unparse(kept)} reads {late[0]} when it is called, after the loop: its last value"
                    return told, f"give it as a default: lambda ..., {late[0]}={late[0]}: ...", kept.lineno
        return None

    def _unread(self, node: ast.AST) -> tuple[str, str, int] | None:
        """A function for a row of cells that does not read the index of the cell."""
        for key, value in zip(node.keys, node.values, strict=True) if isinstance(node, ast.Dict) else ():
            if key is None or not any(_is_every(part) for part in ast.walk(key)):
                continue
            function = self.inner.get(value.id) if isinstance(value, ast.Name) else value
            if not isinstance(function, ast.FunctionDef | ast.Lambda):
                continue
            body = function.body if isinstance(function.body, list) else [function.body]
            given = [*function.args.posonlyargs, *function.args.args]
            for name in (each.arg for each in given[: len(given) - len(function.args.defaults)]):
                if not name.startswith("_") and not any(_reads(part, {name}) for part in body):
                    told = f"the function for the row {ast.unparse(key)} does not read its index {name}"
                    return told, f"give a row of one value as that value, or name the index _{name}", value.lineno
        return None

    def helpers(self, text: Callable[..., Any]) -> Iterator[tuple[FunctionType, frozenset[str], frozenset[str]]]:
        """The functions that are called with terms: each, with its parameters that get terms, or the algebra."""
        for node in self.parts:
            if isinstance(node, ast.Call):
                helper = _resolved(node.func, text)
                if helper is not None:
                    yield from self._given(node, helper)

    def _given(
        self, call: ast.Call, helper: FunctionType
    ) -> Iterator[tuple[FunctionType, frozenset[str], frozenset[str]]]:
        parsed = parsed_source(helper)
        tree = parsed[0] if parsed is not None else None
        function = (
            next((n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.Lambda)), None) if tree else None
        )
        if function is None:
            return
        bound = list(_bound(function.args, call))
        terms = frozenset(name for name, value in bound if self._reads(value))
        algebra = {name for name, value in bound if isinstance(value, ast.Name) and value.id in self.algebra}
        if terms:
            yield helper, terms, frozenset(algebra)


def _kept(node: ast.AST) -> Iterator[ast.Lambda]:
    """The lambdas that a node keeps for later: in a display, under a key, at the end of a list."""
    found: list[ast.expr | None] = []
    if isinstance(node, ast.Dict):
        found = list(node.values)
    elif isinstance(node, ast.List | ast.Tuple | ast.Set):
        found = list(node.elts)
    elif isinstance(node, ast.Assign) and any(isinstance(each, ast.Subscript) for each in node.targets):
        found = [node.value]
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("append", "add"):
        found = list(node.args)
    yield from (each for each in found if isinstance(each, ast.Lambda))


def _bound(parameters: ast.arguments, call: ast.Call) -> Iterator[tuple[str, ast.expr]]:
    """The parameters that a call gives a value to, with the value."""
    positional = [each.arg for each in (*parameters.posonlyargs, *parameters.args)]
    yield from zip(positional, call.args, strict=False)
    yield from ((each.arg, each.value) for each in call.keywords if each.arg)
    if parameters.vararg is not None:
        yield from ((parameters.vararg.arg, value) for value in call.args[len(positional) :])


def _resolved(called: ast.expr, text: Callable[..., Any]) -> FunctionType | None:
    """The function that a name in a text stands for, where it is one of Python's own making and not the language's."""
    try:
        found = inspect.getclosurevars(text)
    except (TypeError, ValueError):
        return None
    known = {**found.globals, **found.nonlocals}
    value: object = None
    if isinstance(called, ast.Name):
        value = known.get(called.id)
    elif isinstance(called, ast.Attribute) and isinstance(called.value, ast.Name):
        module = known.get(called.value.id)
        value = getattr(module, called.attr, None) if isinstance(module, ModuleType) else None
    if not isinstance(value, FunctionType) or value.__module__.startswith(__name__.rpartition(".")[0]):
        return None
    return value


def _is_every(node: ast.AST) -> bool:
    return (isinstance(node, ast.Name) and node.id == "EVERY") or (
        isinstance(node, ast.Attribute) and node.attr == "EVERY"
    )


def _called(call: ast.Call) -> str:
    """The name of what is called, without where it is from."""
    return ast.unparse(call.func).rpartition(".")[2]


def _is_words(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def _reads(node: ast.AST, names: Collection[str]) -> bool:
    return any(isinstance(part, ast.Name) and part.id in names for part in ast.walk(node))
