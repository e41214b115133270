"""Checks the fields of a configuration before anything is built from them.

An error names the field, the given value, the possible values, and the flag to set.
"""

from __future__ import annotations

import functools
import numbers
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from examples import grids
from tfrl.utils import number_checks

# The largest number of TensorFlow's int32, and a limit for its int64.
_INT32_MAX = 2**31 - 1
_MOST = 10**15
_MOST_ENVIRONMENTS = 10**6


def _integer(minimum: int, maximum: int = _MOST) -> Callable[..., None]:
    return functools.partial(
        number_checks.check_integer, minimum=minimum, maximum=maximum
    )


def _number(**options: Any) -> Callable[..., None]:
    return functools.partial(number_checks.check_number, **options)


def _one_of(choices: Collection[str]) -> Callable[..., None]:
    return functools.partial(_check_choice, choices=choices)


def _check_layers(name: str, value: Any, *, remedy: str) -> None:
    """Raises an error unless `value` is a sequence of positive integers."""
    if not _are_sizes(value):
        raise ValueError(
            f"{name}: expected the positive sizes of layers, such as (64, 64), got "
            f"{value!r}; {remedy}."
        )


def _check_convolutions(name: str, value: Any, *, remedy: str) -> None:
    """Raises an error unless `value` holds three positive integers a convolution."""
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
        isinstance(size, numbers.Integral) and 1 <= size <= _INT32_MAX for size in value
    )


def _check_choice(
    name: str, value: Any, choices: Collection[str], *, remedy: str
) -> None:
    """Raises an error unless `value` is one of some words."""
    if value not in choices:
        raise ValueError(
            f"{name}: expected one of {', '.join(map(repr, choices))}, got {value!r}; "
            f"{remedy}."
        )


_COUNT = _integer(1)
_SIZE = _integer(1, _INT32_MAX)
_ENVIRONMENTS = _integer(1, _MOST_ENVIRONMENTS)
_SIZE_OR_0 = _integer(0, _INT32_MAX)
_FINITE = _number()
_FROM_0 = _number(low=0.0)
_ABOVE_0 = _number(low=0.0, excludes_low=True)
_FRACTION = _number(low=0.0, high=1.0)

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
_DTYPES = ("float32", "mixed_bfloat16", "mixed_float16")

