"""Trains DQN with its replay in a server, a separate process.

    python -m examples.train_dqn_service
    python -m examples.train_dqn_service --env=Acrobot-v1 --seed=3

It has the agent and the settings of `tfrl train dqn`, and is an algorithm of its own:
its class only makes another buffer. To resume an interrupted run, run the same command
again. The server's checkpoints are beside the agent's.
"""

from __future__ import annotations

import tfrl
from tfrl import agents, replay_buffers, replay_service, specs
from tfrl.command import train


class DQNWithServer(tfrl.DQN):
    """DQN whose experience is in a replay server."""

    name = "dqn_service"
    relative = "dqn"
    title = "DQN with a replay server"

    jit_compile: bool = False  # The observers that write to the server are Python.

    def check_together(self) -> None:
        """Checks that the server has room for a batch, and can store the frames."""
        super().check_together()
        if self.batch_size > self.replay_capacity:
            raise ValueError(
                f"batch_size: expected at most replay_capacity, {self.replay_capacity},"
                f" got {self.batch_size}; lower batch_size, or raise replay_capacity."
            )
        if self.replay != "uniform" or self.frame_stack or self.goals_per_step:
            raise ValueError(
                "replay: expected 'uniform' in a server, without frame_stack and "
                "goals_per_step; run `tfrl train dqn`."
            )

    def make_replay_buffer(
        self, agent: agents.TFAgent
    ) -> replay_buffers.ReverbReplayBuffer:
        """Makes uniform replay in a server process, with observers that write to it."""
        num_steps = self.n_step_update + 1
        table = replay_service.Table(
            "experience",
            sampler=replay_service.selectors.Uniform(),
            remover=replay_service.selectors.Fifo(),
            max_size=self.replay_capacity,
            rate_limiter=replay_service.rate_limiters.MinSize(self.batch_size),
            signature=specs.tensor_spec.add_outer_dim(
                agent.collect_data_spec, num_steps
            ),
        )
        assert self.logdir is not None
        server = replay_service.Server(
            [table],
            checkpointer=replay_service.checkpointers.DefaultCheckpointer(
                self.logdir / "checkpoints" / "replay"
            ),
            seed=self.seed,
        )

        def make_observer(
            client: replay_service.Client,
        ) -> replay_buffers.ReverbTrajectorySequenceObserver:
            return replay_buffers.ReverbTrajectorySequenceObserver(
                client, table.name, sequence_length=num_steps
            )

        return replay_buffers.ReverbReplayBuffer(
            agent.collect_data_spec,
            table.name,
            sequence_length=num_steps,
            local_server=server,
            make_observer=make_observer,
            batch_size=self.environment.batch_size,
        )


if __name__ == "__main__":
    train.start(DQNWithServer, __doc__)
