"""Settings of algorithms: frozen dataclasses whose fields carry a text and a check.

A field is declared once. The keywords of `tfrl.PPO` and the like, the flags of the
scripts, their `--help`, the checks of values and the `config.json` of a run all come
from that declaration. This module does not import TensorFlow.
"""

from __future__ import annotations

import copy
import dataclasses
import functools
import numbers
from collections.abc import Callable, Collection, Mapping
from typing import Any, ClassVar, Self, dataclass_transform

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
    default: Any,
    text: str,
    check: Check | None = None,
    *,
    search: Search | None = None,
    live: bool = False,
) -> Any:
    """Declares a field of a `Settings` class.

    Args:
      default: Its default.
      text: The help, at most a line.
      check: Checks a value; takes the field's name, the value and, as a keyword, the
        `remedy`. None allows any value.
      search: Where tuning usually searches; narrower than what `check` allows.
      live: Whether runs of one program may differ in it: the algorithm takes a
        `tf.Variable` for it, or stores the number in a variable.
    """
    return dataclasses.field(
        default=default,
        metadata={"text": text, "check": check, "search": search, "live": live},
    )


def live(default: float, text: str, check: Check, search: Search | None = None) -> Any:
    """Declares a number in which runs of one program may differ; see `field`."""
    return field(default, text, check, search=search, live=True)


def rate(default: float, text: str = "Learning rate of Adam.") -> Any:
    """Declares a learning rate; see `live`."""
    return live(default, text, FROM_0, RATES)


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
    return functools.partial(_check_choice, choices=choices)


def _check_choice(
    name: str, value: Any, choices: Collection[str], *, remedy: str
) -> None:
    if value not in choices:
        raise ValueError(
            f"{name}: expected one of {', '.join(map(repr, choices))}, got {value!r}; "
            f"{remedy}."
        )


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