# How each field is checked. Agents check some of these again, by their own arguments'
# names.
CHECKS: dict[str, Callable[..., None]] = {
    "activation": _one_of(ACTIVATIONS),
    "actor_fc_layer_params": _check_layers,
    "actor_learning_rate": _FROM_0,
    "adam_epsilon": _ABOVE_0,
    "actor_update_period": _COUNT,
    "alpha_learning_rate": _FROM_0,
    "batch_size": _SIZE,
    "checkpoint_interval": _COUNT,
    "clip_range": _FROM_0,
    "collect_episodes_per_iteration": _SIZE,
    "burn_in_length": _SIZE_OR_0,
    "collect_steps_per_iteration": _SIZE,
    "collect_update_period": _SIZE,
    "conv_layer_params": _check_convolutions,
    "cql_alpha": _FROM_0,
    "critic_fc_layer_params": _check_layers,
    "critic_learning_rate": _FROM_0,
    "dtype": _one_of(_DTYPES),
    "dual_learning_rate": _FROM_0,
    "emulator": _one_of(("ale-py", "envpool")),
    "entropy_regularization": _FROM_0,
    "epsilon": _FROM_0,
    "epsilon_decay_iterations": _COUNT,
    "epsilon_mean": _FROM_0,
    "epsilon_penalty": _FROM_0,
    "epsilon_stddev": _FROM_0,
    "eval_interval": _COUNT,
    "expectile": _number(low=0.0, high=1.0, excludes_low=True, excludes_high=True),
    "exploration_noise": _FROM_0,
    "fc_layer_params": _check_layers,
    "final_epsilon": _FRACTION,
    "final_importance_exponent": _FROM_0,
    "final_learning_rate": _FROM_0,
    "frame_stack": _SIZE_OR_0,
    "gae_lambda": _FRACTION,
    "gamma": _FRACTION,
    "goals_per_step": _SIZE_OR_0,
    "gradient_clipping": _number(low=0.0, excludes_low=True, optional=True),
    "grid_observations": _one_of(grids.KINDS),
    "gsde_initial_log_std": _FINITE,
    "gsde_sample_freq": _SIZE_OR_0,
    "importance_exponent": _FROM_0,
    "init_log_alpha_mean": _FINITE,
    "init_log_alpha_stddev": _FINITE,
    "init_log_temperature": _FINITE,
    "init_scale": _ABOVE_0,
    "initial_alpha": _ABOVE_0,
    "initial_collect_steps": _SIZE,
    "initial_epsilon": _FRACTION,
    "initial_log_stddev": _FINITE,
    "inverse_temperature": _FROM_0,
    "lambda_value": _FRACTION,
    "learning_rate": _FROM_0,
    "log_interval": _COUNT,
    "loss": _one_of(("squared", "huber")),
    "lstm_size": _SIZE_OR_0,
    "output_fc_layer_params": _check_layers,
    "max_abs_reward": _FROM_0,
    "max_gradient_norm": _FROM_0,
    "max_q_value": _FINITE,
    "max_queue_size": _SIZE,
    "min_q_value": _FINITE,
    "minibatch_size": _SIZE_OR_0,
    "n_step_update": _SIZE,
    "noisy_stddev": _FROM_0,
    "num_action_bins": _SIZE_OR_0,
    "num_atoms": _integer(2, _INT32_MAX),
    "num_cql_samples": _SIZE,
    "num_critics": _SIZE,
    "num_dropped_quantiles": _SIZE_OR_0,
    "num_environment_steps": _COUNT,
    "num_envs": _ENVIRONMENTS,
    "num_epochs": _SIZE,
    "num_eval_episodes": _ENVIRONMENTS,
    "num_iterations": _COUNT,
    "num_min": _SIZE_OR_0,
    "num_quantiles": _SIZE,
    "num_samples": _SIZE,
    "ou_damping": _FRACTION,
    "ou_stddev": _FROM_0,
    "policy_learning_rate": _FROM_0,
    "priority_eta": _FRACTION,
    "priority_exponent": _FROM_0,
    "replay_capacity": _SIZE,
    "pull_period": _SIZE,
    "push_period": _SIZE,
    "reward_scale": _FINITE,
    "samples_per_insert": _ABOVE_0,
    # The seeds of networks and environments are a little larger.
    "seed": _integer(0, 2**62),
    "sequence_length": _SIZE,
    "sigma": _FROM_0,
    "stride_length": _SIZE,
    "target_entropy_fraction": _FRACTION,
    "target_entropy_per_dimension": _FINITE,
    "target_kl": _FROM_0,
    "target_policy_noise": _FROM_0,
    "target_policy_noise_clip": _FROM_0,
    "target_update_period": _COUNT,
    "target_update_tau": _FRACTION,
    "trace_length": _SIZE_OR_0,
    "train_steps_per_iteration": _SIZE,
    "value_clip_range": _FROM_0,
    "value_loss_weight": _FROM_0,
    "vmax": _FINITE,
    "vmin": _FINITE,
}


def check(config: Mapping[str, Any], plain_flags: Collection[str] = ()) -> None:
    """Checks every field that has a check, and the fields that depend on each other.

    Args:
      config: The configuration.
      plain_flags: The fields that have a flag of their own, such as --seed.

    Raises:
      ValueError: A field has another value than it may have.
      TypeError: A field is not a number.
    """
    for name, value in config.items():
        if name in CHECKS:
            flag = name if name in plain_flags else f"config.{name}"
            CHECKS[name](
                name, value, remedy=f"set --{flag}, or edit the configuration file"
            )
    if "replay_capacity" in config:
        _check_capacity(config)
    if "collect_episodes_per_iteration" in config:
        _check_episodes(config)
    if "munchausen" in config:
        _check_value_based(config)
    _check_row_format(config)


