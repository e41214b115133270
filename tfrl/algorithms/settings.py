"""Settings: the fields of a class, each with a text, a check and a default.

A setting is declared once, in the class of its algorithm. The keywords of `tfrl.PPO`
and the like, the flags of `tfrl train`, the checks of values, what tuning searches and
the `config.json` of a run all come from that declaration. This module does not import
TensorFlow.
"""

from __future__ import annotations

import contextlib
import contextvars
import dataclasses
import functools
import inspect
import numbers
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, ClassVar, dataclass_transform

from tfrl.algorithms import other_words
from tfrl.utils import number_checks

# The largest number of TensorFlow's int32, and a limit for its int64.
_INT32_MAX = 2**31 - 1
_MOST = 10**15
_MOST_ENVIRONMENTS = 10**6

Check = Callable[..., None]


@dataclasses.dataclass(frozen=True)
class Range:
    """The range of values of a field that tuning searches.

    Attributes:
      low: The least number.
      high: The greatest number.
      is_log: Whether the logarithm of the number is uniform.
    """

    low: float
    high: float
    is_log: bool = False


def uniform(low: float, high: float) -> Range:
    """Returns a range to search uniformly."""
    return Range(low, high)


def log(low: float, high: float) -> Range:
    """Returns a range to search uniformly on a logarithmic scale."""
    return Range(low, high, is_log=True)


# A range, or the values to choose from.
Search = Range | tuple[Any, ...]


def field(
    text: str,
    check: Check | None = None,
    *,
    default: Any,
    search: Search | None = None,
    live: bool = False,
    needs: tuple[str, Any] | None = None,
    takes_objects: bool = False,
) -> Any:
    """Declares a setting.

    A subclass that only changes the default writes `gamma: float = 0.98`: text, check
    and the rest are then those of the base class.

    Args:
      text: The help, at most a line.
      check: Checks a value; takes the setting's name, the value and, as a keyword, the
        `remedy`. None allows any value, or only True and False if `default` is
        one of them.
      default: The default.
      search: Where tuning usually searches; narrower than what `check` allows.
      live: Whether runs of one program may differ in it: the algorithm takes a
        `tf.Variable` for it, or stores the number in a variable.
      needs: Another setting, and its value without which this one does nothing; True
        stands for any value that is not 0.
      takes_objects: Whether a program may give an object in place of a text, which is
        then a part of its own, see `Algorithm.own_parts`, and no setting.
    """
    if check is None and isinstance(default, bool):
        check = check_truth
    metadata = {
        "text": text,
        "check": check,
        "search": search,
        "live": live,
        "needs": needs,
        "takes_objects": takes_objects,
    }
    return dataclasses.field(default=default, metadata=metadata)


def live(
    text: str,
    check: Check,
    search: Search | None = None,
    *,
    default: float | None,
    needs: tuple[str, Any] | None = None,
) -> Any:
    """Declares a number in which runs of one program may differ; see `field`."""
    return field(text, check, default=default, search=search, live=True, needs=needs)


def rate(text: str = "Learning rate of Adam.", *, default: float) -> Any:
    """Declares a learning rate; see `live`."""
    return live(text, check_rate, RATES, default=default)


def final(of: str, *, default: float | None) -> Any:
    """Declares the last value of a number that falls during the run; see `live`.

    Args:
      of: What the number is, such as "learning rate".
      default: The default; None for a number that stays.
    """
    text = f"Last {of}, reached linearly; None keeps the first one."
    return live(text, number(low=0.0, optional=True), default=default)


def part(*, alias: str, default: Any = None, kw_only: bool = True) -> Any:
    """Declares an argument of a class that is no setting.

    Args:
      alias: The argument's name.
      default: Its default.
      kw_only: Whether it is given by its name only.
    """
    return dataclasses.field(
        default=default, kw_only=kw_only, metadata={"argument": alias}
    )


def check_rate(name: str, value: Any, *, remedy: str) -> None:
    """Raises an error unless `value` is a rate: a number, or a schedule of Keras."""
    if inspect.isfunction(value):
        raise TypeError(
            f"{name}: expected a number, or a schedule of Keras, which counts updates, "
            "got a function; for a rate that falls linearly give its last value, such "
            "as final_learning_rate=0.0."
        )
    FROM_0(name, value, remedy=remedy)


