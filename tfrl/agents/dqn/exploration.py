"""How DQN explores: with an epsilon-greedy, a Boltzmann or the caller's own policy."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from tfrl.policies import (
    boltzmann_policy,
    epsilon_greedy_policy,
    greedy_policy,
    q_policy,
    tf_policy,
)
from tfrl.utils import number_checks

if TYPE_CHECKING:
    from tfrl.typing import types


# Makes the policy that collects from the policy of the Q-network.
Exploration: TypeAlias = Callable[[tf_policy.TFPolicy], tf_policy.TFPolicy]


def check(
    epsilon_greedy: types.FloatOrSchedule | None,
    boltzmann_temperature: types.FloatOrSchedule | None,
    exploration: Exploration | None = None,
) -> None:
    """Raises an error unless one kind of exploration is given, with a valid number.

    `exploration` takes precedence over `epsilon_greedy`, which has a default. If a
    number is a Keras schedule, its values are checked.
    """
    if exploration is not None:
        if boltzmann_temperature is not None:
            raise ValueError(
                "exploration and boltzmann_temperature: expected one of them, got "
                "both; let exploration return a BoltzmannPolicy, or leave it out."
            )
        return
    if epsilon_greedy is not None and boltzmann_temperature is not None:
        raise ValueError(
            "epsilon_greedy and boltzmann_temperature: expected one of them, got "
            f"{epsilon_greedy} and {boltzmann_temperature}; give None for the other."
        )
    if epsilon_greedy is not None:
        number_checks.check_number(
            "epsilon_greedy",
            epsilon_greedy,
            0.0,
            1.0,
            remedy="it is a probability: 0 never explores, 1 always does",
        )
    elif boltzmann_temperature is not None:
        number_checks.check_number(
            "boltzmann_temperature",
            boltzmann_temperature,
            0.0,
            excludes_low=True,
            remedy="use epsilon_greedy=0.0 for the limit of 0",
        )
    else:
        raise ValueError(
            "epsilon_greedy and boltzmann_temperature: expected one of them, got None "
            "for both; epsilon_greedy=0.0 collects without exploring."
        )


def make_policies(
    policy: q_policy.QPolicy,
    collecting: q_policy.QPolicy,
    epsilon_greedy: types.FloatOrSchedule | None,
    boltzmann_temperature: types.FloatOrSchedule | None,
    seed: int | None,
    exploration: Exploration | None = None,
) -> tuple[tf_policy.TFPolicy, tf_policy.TFPolicy]:
    """Returns a greedy policy from `policy`, and an exploring one from `collecting`."""
    greedy = greedy_policy.GreedyPolicy(policy)
    if exploration is not None:
        return greedy, exploration(collecting)
    if boltzmann_temperature is not None:
        return greedy, boltzmann_policy.BoltzmannPolicy(
            collecting, temperature=boltzmann_temperature, seed=seed
        )
    return greedy, epsilon_greedy_policy.EpsilonGreedyPolicy(
        collecting, epsilon=epsilon_greedy, seed=seed
    )
