"""Makes experiments of the algorithms: actors, replay servers and a learner.

A process on another host makes its experiment from the fields of a configuration, which
are valid in JSON.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Self

from tfrl import agents, distribute, environments, replay_service
from tfrl.algorithms import off_policy, run_settings, worlds
from tfrl.algorithms.recipe import Recipe
from tfrl.algorithms.settings import (
    FROM_0,
    SIZE,
    SIZE_OR_0,
    Dataclasses,
    field,
    remedy_for,
)
from tfrl.environments import suites

if TYPE_CHECKING:
    from tfrl.algorithms.builder import Builder

# The algorithms that learn from replay, and from a queue, of what actors write.
OF_REPLAY = ("dqn", "ddqn", "r2d2", "sac", "mpo", "dmpo")
OF_QUEUE = ("ppo", "impala")


class ActorSettings(Dataclasses):
    """The settings of runs with actors and replay servers.

    An iteration of such a run is an update. Actors and learner wait for each other, so
    that there are as many updates for each step as `samples_per_insert` says.
    """

    samples_per_insert: float = field(
        "How often each item is sampled; 0: as often as in one process.",
        FROM_0,
        default=0.0,
    )
    push_period: int = field("Updates between pushes of the weights.", SIZE, default=10)
    pull_period: int = field("Steps of an actor between pulls.", SIZE, default=10)
    stride_length: int = field(
        "Steps from one sequence to the next; 0: a whole sequence, in replay 1.",
        SIZE_OR_0,
        default=0,
    )
    sequences_per_update: int = field(
        "Sequences in an update of PPO or IMPALA.", SIZE, default=16
    )
    max_queue_size: int = field(
        "Sequences that wait for an update of PPO or IMPALA.", SIZE, default=32
    )

    def __init__(self, **values: Any) -> None:
        """Checks the settings; see the fields.

        Raises:
          ValueError: A value is out of its range.
        """
        for name, value in values.items():
            self.check_setting(name, value)
            setattr(self, name, value)

    @classmethod
    def of(cls, recipe: Recipe) -> Self:
        """Returns the settings of a recipe's actors."""
        given = recipe.actors or {}
        return cls(**{name: given[name] for name in given.keys() & cls._settings})


def check(recipe: Recipe) -> None:
    """Raises a ValueError if a recipe cannot be trained with actors."""
    name = recipe.algorithm.name
    if name not in OF_REPLAY + OF_QUEUE:
        known = ", ".join(map(repr, OF_REPLAY + OF_QUEUE))
        raise ValueError(
            f"num_actors: got some for {name!r}, expected one of {known} with actors; "
            "leave it out."
        )
    suites.check_actors(recipe.environment)