def check_truth(name: str, value: Any, *, remedy: str) -> None:
    """Raises a TypeError unless `value` is True or False; "false" would be true."""
    if not isinstance(value, bool):
        raise TypeError(f"{name}: expected True or False, got {value!r}; {remedy}.")


def check_layers(name: str, value: Any, *, remedy: str) -> None:
    """Raises a ValueError unless `value` is a sequence of positive integers."""
    if not _are_sizes(value):
        raise ValueError(
            f"{name}: expected the positive sizes of layers, such as (64, 64), got "
            f"{value!r}; {remedy}."
        )


def check_convolutions(name: str, value: Any, *, remedy: str) -> None:
    """Raises a ValueError unless each convolution is three positive integers."""
    if not (
        isinstance(value, list | tuple)
        and all(_are_sizes(layer) and len(layer) == 3 for layer in value)
    ):
        raise ValueError(
            f"{name}: expected filters, kernel size and stride of each convolution, "
            f"such as ((32, 8, 4), (64, 4, 2)), got {value!r}; {remedy}."
        )


def _are_sizes(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(
        isinstance(size, numbers.Integral) and 1 <= int(size) <= _INT32_MAX
        for size in value
    )


def one_of(*choices: str) -> Check:
    """Returns the check of a field that must be one of some words."""
    return functools.partial(number_checks.check_choice, choices=choices)


def integer(minimum: int, maximum: int = _MOST) -> Check:
    """Returns the check of an integer in a range."""
    return functools.partial(
        number_checks.check_integer, minimum=minimum, maximum=maximum
    )


def number(**limits: Any) -> Check:
    """Returns the check of a number; for `limits` see `number_checks.check_number`."""
    return functools.partial(number_checks.check_number, **limits)


COUNT = integer(1)
SIZE = integer(1, _INT32_MAX)
SIZE_OR_0 = integer(0, _INT32_MAX)
ENVIRONMENTS = integer(1, _MOST_ENVIRONMENTS)
FINITE = number()
FROM_0 = number(low=0.0)
ABOVE_0 = number(low=0.0, excludes_low=True)
FRACTION = number(low=0.0, high=1.0)
BELOW_1 = number(low=0.0, high=1.0, excludes_high=True)

# Where tuning searches: the ranges of RL Baselines3 Zoo (`rl_zoo3/hyperparams_opt.py`),
# but for rates, which go up to 0.002 for PPO there, and up to 1 for DQN, SAC and TD3.
RATES = log(1e-5, 1e-2)
DISCOUNTS = (0.9, 0.95, 0.98, 0.99, 0.995, 0.999, 0.9999)
TARGET_STEPS = log(0.001, 0.08)
BATCHES = (16, 32, 64, 128, 256, 512)
LAMBDAS = (0.8, 0.9, 0.92, 0.95, 0.98, 0.99, 1.0)
ENTROPIES = log(1e-8, 0.1)
EPSILONS = uniform(0.0, 0.2)
NOISES = uniform(0.0, 1.0)
# The names are Keras's.
ACTIVATIONS = (
    "celu",
    "elu",
    "gelu",
    "hard_sigmoid",
    "hard_silu",
    "hard_tanh",
    "leaky_relu",
    "linear",
    "log_sigmoid",
    "mish",
    "relu",
    "relu6",
    "selu",
    "sigmoid",
    "silu",
    "softplus",
    "softsign",
    "squareplus",
    "swish",
    "tanh",
)
CHECK_ACTIVATION = one_of("usual", *ACTIVATIONS)
# The seeds of networks and environments are a little larger.
SEED = integer(0, 2**62)


# How errors say that a setting is changed.
_remedy = contextvars.ContextVar("_remedy", default="set {}")


@contextlib.contextmanager
def remedied_by(words: str) -> Iterator[None]:
    """Lets errors say how a user sets a setting, such as "set --{}"."""
    token = _remedy.set(words)
    try:
        yield
    finally:
        _remedy.reset(token)


def remedy_for(name: str) -> str:
    """Returns the words that tell how a user sets a setting."""
    return _remedy.get().format(name)


def _make_dataclass(cls: type) -> None:
    """Makes a class a dataclass; settings declared again keep their metadata."""
    inherited = _fields(cls.__mro__[1:])
    for name in inspect.get_annotations(cls):
        default = cls.__dict__.get(name)
        has_own_metadata = isinstance(default, dataclasses.Field)
        if name in inherited and not has_own_metadata:
            metadata = inherited[name].metadata
            setattr(cls, name, dataclasses.field(default=default, metadata=metadata))
    # Algorithms have a constructor of their own, and are equal only to themselves.
    made: Any = dataclasses.dataclass(init=False, repr=False, eq=False, kw_only=True)(
        cls
    )
    every = _fields(cls.__mro__)
    made._settings = {k: x for k, x in every.items() if "text" in x.metadata}
    made._arguments = {k: x for k, x in every.items() if "argument" in x.metadata}
    made.__signature__ = _signature(made)


def _fields(classes: Iterable[type]) -> dict[str, dataclasses.Field[Any]]:
    """Returns the fields of classes in the order of inheritance, by their names.

    As for attributes, a class goes before those after it. (Each base's own dictionary
    of fields has those that it inherits, too, in which two bases may differ.)
    """
    found: dict[str, dataclasses.Field[Any]] = {}
    for each in reversed(tuple(classes)):
        own = vars(each).get("__dataclass_fields__", {})
        found |= {x: own[x] for x in inspect.get_annotations(each) if x in own}
    return found


def _signature(made: Any) -> inspect.Signature:
    """Returns the constructor's signature, for `help` and for editors' hints."""
    kinds = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY
    # A text for such an argument is a setting.
    known = {each.metadata["argument"] for each in made._arguments.values()}
    settings = [x for name, x in made._settings.items() if name not in known]
    fields = [*made._arguments.values(), *settings]
    return inspect.Signature(
        [
            inspect.Parameter(
                each.metadata.get("argument", each.name),
                kinds[bool(each.kw_only)],
                default=each.default,
                annotation=each.type,
            )
            for each in fields
        ]
    )


@dataclass_transform(
    kw_only_default=True,
    field_specifiers=(field, live, rate, final, part),
)
class Dataclasses:
    """The base of classes that are dataclasses without a decorator."""

    # The declarations of settings, and of the constructor's other arguments, by name.
    _settings: ClassVar[dict[str, dataclasses.Field[Any]]] = {}
    _arguments: ClassVar[dict[str, dataclasses.Field[Any]]] = {}

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        _make_dataclass(cls)

    @classmethod
    def setting_fields(cls) -> dict[str, dataclasses.Field[Any]]:
        """Returns the settings' declarations by their names."""
        return cls._settings

    @classmethod
    def check_setting(cls, name: str, value: Any) -> None:
        """Checks the value of a setting.

        Raises:
          ValueError: It is out of its range.
          TypeError: It is not a number, or not True or False.
        """
        check = cls._settings[name].metadata["check"]
        if check is not None:
            check(name, value, remedy=remedy_for(name))


class Settings(Dataclasses):
    """The settings of a run that all algorithms have.

    A subclass is a dataclass of its annotations. Type checkers know its settings as
    keywords and as attributes.

    Attributes:
      supports_sweep: Whether one program can train many runs of it; see `train.sweep`.
    """

    supports_sweep: ClassVar[bool] = True

    seed: int = field("Seed of all random numbers.", SEED, default=0)
    device: str = field("Where to train, such as GPU:0.", default="")
    jit_compile: bool = field(
        "Whether XLA compiles the loop, where possible.", default=True
    )
    num_iterations: int = field("Iterations of the run.", COUNT, default=10_000)
    eval_interval: int = field("Iterations between evaluations.", COUNT, default=1_000)
    num_eval_episodes: int = field(
        "Episodes in an evaluation.", ENVIRONMENTS, default=10
    )
    log_interval: int = field(
        "Iterations between lines of the log.", COUNT, default=500
    )
    checkpoint_interval: int = field(
        "Iterations between checkpoints.", COUNT, default=5_000
    )

    def __setattr__(self, name: str, value: Any) -> None:
        """Sets a setting to a value that its check allows, or another attribute.

        Raises:
          AttributeError: The parts of the algorithm are made with the setting.
        """
        if name in self.setting_fields():
            if self.is_made():
                raise AttributeError(
                    f"{name}: the parts of this {type(self).__name__} are made with "
                    f"{getattr(self, name)!r}; make another one with "
                    f"{name}={value!r}."
                )
            value = _plain(value)
            self.check_setting(name, value)
        super().__setattr__(name, value)

    def is_made(self) -> bool:
        """Whether parts are made, so that settings stay as they are."""
        return False

    @classmethod
    def fitted(cls, values: Mapping[str, Any], num_envs: int) -> dict[str, Any]:
        """Returns the settings that change with the number of environments.

        Args:
          values: The settings.
          num_envs: The number.
        """
        del values
        return {"num_envs": num_envs}

    @classmethod
    def defaults(cls) -> dict[str, Any]:
        """Returns the default of each setting."""
        return {name: each.default for name, each in cls._settings.items()}

    @classmethod
    def search_ranges(cls) -> dict[str, Search]:
        """Returns the ranges that tuning searches by default, by setting."""
        return {
            name: each.metadata["search"]
            for name, each in cls._settings.items()
            if each.metadata["search"] is not None
        }

    @classmethod
    def live_settings(cls) -> frozenset[str]:
        """Returns the names of the settings in which runs of a program may differ."""
        live = (name for name, x in cls._settings.items() if x.metadata["live"])
        return frozenset(live if cls.supports_sweep else ())

    @property
    def settings(self) -> dict[str, Any]:
        """The values of all settings, by name."""
        return {name: getattr(self, name) for name in self.setting_fields()}

    def set_all(self, values: Mapping[str, Any]) -> None:
        """Sets settings, and checks that they can be combined.

        Raises:
          TypeError: There is no such setting, or a value is not a number.
          ValueError: A value is out of its range, or values cannot be combined.
        """
        for name, value in values.items():
            if name not in self.setting_fields():
                raise TypeError(self.text_of_unknown(name, value))
            setattr(self, name, value)
        self.check_together()

    @classmethod
    def text_of_unknown(cls, name: str, value: Any) -> str:
        """Returns the text of the error for a setting that there is not."""
        arguments = [x.metadata["argument"] for x in cls._arguments.values()]
        known, of = [*cls._settings, *arguments], cls.__name__
        told = other_words.advice(name, value, known, of)
        return (
            f"{of}: got an unknown setting {name!r}; "
            f"{told or f'{of}.defaults() has those that it knows'}."
        )

    def idle(self, names: Iterable[str]) -> Iterator[str]:
        """Yields a sentence for each of some settings that does nothing; see `field`.

        Args:
          names: The names of the settings.
        """
        for name in names:
            other, wanted = self._settings[name].metadata["needs"] or ("", None)
            found = getattr(self, other, None)
            if other and (found != wanted if wanted is not True else not found):
                remedy = other if wanted is True else f"{other}={wanted}"
                yield (
                    f"{name}={getattr(self, name)!r} does nothing with "
                    f"{other}={found!r}; {remedy_for(remedy)}, too, or leave it out"
                )

    def check_together(self) -> None:
        """Checks settings that depend on each other.

        Raises:
          ValueError: They cannot be combined.
        """

    def use_variables(self, variables: Mapping[str, Any]) -> None:
        """Replaces the numbers of live settings by variables.

        Args:
          variables: A `tf.Variable` with the value of each setting, by name.
        """
        for name, variable in variables.items():
            object.__setattr__(self, name, variable)


def _plain(value: Any) -> Any:
    """Returns a value with tuples for its lists, or the text of a path."""
    if isinstance(value, list | tuple):
        return tuple(map(_plain, value))
    return os.fspath(value) if isinstance(value, os.PathLike) else value
