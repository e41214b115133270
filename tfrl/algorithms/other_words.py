"""Words of other libraries, and what to write here instead.

They are those of Stable-Baselines3, RL Baselines3 Zoo, CleanRL, RLlib and Tianshou, in
`other_words.json`. Constructors, methods and the command look here for a word that they
do not know.

>>> from tfrl.algorithms import other_words
>>> other_words.advice("n_steps", 128, ["gamma", "collect_steps_per_iteration"])
'write collect_steps_per_iteration=128'
>>> other_words.advice("gama", 0.9, ["gamma"])
'did you mean gamma'
"""

from __future__ import annotations

import difflib
import functools
import inspect
import json
import pathlib
from collections.abc import Callable, Collection, Sequence
from typing import Any, NoReturn, TypeVar

_DATA = json.loads(pathlib.Path(__file__).with_suffix(".json").read_text("utf-8"))
# A word, and what is the same here: of several, the first one that there is.
SAME = {
    word: here.split()
    for here, words in _DATA["same"].items()
    for word in words.split()
}
# Words with a value of another kind or unit, or such a word and what is the same here,
# and what to do instead; {0} is the class of the algorithm.
LINES: dict[str, str] = _DATA["lines"]
# Methods elsewhere, and what to write here.
METHODS: dict[str, str] = _DATA["methods"]
# The first argument of Stable-Baselines3's constructors.
_POLICIES = _DATA["policies"].split()

Function = TypeVar("Function", bound=Callable[..., Any])


def same(word: str, known: Collection[str]) -> str | None:
    """Returns what is the same here as a word elsewhere, or None.

    Args:
      word: The word.
      known: The words that there are here.
    """
    return next((x for x in SAME.get(word, ()) if x in known), None)


def advice(word: str, value: Any, known: Collection[str], of: str = "") -> str:
    """Returns what to write instead of an argument that is not known; perhaps "".

    Args:
      word: The argument's name.
      value: Its value.
      known: The names of the arguments that there are.
      of: The name of the algorithm's class.
    """
    meant = same(word, known)
    line = LINES.get(f"{word} {meant}") or LINES.get(word)
    if line is not None:
        return line.format(of)
    if meant is not None:
        return f"write {meant}={tuple(value) if isinstance(value, list) else value!r}"
    near = difflib.get_close_matches(word, known, n=1)
    return f"did you mean {near[0]}" if near else ""


def refuse_policy(of: str, given: Sequence[Any]) -> None:
    """Raises a TypeError if a constructor gets arguments as elsewhere.

    Args:
      of: The name of the algorithm's class.
      given: The arguments by position, of which the class takes one.
    """
    is_policy = bool(given) and isinstance(given[0], str) and given[0] in _POLICIES
    if len(given) < 2 and not is_policy:
        return
    environment = given[1] if is_policy and len(given) > 1 else given[0]
    name = repr(environment) if isinstance(environment, str) else "environment"
    name = "environment" if environment in _POLICIES else name.replace("'", '"')
    wanted = "the environment, and all else by name"
    why = ", whose observations choose the layers" if is_policy else ""
    raise TypeError(
        f"{of}: got {', '.join(map(str, given))}, expected {wanted}: write "
        f"{of}({name}){why}."
    )


def explained(method: Function) -> Function:
    """Lets a method of an algorithm explain keywords of other libraries."""
    known = list(inspect.signature(method).parameters)[1:]

    @functools.wraps(method)
    def checked(self: Any, *arguments: Any, **keywords: Any) -> Any:
        for word, value in keywords.items():
            if word not in known:
                told = advice(word, value, known, type(self).__name__)
                if same(word, known) == known[0]:
                    told = f"write {method.__name__}({value!r})"
                raise TypeError(
                    f"{method.__name__}: got an unknown argument {word!r}; "
                    f"{told or 'expected some of ' + ', '.join(known)}."
                )
        return method(self, *arguments, **keywords)

    made: Function = checked  # type: ignore[assignment]
    return made


def method_elsewhere(of: str, name: str) -> str:
    """Returns the text of the error for a method that is not here.

    Args:
      of: The name of the algorithm's class.
      name: The method's name.
    """
    told = METHODS.get(name, "").format(of)
    return f"{of} has no {name!r}" + (f"; write {told}." if told else ".")


class Loading:
    """The name `load` of algorithms, which other libraries load by."""

    def __get__(self, instance: Any, owner: type) -> NoReturn:
        """Raises the AttributeError."""
        raise AttributeError(
            f"{owner.__name__} has no 'load', since a folder names its algorithm; "
            'write tfrl.load("folder").'
        )