def check_rounds(algorithm: Builder, settings: ActorSettings, num_actors: int) -> None:
    """Checks that updates of a run in lockstep are whole rounds, before it starts.

    The learner checks the rest; see `distribute.lockstep.rounds`.

    Args:
      algorithm: The algorithm.
      settings: The settings of the actors.
      num_actors: The number of actors.

    Raises:
      ValueError: They are not.
    """
    if algorithm.name not in OF_QUEUE:
        return
    num_envs = algorithm.settings["num_envs"]
    length = algorithm.steps_per_iteration // num_envs
    if settings.pull_period % length:
        raise ValueError(
            f"pull_period: got {settings.pull_period} for schedule='lockstep', "
            f"expected a multiple of {length}, the steps of a sequence; "
            f"{remedy_for('pull_period')}={length}."
        )
    rows = num_actors * num_envs * (settings.pull_period // length)
    given = settings.sequences_per_update
    is_once = getattr(algorithm, "num_epochs", 1) > 1
    if rows != given and (is_once or rows % given):
        raise ValueError(
            f"sequences_per_update: got {given} for schedule='lockstep', expected "
            f"{rows}{'' if is_once else ' or a divisor of it'}, the sequences of a "
            f"round; {remedy_for('sequences_per_update')}={rows}."
        )


def make_experiment(
    recipe: Mapping[str, Any], **options: bool
) -> distribute.Experiment:
    """Makes the experiment of a recipe.

    Args:
      recipe: The fields of the recipe, with its `actors`; see `Recipe.to_json`.
      **options: Arguments of `run_settings.make` other than the algorithm's parts.

    Raises:
      ValueError: The algorithm cannot be trained with actors, or a setting is wrong.
    """
    own = Recipe.from_json(recipe)
    check(own)
    make = _of_replay if own.algorithm.name in OF_REPLAY else _of_queue
    return make(own.make(), ActorSettings.of(own), options)


def _of_queue(
    algorithm: Builder, actors: ActorSettings, options: Mapping[str, bool]
) -> distribute.Experiment:
    """Makes an experiment whose learner takes each sequence once."""

    def make_table(name: str, signature: Any) -> replay_service.Table:
        return replay_service.Table.queue(
            name, actors.max_queue_size, signature=signature
        )

    if algorithm.settings.get("normalize_rewards"):
        raise ValueError(
            "normalize_rewards: got True with actors, expected False, because the "
            "deviation of returns follows the steps of one process; set "
            "normalize_rewards=False, or train in one process."
        )
    is_ppo = algorithm.name == "ppo"
    length = algorithm.steps_per_iteration // algorithm.settings["num_envs"]
    return _make(
        algorithm,
        # PPO's `train` takes rollouts and does the epochs itself; IMPALA's old weights
        # are those that an actor has pulled.
        {
            "compute_value_and_advantage_in_train": True,
            "num_epochs": algorithm.settings["num_epochs"],
        }
        if is_ppo
        else {"collect_update_period": 1},
        make_table,
        actors,
        options,
        batch_size=actors.sequences_per_update,
        # The last frame of a sequence has the last observation, as the next one's
        # first frame.
        sequence_length=length + 1,
        stride_length=actors.stride_length or length,
    )


def _of_replay(
    algorithm: Builder, actors: ActorSettings, options: Mapping[str, bool]
) -> distribute.Experiment:
    """Makes an experiment whose learner samples uniform or prioritized replay.

    The actors follow the policy from the first step on.
    """
    assert isinstance(algorithm, off_policy.OffPolicy)
    is_prioritized = algorithm.replay == "prioritized"
    min_size = algorithm.initial_collect_steps
    if min_size > algorithm.replay_capacity:
        raise ValueError(
            f"initial_collect_steps: expected at most replay_capacity, "
            f"{algorithm.replay_capacity}, got {min_size}; lower "
            "initial_collect_steps, or raise replay_capacity."
        )
    updated = algorithm.batch_size * algorithm.train_steps_per_iteration
    samples_per_insert = (
        actors.samples_per_insert or updated / algorithm.steps_per_iteration
    )

    def make_table(name: str, signature: Any) -> replay_service.Table:
        return replay_service.Table(
            name,
            sampler=replay_service.selectors.Prioritized(algorithm.priority_exponent)
            if is_prioritized
            else replay_service.selectors.Uniform(),
            remover=replay_service.selectors.Fifo(),
            max_size=algorithm.replay_capacity,
            rate_limiter=replay_service.rate_limiters.SampleToInsertRatio(
                samples_per_insert,
                min_size,
                # Batches are drawn, and items sent, ahead of their use.
                error_buffer=max(
                    4 * algorithm.batch_size,
                    samples_per_insert,
                    0.5 * samples_per_insert * min_size,
                ),
            ),
            signature=signature,
        )

    exponent = algorithm.importance_exponent if is_prioritized else None
    sequence_length = algorithm.trained_sequence_length()
    return _make(
        algorithm,
        {},
        make_table,
        actors,
        options,
        batch_size=algorithm.batch_size,
        sequence_length=sequence_length or algorithm.n_step_update + 1,
        stride_length=actors.stride_length or 1,
        importance_exponent=exponent,
        priority_fn=algorithm.priority_fn(),
    )


def _make(
    algorithm: Builder,
    agent_arguments: Mapping[str, Any],
    make_table: Callable[[str, Any], replay_service.Table],
    actors: ActorSettings,
    options: Mapping[str, bool],
    **arguments: Any,
) -> distribute.Experiment:
    world, settings = algorithm.world, algorithm.settings
    kind = type(algorithm)
    # A learner takes whole batches.
    whole = {"minibatch_size": 0} if "minibatch_size" in settings else {}

    def make_agent(environment: environments.TFEnvironment) -> agents.TFAgent:
        made = kind(
            environment,
            settings={**settings, **whole},
            agent_arguments=agent_arguments,
            environment_name=world.name,
        )
        return made.make_agent()

    return distribute.Experiment(
        lambda seed: worlds.make_environment(
            world.name,
            settings["num_envs"],
            seed,
            fit=world.fit,
            **worlds.own_settings(settings),
        ),
        make_agent,
        make_table,
        make_run_settings=lambda agent: run_settings.make(algorithm, agent, **options),
        push_period=actors.push_period,
        pull_period=actors.pull_period,
        jit_compile=algorithm.jit_compile,
        seed=algorithm.seed,
        device=algorithm.device,
        **arguments,
    )
