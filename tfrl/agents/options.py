"""The settings that agents share, each explained and checked once.

An agent of TF-Agents takes these settings one by one, in TF-Agents' order, and writes
out the records: `TdOptions(gamma=gamma, ...)`. An agent that TF-Agents never had takes
them as keywords, `**settings: Unpack[Settings]`, which editors complete, and makes the
records with `from_settings`. The base classes take the records.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypedDict

import tensorflow as tf

from tfrl.agents import checks, td_losses
from tfrl.utils import number_checks

if TYPE_CHECKING:
    from tfrl.typing import types
    from tfrl.utils.reward_normalizer import RewardNormalizer
    from tfrl.utils.tensor_normalizer import TensorNormalizer

# The classes of agents that have warned that their values can grow without bound.
_warned: set[type] = set()


@dataclasses.dataclass(frozen=True)
class TdOptions:
    """The options of an agent that learns values from temporal differences.

    Attributes:
      target_update_tau: The step size of the targets' soft update; 1 copies the
        weights.
      target_update_period: The number of train steps between updates of the targets;
        None never updates them.
      td_errors_loss_fn: A loss of (targets, predictions), element by element, or an
        instance of `keras.losses.Loss`; Huber if None.
      gamma: The discount factor.
      reward_scale_factor: The factor by which the rewards are multiplied.
      gradient_clipping: The largest norm of each variable's gradient; None does not
        clip.
      n_step_update: The number `n` of steps in the return; `train` then takes
        experience with `T = n + 1`. With a recurrent network, `T` is any number: the
        returns of the last steps have fewer than `n` steps. It must be 1 for a
        recurrent actor and recurrent critics.
    """

    target_update_tau: float = 1.0
    target_update_period: int | None = 1
    td_errors_loss_fn: types.LossFn | None = None
    gamma: float = 1.0
    reward_scale_factor: float = 1.0
    gradient_clipping: float | None = None
    n_step_update: int = 1

    def __post_init__(self) -> None:
        """Checks the numbers, and makes integers of floats such as 2000.0.

        Tensors are not checked.

        Raises:
          ValueError: A number is out of range.
          TypeError: A setting is not a number.
        """
        for name in ("target_update_period", "n_step_update"):
            number = number_checks.as_integer(getattr(self, name))
            object.__setattr__(self, name, number)
        td_losses.check(self.td_errors_loss_fn)
        checks.check_gamma(self.gamma)
        checks.check_scale_of_rewards(self.reward_scale_factor)
        checks.check_gradient_clipping(self.gradient_clipping)
        checks.check_target_update(self.target_update_tau, self.target_update_period)
        checks.check_n_step_update(self.n_step_update, recurrent=False)


@dataclasses.dataclass(frozen=True)
class AgentOptions:
    """The options of an agent of any algorithm.

    Attributes:
      debug_summaries: Whether to write histograms of the parts of the loss.
      summarize_grads_and_vars: Whether to write histograms of gradients and variables.
      train_step_counter: An integer variable that `train` increments; if None, the
        agent makes an int64 variable.
      name: The module's name.
      seed: Seed of the random numbers in the losses and in the policies; None draws a
        seed.
      observation_normalizer: A normalizer of the networks' observations, in the
        policies and the losses, such as a `StreamingTensorNormalizer` of the
        observation spec. Loops update it; see `TFAgent.update_normalizers`.
      reward_normalizer: A normalizer of the losses' rewards, before these are scaled,
        such as a `RewardNormalizer`.
    """

    debug_summaries: bool = False
    summarize_grads_and_vars: bool = False
    train_step_counter: tf.Variable | None = None
    name: str | None = None
    seed: int | None = None
    observation_normalizer: TensorNormalizer | None = None
    reward_normalizer: RewardNormalizer | None = None

    def __post_init__(self) -> None:
        """Checks the counter.

        Raises:
          TypeError: `train_step_counter` is not an integer variable.
        """
        if self.train_step_counter is not None:
            checks.as_train_step_counter(self.train_step_counter)

    def of_base(self) -> dict[str, Any]:
        """Returns the keyword arguments of `TFAgent`: all but the seed."""
        return {
            name: getattr(self, name) for name in _fields(type(self)) if name != "seed"
        }


class TdSettings(TypedDict, total=False):
    """The fields of `TdOptions` as keyword arguments."""

    target_update_tau: float
    target_update_period: int | None
    td_errors_loss_fn: types.LossFn | None
    gamma: float
    reward_scale_factor: float
    gradient_clipping: float | None
    n_step_update: int


class AgentSettings(TypedDict, total=False):
    """The fields of `AgentOptions` as keyword arguments."""

    debug_summaries: bool
    summarize_grads_and_vars: bool
    train_step_counter: tf.Variable | None
    name: str | None
    seed: int | None
    observation_normalizer: TensorNormalizer | None
    reward_normalizer: RewardNormalizer | None


class Settings(TdSettings, AgentSettings, total=False):
    """The fields of both records as keyword arguments."""


def warn_of_growing_values(agent: type, td: TdOptions) -> None:
    """Warns if neither a discount nor slower targets limit an agent's values.

    Args:
      agent: The agent's class; there is one warning for each class.
      td: The agent's options of TD learning.

    Warns:
      UserWarning: The agent's values can grow without bound.
    """
    values = (td.gamma, td.target_update_tau, td.target_update_period)
    if agent in _warned or any(map(tf.is_tensor, values)) or values != (1, 1, 1):
        return
    _warned.add(agent)
    checks.warn_user(
        f"{agent.__name__}: its values can grow without bound, because gamma is 1 and "
        "the target network is a copy of the network after every update "
        "(target_update_tau=1, target_update_period=1), as TF-Agents' defaults are; "
        "gamma=0.99 and target_update_tau=0.005 are usual."
    )


def from_settings(
    agent: type,
    settings: Mapping[str, Any],
    records: Sequence[type] = (TdOptions, AgentOptions),
    **defaults: Any,
) -> tuple[Any, ...]:
    """Makes records, such as `TdOptions`, from an agent's keyword arguments.

    Args:
      agent: The agent's class, for the error.
      settings: The keyword arguments that the agent was given.
      records: The classes of the records.
      **defaults: The agent's own defaults, where they differ from the records'.

    Raises:
      TypeError: A keyword argument is not a setting, or has the wrong type.
      ValueError: A number is out of range.

    Warns:
      UserWarning: See `warn_of_growing_values`.
    """
    known = {name for record in records for name in _fields(record)}
    for name in settings:
        if name not in known:
            raise TypeError(
                f"{agent.__name__}() got an unexpected keyword argument {name!r}, "
                "expected one of its own or of "
                f"{' or '.join(record.__name__ for record in records)}: "
                f"{', '.join(sorted(known))}."
            )
    given = {**defaults, **settings}
    made = tuple(
        record(**{name: given[name] for name in _fields(record) if name in given})
        for record in records
    )
    for record in made:
        if isinstance(record, TdOptions):
            warn_of_growing_values(agent, record)
    return made


def _fields(record: type) -> list[str]:
    return [field.name for field in dataclasses.fields(record)]
