"""`Experiment`, the work of the actors and the learner of a run."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import tensorflow as tf

from tfrl import replay_service
from tfrl.agents import tf_agent
from tfrl.distribute.process_roles import LEARNER
from tfrl.environments import tf_environment
from tfrl.replay_service.writing import stream
from tfrl.train.loops import placement
from tfrl.utils import number_checks


@dataclasses.dataclass(frozen=True)
class Experiment:
    """The functions and numbers that define the work of a run's processes.

    Attributes:
      make_environment: Makes an actor's environment, a `TFEnvironment`, from a seed.
      make_agent: Makes the agent from an environment, for the actors and for the
        learner.
      make_table: Makes the table of sequences from its name and signature; its rate
        limiter keeps actors and learner in step.
      sequence_length: The number of frames in an item of the table. Items may cross the
        ends of episodes.
      stride_length: The number of frames from the start of one item to the start of the
        next.
      batch_size: The number of items in an update, of all learners together.
      push_period: The number of updates between pushes of the weights.
      pull_period: The number of steps of an actor's environment in one call. Before
        each call the actor takes the newest weights that have arrived.
      pull_seconds: The least number of seconds between two requests of a host's actors
        for newer weights. A larger number limits the network traffic of large weights.
      make_run_settings: Makes further arguments of `train.Run` from the learner's
        agent, such as `evaluate`.
      importance_exponent: Beta, the degree to which the weights of examples correct the
        bias of a prioritized table; None if the table is not prioritized. In a
        prioritized table the learner sets the priorities of the sequences on which it
        trains. New sequences have priority 1.
      priority_fn: Returns the priorities of sequences; see `train.OffPolicyLoop`.
      max_in_flight: The number of items that are sent to the learner ahead of their
        use; three batches if None.
      jit_compile: Whether actors compile their loops, and the learner the updates
        between two pushes, where possible.
      seed: Seed of the environments and actors.
      device: The learner's device, such as "GPU:0"; "" leaves the choice to TensorFlow,
        which prefers a GPU that it can use. Several learners need "".
      actor_device: The device of the actors and of the evaluator. On the CPU they see
        no GPU, and take none of its memory.
    """

    make_environment: Callable[[int], tf_environment.TFEnvironment]
    make_agent: Callable[[tf_environment.TFEnvironment], tf_agent.TFAgent]
    make_table: Callable[[str, Any], replay_service.Table]
    sequence_length: int
    stride_length: int
    batch_size: int
    push_period: int = 1
    pull_period: int = 20
    pull_seconds: float = 0.02
    make_run_settings: Callable[[tf_agent.TFAgent], Mapping[str, Any]] = lambda _: {}
    importance_exponent: float | None = None
    priority_fn: Callable[[tf.Tensor], tf.Tensor] | None = None
    max_in_flight: int | None = None
    jit_compile: bool = True
    seed: int = 0
    device: str = ""
    actor_device: str = "CPU"

    def device_of(self, role: str) -> str:
        """Returns the device of the processes of a role, see `process_roles`."""
        return self.device if role == LEARNER else self.actor_device

    def items_per_message(self, num_environments: int) -> int:
        """Returns the largest number of items that an actor sends together.

        Args:
          num_environments: The number of the actor's environments.
        """
        of_each = -(-self.pull_period // self.stride_length)
        return min(stream.BATCH, of_each * num_environments)

    def check(self) -> None:
        """Checks the numbers.

        Raises:
          ValueError: A number is not positive.
        """
        number_checks.check_sizes(
            sequence_length=self.sequence_length,
            stride_length=self.stride_length,
            batch_size=self.batch_size,
            push_period=self.push_period,
            pull_period=self.pull_period,
        )
        number_checks.check_number(
            "pull_seconds", self.pull_seconds, 0, remedy="0 asks all the time"
        )
        number_checks.check_number(
            "importance_exponent",
            self.importance_exponent,
            0,
            remedy="1 corrects all of the bias",
            optional=True,
        )

    def build(
        self,
        seed: int,
        strategy: tf.distribute.Strategy | None = None,
        device: str = "",
    ) -> tuple[tf_environment.TFEnvironment, tf_agent.TFAgent]:
        """Makes an environment and the agent, with its variables.

        Args:
          seed: The seed of the environment.
          strategy: The strategy in whose scope the agent is made; None for a single
            replica.
          device: The device of the environment and the agent; "" leaves the choice to
            TensorFlow.

        Raises:
          ValueError: There is no such device.
        """
        with placement.device_scope(device) if device else contextlib.nullcontext():
            environment = self.make_environment(seed)
            with contextlib.nullcontext() if strategy is None else strategy.scope():
                agent = self.make_agent(environment)
            agent.initialize()
        return environment, agent

    def build_agent(self) -> tf_agent.TFAgent:
        """Makes only the agent; an environment is made for its specs, and closed."""
        return self.build_for_learner(device=self.actor_device)[0]

    def build_for_learner(
        self, strategy: tf.distribute.Strategy | None = None, device: str = ""
    ) -> tuple[tf_agent.TFAgent, int]:
        """Makes only the agent, and counts the environments of an actor.

        Args:
          strategy: See `build`.
          device: See `build`.

        Returns:
          The agent, and the batch size of an actor's environment.
        """
        environment, agent = self.build(self.seed, strategy, device)
        environment.close()
        return agent, environment.batch_size
