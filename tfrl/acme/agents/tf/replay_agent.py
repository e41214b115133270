"""An agent of Acme that learns from n-step transitions of its own replay server."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypedDict

import keras

from tfrl import replay_service
from tfrl.acme.adders import reverb as adders
from tfrl.acme.agents import agent
from tfrl.acme.agents.tf import actors, learning
from tfrl.networks import sequential
from tfrl.specs import dm_env_specs, tensor_spec
from tfrl.trajectories import time_step as ts
from tfrl.utils import number_checks
from tfrl.utils.random_numbers import seeds

if TYPE_CHECKING:
    from tfrl import loggers
    from tfrl.acme.utils import counting
    from tfrl.agents import tf_agent
    from tfrl.specs import EnvironmentSpec
    from tfrl.typing import types


@dataclasses.dataclass(frozen=True)
class ReplayOptions:
    """The options of a `ReplayAgent`, with Acme's names and defaults.

    Attributes:
      discount: The discount factor.
      n_step: The number of steps of a transition.
      batch_size: The number of transitions in each learner step.
      min_replay_size: The number of observations before the first learner step; never
        less than `batch_size`.
      max_replay_size: The number of transitions to keep; the oldest are removed first.
      samples_per_insert: How often each transition is sampled, on average: there is a
        learner step for every `batch_size / samples_per_insert` observations.
      replay_table_name: The name of the server's table.
      counter: Counts the learner's steps; None for a separate counter.
      logger: Gets the losses; None prints them once a second.
      checkpoint: Whether to save checkpoints every ten minutes, and to restore the
        newest; see `learning.Learner`.
      seed: The seed of actions, samples and losses; None follows `tf.random.set_seed`.
    """

    discount: float = 0.99
    n_step: int = 5
    batch_size: int = 256
    min_replay_size: int = 1_000
    max_replay_size: int = 1_000_000
    samples_per_insert: float = 32.0
    replay_table_name: str = adders.DEFAULT_PRIORITY_TABLE
    counter: counting.Counter | None = None
    logger: loggers.Logger | None = None
    checkpoint: bool = True
    seed: int | None = None

    def __post_init__(self) -> None:
        """Checks the numbers.

        Raises:
          ValueError: A number is out of range.
          TypeError: A setting is not a number.
        """
        number_checks.check_sizes(
            n_step=self.n_step,
            batch_size=self.batch_size,
            min_replay_size=self.min_replay_size,
            max_replay_size=self.max_replay_size,
        )
        number_checks.check_number(
            "discount", self.discount, 0, 1, remedy="0.99 is usual"
        )
        number_checks.check_number(
            "samples_per_insert",
            self.samples_per_insert,
            0,
            excludes_low=True,
            remedy="Acme takes 32",
        )
        if self.max_replay_size < self.min_observations:
            raise ValueError(
                f"max_replay_size: got {self.max_replay_size}, expected at least "
                f"{self.min_observations}, the larger of batch_size and "
                "min_replay_size; raise it."
            )

    @property
    def min_observations(self) -> int:
        """The number of observations before the first learner step."""
        return max(self.batch_size, self.min_replay_size)


class ReplaySettings(TypedDict, total=False):
    """The fields of `ReplayOptions` as keyword arguments."""

    discount: float
    n_step: int
    batch_size: int
    min_replay_size: int
    max_replay_size: int
    samples_per_insert: float
    replay_table_name: str
    counter: counting.Counter | None
    logger: loggers.Logger | None
    checkpoint: bool
    seed: int | None


class ReplayAgent(agent.Agent):
    """Acts in an `EnvironmentLoop`, and trains an agent of tfrl there.

    An `NStepTransitionAdder` writes the agent's experience to a replay server, which
    ends with the agent. Each learner step samples a batch from all earlier experience.
    Thus two runs with the same seed, networks and environment are the same.
    """

    def __init__(
        self,
        environment_spec: EnvironmentSpec,
        make_agent: Callable[[ts.TimeStep, Any, int], tf_agent.TFAgent],
        critic_network: types.Network | types.Layer,
        replay: ReplayOptions,
        label: str,
    ) -> None:
        """Starts the replay server, and restores the newest checkpoint if there is one.

        Args:
          environment_spec: The specs of the environment.
          make_agent: A function of the `TimeStep` of specs, the action spec and the
            seed that returns the agent. The agent takes transitions of one step: the
            adder has already summed the rewards and multiplied the discounts of several
            steps.
          critic_network: The agent's critic, for `get_variables`.
          replay: The settings.
          label: The name of the directory of checkpoints.

        Raises:
          TypeError: `environment_spec` is not the specs of an environment.
        """
        if not isinstance(environment_spec, dm_env_specs.EnvironmentSpec):
            raise TypeError(
                f"environment_spec: got {environment_spec!r} of type "
                f"{type(environment_spec).__name__}, expected an EnvironmentSpec; pass "
                "tfrl.acme.make_environment_spec(environment)."
            )
        seed = seeds.draw_number() % 2**31 if replay.seed is None else replay.seed
        specs = tensor_spec.from_spec(environment_spec)
        trained = make_agent(
            ts.time_step_spec(specs.observations, specs.rewards), specs.actions, seed
        )
        table = replay_service.Table(
            name=replay.replay_table_name,
            sampler=replay_service.selectors.Uniform(),
            remover=replay_service.selectors.Fifo(),
            max_size=replay.max_replay_size,
            rate_limiter=replay_service.rate_limiters.MinSize(1),
            signature=adders.NStepTransitionAdder.signature(environment_spec),
        )
        self._server = replay_service.Server([table], seed=seed)
        client = self._server.localhost_client()
        adder = adders.NStepTransitionAdder(
            client,
            replay.n_step,
            replay.discount,
            priority_fns={replay.replay_table_name: None},
            max_in_flight_items=None,
        )
        learner = learning.Learner(
            trained,
            _batches(client, adder, replay),
            {
                "policy": trained.policy.variables(),
                "critic": critic_network.variables,
            },
            counter=replay.counter,
            logger=replay.logger,
            checkpoint=label if replay.checkpoint else None,
        )
        super().__init__(
            actors.PolicyActor(trained.collect_policy, adder, seed=seed),
            learner,
            replay.min_observations,
            replay.batch_size / replay.samples_per_insert,
        )


def as_network(transformation: Any) -> Any:
    """Returns a network for an `observation_network` that may be a plain function."""
    if transformation is None or isinstance(transformation, keras.layers.Layer):
        return transformation
    return sequential.Sequential([transformation])


def _batches(
    client: replay_service.Client,
    adder: adders.NStepTransitionAdder,
    replay: ReplayOptions,
) -> Iterator[Sequence[Any]]:
    """Yields batches of transitions, each drawn from all experience so far."""
    while True:
        adder.flush()
        sample = client.sample_batch(replay.replay_table_name, replay.batch_size)
        yield sample.data