def _check_capacity(config: Mapping[str, Any]) -> None:
    """Raises a ValueError if the replay buffer has no room for a sample."""
    each = config.get("n_step_update", 0) + 1
    least = each * config.get("num_envs", 1)
    if config["replay_capacity"] < least:
        raise ValueError(
            f"replay_capacity: expected at least {least:,}, {each:,} frames of each "
            f"environment (num_envs, n_step_update), got {config['replay_capacity']}; "
            "set --config.replay_capacity, or edit the configuration file."
        )


def _check_row_format(config: Mapping[str, Any]) -> None:
    """Raises a ValueError if no replay stores frames as the fields say."""
    given = [name for name in ("frame_stack", "goals_per_step") if config.get(name)]
    if given and config["replay"] == "service":
        raise ValueError(
            f"{given[0]}: expected 0 with replay in a server, which stores whole "
            f"observations and relabels no goals, got {config[given[0]]}; set "
            f"--config.{given[0]}=0, or run train_dqn."
        )
    if len(given) == 2:
        raise ValueError(
            "frame_stack: expected 0 with goals_per_step, since replay stores frames "
            f"once or relabels goals, got {config['frame_stack']}; set one of them "
            "to 0."
        )


def _check_episodes(config: Mapping[str, Any]) -> None:
    """Raises a ValueError if environments would give different numbers of episodes."""
    episodes = config["collect_episodes_per_iteration"]
    num_envs = config.get("num_envs", 1)
    if episodes % num_envs:
        raise ValueError(
            "collect_episodes_per_iteration: expected a multiple of num_envs, "
            f"{num_envs}, got {episodes}; set --config.collect_episodes_per_iteration "
            "or --config.num_envs, or edit the configuration file."
        )


def _check_value_based(config: Mapping[str, Any]) -> None:
    """Raises a ValueError if options of `train_dqn` do not go together."""
    # Configurations of DQN alone have no atoms.
    if not config.get("min_q_value", 0) < config.get("max_q_value", 1):
        raise ValueError(
            f"max_q_value: expected more than min_q_value, {config['min_q_value']}, "
            f"got {config['max_q_value']}; set --config.max_q_value or "
            "--config.min_q_value."
        )
    if config["agent"] == "r2d2":
        for name in ("lstm_size", "trace_length"):
            if not config.get(name):
                raise ValueError(
                    f"{name}: expected a positive number for R2D2, got "
                    f"{config.get(name)}; set --config.{name}, or take "
                    "configs/r2d2.py."
                )
        if not config["double_q"]:
            raise ValueError(
                "double_q: expected True for R2D2, got False; set "
                "--config.double_q=True."
            )
    if not config["munchausen"]:
        return
    if config["agent"] not in ("dqn", "qr_dqn", "iqn"):
        raise ValueError(
            "munchausen: expected agent to be 'dqn', 'qr_dqn' or 'iqn' with it, got "
            f"{config['agent']!r}; set --config.agent, or --config.munchausen=False."
        )
    wanted = {"double_q": False, "n_step_update": 1}
    given = {name: config[name] for name in wanted}
    if given != wanted:
        remedy = " ".join(f"--config.{name}={value}" for name, value in wanted.items())
        raise ValueError(
            f"munchausen: expected {wanted} with it, got {given}; set {remedy}, or "
            "--config.munchausen=False."
        )


def check_at_most(config: Mapping[str, Any], name: str, limit: str) -> None:
    """Raises a ValueError if the field `name` is larger than the field `limit`."""
    if config[name] > config[limit]:
        raise ValueError(
            f"{name}: expected at most {limit}, {config[limit]}, got {config[name]}; "
            f"lower --config.{name}, or raise --config.{limit}."
        )


def learning_rates(words: Sequence[str]) -> list[float]:
    """Returns the learning rates of the sweep, whose names of folders differ.

    Raises:
      ValueError: A word is no number that a learning rate can be, or two are the same.
    """
    remedy = "set --learning_rates=3e-4,1e-3, say"
    try:
        rates = [float(word) for word in words]
    except ValueError:
        rates = []
    if not rates or len({f"{rate:g}" for rate in rates}) < len(rates):
        raise ValueError(
            f"learning_rates: expected different numbers, with commas, got "
            f"{','.join(words)!r}; {remedy}."
        )
    for rate in rates:
        CHECKS["learning_rate"]("learning_rates", rate, remedy=remedy)
    return rates