@dataclass_transform(
    frozen_default=True, kw_only_default=True, field_specifiers=(field, live, rate)
)
class Settings:
    """The settings of a run that all algorithms have.

    A subclass is a frozen dataclass of its annotations, without a decorator. Its
    `defaults` change the defaults of inherited fields. `proportional` maps fields to
    other fields: if a user gives only the other field, the field changes in proportion.
    So a learning rate that a preset keeps constant stays constant.
    """

    defaults: ClassVar[Mapping[str, Any]] = {}
    proportional: ClassVar[Mapping[str, str]] = {}

    seed: int = field(0, "Seed of all random numbers.", SEED)
    device: str = field("", "Where to train, such as GPU:0.")
    jit_compile: bool = field(True, "Whether XLA compiles the loop, where possible.")
    num_iterations: int = field(10_000, "Iterations of the run.", COUNT)
    dtype: str = field(
        "float32",
        "Dtype of networks; mixed_bfloat16 for large ones on GPUs.",
        one_of("float32", "mixed_bfloat16", "mixed_float16"),
    )
    conv_layer_params: tuple[tuple[int, int, int], ...] = field(
        (), "Convolutions for images; () chooses by their size.", check_convolutions
    )
    activation: str = field(
        "relu",
        "Activation of hidden layers, such as tanh; usual: each network's own.",
        CHECK_ACTIVATION,
    )
    emulator: str = field(
        "ale-py",
        "Emulator of Atari games: ale-py or envpool.",
        one_of("ale-py", "envpool"),
    )
    grid_observations: str = field(
        "flat",
        "MiniGrid's observations: flat, or image without the text.",
        one_of("flat", "image"),
    )
    eval_interval: int = field(1_000, "Iterations between evaluations.", COUNT)
    num_eval_episodes: int = field(10, "Episodes in an evaluation.", ENVIRONMENTS)
    log_interval: int = field(500, "Iterations between lines of the log.", COUNT)
    checkpoint_interval: int = field(5_000, "Iterations between checkpoints.", COUNT)

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        _make_dataclass(cls)

    def __post_init__(self) -> None:
        for each in dataclasses.fields(self):  # type: ignore[arg-type]
            value = _plain(getattr(self, each.name))
            object.__setattr__(self, each.name, value)
        self.check(self.to_dict())

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Self:
        """Returns the settings with these values; other names in `values` are ignored.

        Args:
          values: The values of some fields; the others have their defaults.
        """
        known = cls.texts()
        return cls(**{name: x for name, x in values.items() if name in known})

    @classmethod
    def texts(cls) -> dict[str, str]:
        """Returns the help of each field."""
        return {
            each.name: each.metadata["text"]
            for each in dataclasses.fields(cls)  # type: ignore[arg-type]
        }

    @classmethod
    def search_ranges(cls) -> dict[str, Search]:
        """Returns the ranges that tuning searches by default, by field."""
        return {
            each.name: each.metadata["search"]
            for each in dataclasses.fields(cls)  # type: ignore[arg-type]
            if each.metadata["search"] is not None
        }

    @classmethod
    def live(cls) -> frozenset[str]:
        """Returns the names of the fields in which runs of one program may differ."""
        return frozenset(
            each.name
            for each in dataclasses.fields(cls)  # type: ignore[arg-type]
            if each.metadata["live"]
        )

    @classmethod
    def check(
        cls,
        values: Mapping[str, Any],
        remedy_for: Callable[[str], str] = "set {}".format,
    ) -> None:
        """Checks the values of fields, alone and together.

        Args:
          values: The values of some fields.
          remedy_for: Returns the remedy for a field's name: how the user sets it.

        Raises:
          ValueError: A value is out of its range, or values cannot be combined.
          TypeError: A value is not a number.
        """
        for each in dataclasses.fields(cls):  # type: ignore[arg-type]
            check = each.metadata["check"]
            if check is not None and each.name in values:
                check(each.name, values[each.name], remedy=remedy_for(each.name))
        cls.check_together({**cls.default_values(), **values}, remedy_for)

    @classmethod
    def check_together(
        cls, values: Mapping[str, Any], remedy_for: Callable[[str], str]
    ) -> None:
        """Checks fields that depend on each other; see `check`.

        Args:
          values: The values of all fields.
          remedy_for: Returns the remedy for a field's name.
        """

    @classmethod
    def default_values(cls) -> dict[str, Any]:
        """Returns the default of each field."""
        return {
            each.name: each.default
            for each in dataclasses.fields(cls)  # type: ignore[arg-type]
        }

    def to_dict(self) -> dict[str, Any]:
        """Returns the values by the fields' names."""
        return {name: getattr(self, name) for name in self.texts()}

    @classmethod
    def followers(
        cls, made: Mapping[str, Any], given: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Returns the values of `proportional` fields for numbers that a user gives.

        Args:
          made: The values of a preset or of a configuration; others are the defaults.
          given: The values that the user gives.
        """
        made, found = {**cls.default_values(), **made}, {}
        for name, first in cls.proportional.items():
            number = given.get(first)
            # A wrong one is refused later.
            if name not in given and isinstance(number, numbers.Real) and made[first]:
                is_same = made[name] == made[first]
                found[name] = number if is_same else made[name] * number / made[first]
        return found

    def with_variables(self, variables: Mapping[str, Any]) -> Self:
        """Returns the same settings with variables for the numbers of live fields.

        Args:
          variables: A `tf.Variable` with the value of each field, by name.
        """
        made = copy.copy(self)
        for name, variable in variables.items():
            object.__setattr__(made, name, variable)
        return made

    def fitted(self, num_envs: int) -> dict[str, Any]:
        """Returns the settings that change with the number of environments."""
        return {"num_envs": num_envs}

    def changed(self) -> dict[str, Any]:
        """Returns the values of the fields that differ from their defaults."""
        defaults = self.default_values()
        return {
            name: value
            for name, value in self.to_dict().items()
            if value != defaults[name]
        }


def _make_dataclass(cls: type) -> None:
    """Makes a class a frozen dataclass with the defaults that it changes."""
    for name, default in cls.__dict__.get("defaults", {}).items():
        inherited = cls.__dataclass_fields__[name]  # type: ignore[attr-defined]
        cls.__annotations__[name] = inherited.type
        changed = dataclasses.field(default=default, metadata=inherited.metadata)
        setattr(cls, name, changed)
    dataclasses.dataclass(frozen=True, kw_only=True)(cls)


_make_dataclass(Settings)


def _plain(value: Any) -> Any:
    """Returns a value with its lists replaced by tuples."""
    if isinstance(value, list | tuple):
        return tuple(map(_plain, value))
    return value
