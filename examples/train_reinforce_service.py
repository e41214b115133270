"""Trains REINFORCE with its episodes in a replay server, a separate process.

    python -m examples.train_reinforce_service
    python -m examples.train_reinforce_service --use_baseline

It has the agent and the settings of `tfrl train reinforce`, and is an algorithm of its
own: its class only makes another buffer. To resume an interrupted run, run the same
command again. The queue is empty between iterations, so checkpoints do not include it.
"""

from __future__ import annotations

import tfrl
from tfrl import agents, replay_buffers, replay_service, specs
from tfrl.command import train


class REINFORCEWithServer(tfrl.REINFORCE):
    """REINFORCE whose episodes are in a queue of a replay server."""

    name = "reinforce_service"
    relative = "reinforce"
    title = "REINFORCE with a replay server"

    def check_together(self) -> None:
        """Checks that the queue has room for the episodes of an iteration."""
        super().check_together()
        episodes = self.collect_episodes_per_iteration
        if episodes > self.replay_capacity:
            raise ValueError(
                "collect_episodes_per_iteration: expected at most replay_capacity, "
                f"{self.replay_capacity}, got {episodes}; lower it, or raise "
                "replay_capacity."
            )
        if self.num_envs != 1:
            # The queue does not record which environment an episode is from.
            raise ValueError(
                f"num_envs: got {self.num_envs}, expected 1 with a queue; leave it out."
            )

    def make_replay_buffer(
        self, agent: agents.TFAgent
    ) -> replay_buffers.ReverbReplayBuffer:
        """Makes a queue in a server process, with an observer that fills it."""
        table = replay_service.Table.queue(
            "episodes",
            max_size=self.replay_capacity,
            signature=specs.tensor_spec.add_outer_dim(agent.collect_data_spec),
        )

        def make_observer(
            client: replay_service.Client,
        ) -> replay_buffers.ReverbAddEpisodeObserver:
            return replay_buffers.ReverbAddEpisodeObserver(
                client, table.name, max_sequence_length=self.replay_capacity
            )

        return replay_buffers.ReverbReplayBuffer(
            agent.collect_data_spec,
            table.name,
            sequence_length=None,
            local_server=replay_service.Server([table]),
            make_observer=make_observer,
        )


if __name__ == "__main__":
    train.start(REINFORCEWithServer, __doc__)
