"""`IQL`, `CQL`, `TD3BC`, `ReBRAC`, `EDAC` and `BC`, which learn from recorded data.

Kostrikov et al. (2021), Kumar et al. (2020), Fujimoto and Gu (2021), Tarasov et al.
(2023), An et al. (2021), and behavioural cloning. The equations are in `tfrl.agents`.
"""

from __future__ import annotations

import functools
import glob
import os
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from tfrl import agents, datasets, networks, replay_buffers, train, utils
from tfrl.algorithms import mixins, parts, spaces
from tfrl.algorithms.settings import (
    FINITE,
    FRACTION,
    FROM_0,
    SIZE,
    field,
    final,
    integer,
    number,
    remedy_for,
)
from tfrl.system import log, paths


class Offline(
    mixins.OneRate,
    mixins.Layers,
    mixins.Networks,
    mixins.Updates,
    mixins.Normalized,
):
    """The base of the algorithms of this module.

    The default settings were chosen on seeds from 100 up.
    """

    is_offline = True
    supports_sweep = False
    environment_name = "Pendulum-v1"

    num_iterations: int = 20_000
    eval_interval: int = 2_000

    data: str | Mapping[str, Any] = field(
        "Files of recordings, or a Minari dataset's folder; {env} is the environment.",
        default=f"{paths.RECORDINGS}/*.tfrecord",
        takes_objects=True,
    )

    def make_actor(self, projection: Any) -> networks.Network:
        """Makes an actor with a head for continuous actions."""
        return parts.stochastic_actor(
            self, self.fc_layer_params, continuous_projection_net=projection
        )

    def make_loop(self, agent: agents.TFAgent) -> train.TrainingLoop:
        """Makes the loop, with a buffer of the data; see `Algorithm.make_loop`.

        The environment is only for evaluations.
        """
        return train.OfflineLoop(
            agent,
            self._recorded(agent),
            train_steps_per_iteration=self.train_steps_per_iteration,
            sample_batch_size=self.batch_size,
            seed=self.seed,
            jit_compile="auto" if self.jit_compile else False,
        )

    def _recorded(self, agent: agents.TFAgent) -> Any:
        """Returns the buffer of recorded frames."""
        with train.device_scope(self.device):
            buffer = self.own_buffer(agent)
            return self.make_replay_buffer(agent) if buffer is None else buffer

    def check_environment(self) -> None:
        """Checks that there is data, too; see `Algorithm.check_environment`."""
        super().check_environment()
        if not (self.own_objects or self.own_replay_buffer is not None):
            find_files(self._path())

    def _path(self) -> str:
        return paths.in_folder_of(str(self.data), self.world.name)

    def _load(self, spec: Any) -> Any:
        """Returns the frames of arrays, of recordings or of a Minari dataset."""
        if self.own_objects:
            return datasets.load_arrays(self.own_objects["data"], spec)
        files = find_files(self._path())
        if os.path.isdir(files[0]) or files[0].endswith(".hdf5"):
            return datasets.load_minari(files[0], spec)
        return datasets.load_recordings(files)

    def make_replay_buffer(
        self, agent: agents.TFAgent
    ) -> replay_buffers.TFUniformReplayBuffer:
        """Makes a buffer of all recorded frames, and logs their returns."""
        import tensorflow as tf  # Not at the top: --help does not wait for it.

        # Parsed once, for the buffer and for the returns.
        frames = self._load(agent.collect_data_spec)
        blocks = frames.batch(1024).as_numpy_iterator()
        arrays = tf.nest.map_structure(lambda *parts: np.concatenate(parts), *blocks)
        frames = tf.data.Dataset.from_tensor_slices(arrays)
        num_frames = len(arrays.step_type)
        replay_buffer = replay_buffers.TFUniformReplayBuffer(
            agent.collect_data_spec, batch_size=1, max_length=num_frames, seed=self.seed
        )
        datasets.fill(replay_buffer, frames)
        returns = datasets.episode_returns(frames)
        log.info(f"Data: {num_frames:,} frames, {_episodes_in_words(returns)}")
        return replay_buffer


class BC(Offline):
    """Behavioural cloning: the likelihood of recorded actions."""

    name = "bc"
    relative = "iql"
    title = "Behavioural cloning"
    agent_name = "BehavioralCloningAgent"

    def make_networks(self) -> dict[str, Any]:
        """Makes the actor."""
        return {"cloning_network": self.make_actor(_plain_projection())}

    def agent_arguments(self) -> dict[str, Any]:
        """Returns the agent's arguments; see `Algorithm.agent_arguments`."""
        optimizer = parts.adam(self.learning_rate)
        return {**super().agent_arguments(), "optimizer": optimizer}


class LearnsValues(mixins.TargetStep, mixins.Discount, Offline):
    """The base of the algorithms that learn values from data.

    They can learn on in their environment, from recorded and new frames.

    Attributes:
      more_optimizers: The agent's arguments for optimizers beside actor and critic.
    """

    more_optimizers: ClassVar[tuple[str, ...]] = ()

    online_share: float = field(
        "Share of new frames in each update; 0 takes no steps in the environment.",
        FRACTION,
        default=0.0,
    )
    initial_collect_steps: int = field(
        "Steps of the policy before the first update.",
        SIZE,
        default=200,
        needs=("online_share", True),
    )
    replay_capacity: int = field(
        "New frames that are kept.",
        SIZE,
        default=200_000,
        needs=("online_share", True),
    )

    reward_scale: float = field(
        "Factor by which rewards are multiplied.", FINITE, default=0.1
    )

    def check_together(self) -> None:
        """Checks that updates get new frames, and that the buffer can hold some."""
        super().check_together()
        if not self.online_share:
            return
        if self.replay_capacity < 2:
            raise ValueError(
                "replay_capacity: expected at least 2 new frames with online_share, "
                f"got {self.replay_capacity}; {remedy_for('replay_capacity')}."
            )
        drawn = self.batch_size * self.train_steps_per_iteration
        if drawn * self.online_share < 1 - 1e-6:  # As in `MixedReplayBuffer`.
            raise ValueError(
                f"online_share: expected 0, or at least 1 of the {drawn} frames of an "
                "iteration's updates (batch_size, train_steps_per_iteration), which is "
                f"{1 / drawn:.3g}, got {self.online_share}, with which none is new; "
                f"{remedy_for('online_share')}."
            )

    @property
    def steps_per_iteration(self) -> int:
        """The environment steps of an iteration; 0 for recorded frames alone."""
        return 1 if self.online_share else 0

    @property
    def initial_steps(self) -> int:
        """The environment steps before the first iteration."""
        return self.initial_collect_steps if self.online_share else 0

    def make_loop(self, agent: agents.TFAgent) -> train.TrainingLoop:
        """Makes the loop, with a buffer of the data; see `Algorithm.make_loop`.

        With `online_share`, it steps the environment, too.
        """
        if not self.online_share:
            return super().make_loop(agent)
        recorded = self._recorded(agent)
        if agent.observation_normalizer:
            agent.update_normalizers(recorded.gather_all())
        with train.device_scope(self.device):
            new = replay_buffers.TFUniformReplayBuffer(
                agent.collect_data_spec,
                batch_size=self.environment.batch_size,
                max_length=self.replay_capacity // self.environment.batch_size,
                # Checkpoints hold its generator, though its samples have other seeds.
                seed=self.seed,
            )
            buffer = replay_buffers.MixedReplayBuffer(
                new, recorded, self.online_share, seed=self.seed
            )
        return train.OffPolicyLoop(
            self.environment,
            agent,
            buffer,
            train_steps_per_iteration=self.train_steps_per_iteration,
            initial_collect_steps=self.initial_collect_steps,
            initial_collect_policy=agent.collect_policy,
            sample_batch_size=self.batch_size,
            sampling="variables",
            seed=self.seed,
            jit_compile="auto" if self.jit_compile else False,
        )

    def actor_rate(self) -> Any:
        """Returns the actor's learning rate, or its schedule if it changes."""
        return self.learning_rate

    @property
    def has_one_choice(self) -> bool:
        """Whether an action of the environment is one discrete choice."""
        return spaces.is_one_choice(self.environment.action_spec())

    def make_critic(self, **arguments: Any) -> networks.Network:
        """Makes the critic, which the agent copies; see `parts.critic`.

        For one discrete action it is a Q-network, without further arguments.
        """
        if self.has_one_choice:
            return parts.q_network(self, self.fc_layer_params)
        return parts.critic(self, **arguments)

    def make_optimizers(self) -> dict[str, Any]:
        """Makes the optimizers, a dict by the agent's arguments."""
        others = ("critic_optimizer", *self.more_optimizers)
        return {
            "actor_optimizer": parts.adam(self.actor_rate()),
            **{name: parts.adam(self.learning_rate) for name in others},
        }

    def agent_arguments(self) -> dict[str, Any]:
        """Returns the agent's arguments; see `Algorithm.agent_arguments`."""
        return {
            **super().agent_arguments(),
            **self.make_optimizers(),
            "gamma": self.gamma,
            "reward_scale_factor": self.reward_scale,
        }


class IQL(LearnsValues):
    """IQL: expectiles of the values of recorded actions (Kostrikov et al., 2021)."""

    name = "iql"
    title = "IQL"
    agent_name = "IqlAgent"
    more_optimizers = ("value_optimizer",)
    actions = "discrete or continuous"

    expectile: float = field(
        "Expectile of the values of recorded actions.",
        number(low=0.0, high=1.0, excludes_low=True, excludes_high=True),
        default=0.7,
    )
    inverse_temperature: float = field(
        "Inverse temperature of advantages; 0 clones all actions.", FROM_0, default=10.0
    )
    final_actor_learning_rate: float | None = final(
        "learning rate of the actor", default=None
    )

    def make_networks(self) -> dict[str, Any]:
        """Makes the critics, the values and the actor."""
        return {
            "critic_network": self.make_critic(),
            "value_network": parts.value_network(self, 2),
            "actor_network": self.make_actor(_plain_projection()),
        }

    def agent_arguments(self) -> dict[str, Any]:
        """Returns the agent's arguments; see `Algorithm.agent_arguments`."""
        return {
            **super().agent_arguments(),
            "expectile": self.expectile,
            "inverse_temperature": self.inverse_temperature,
        }

    def actor_rate(self) -> Any:
        """Returns the actor's learning rate, or its schedule if it changes."""
        return parts.schedule(
            self.learning_rate, self.num_updates, self.final_actor_learning_rate
        )


class CQL(LearnsValues):
    """CQL: a penalty on actions outside of the data (Kumar et al., 2020).

    It is on SAC for continuous actions, and on double DQN for one discrete action.
    """

    name = "cql"
    relative = "iql"
    title = "CQL"
    agent_name = "CqlSacAgent"
    more_optimizers = ("alpha_optimizer",)
    actions = "discrete or vector"
    takes_masks = True

    cql_alpha: float = field("Weight of the penalty.", FROM_0, default=0.1)
    num_cql_samples: int = field(
        "Sampled actions of each kind in the penalty.", SIZE, default=4
    )

    def agent_class(self) -> Any:
        """Returns the agent's class, by the environment's actions."""
        return agents.CqlDqnAgent if self.has_one_choice else super().agent_class()

    def make_networks(self) -> dict[str, Any]:
        """Makes the critics and the actor, whose actions are squashed.

        For one discrete action, there is only the Q-network.
        """
        if self.has_one_choice:
            return {"q_network": self.make_critic()}
        return {
            "critic_network": self.make_critic(),
            "actor_network": self.make_actor(parts.squashed_projection()),
        }

    def make_optimizers(self) -> dict[str, Any]:
        """Makes the optimizers, a dict by the agent's arguments."""
        if self.has_one_choice:
            return {"optimizer": parts.adam(self.learning_rate)}
        return super().make_optimizers()

    def agent_arguments(self) -> dict[str, Any]:
        """Returns the agent's arguments; see `Algorithm.agent_arguments`.

        Raises:
          ValueError: There are samples for the penalty, but the action is discrete.
        """
        found = {**super().agent_arguments(), "cql_alpha": self.cql_alpha}
        if self.has_one_choice:
            usual = self.defaults()["num_cql_samples"]
            if self.num_cql_samples != usual:
                raise ValueError(
                    f"num_cql_samples: got {self.num_cql_samples}, expected the "
                    f"default, {usual}, since the penalty is exact for a discrete "
                    "action, without samples; leave it out."
                )
            return found
        return {
            "random_seed": found.pop("seed"),
            **found,
            "num_cql_samples": self.num_cql_samples,
            "include_critic_entropy_term": False,
            "use_lagrange_cql_alpha": False,
            "greedy_eval": True,
        }


class NearRecordedActions(LearnsValues):
    """The base of the algorithms that are TD3 near the recorded actions."""

    actions = "continuous"

    def make_networks(self) -> dict[str, Any]:
        """Makes the critic, which the agent copies, and the actor."""
        actor = parts.deterministic_actor(self)
        return {"critic_network": self.make_critic(), "actor_network": actor}

    def agent_arguments(self) -> dict[str, Any]:
        """Returns the agent's arguments; see `Algorithm.agent_arguments`."""
        return {
            **super().agent_arguments(),
            "td_errors_loss_fn": utils.common.element_wise_squared_loss,
            "actor_update_period": 2,
            "target_update_period": 2,
            "noise_scaled_to_spec": True,
        }


class TD3BC(NearRecordedActions):
    """TD3+BC: TD3 drawn to the recorded actions (Fujimoto and Gu, 2021)."""

    name = "td3_bc"
    title = "TD3+BC"
    agent_name = "Td3BcAgent"

    bc_alpha: float = field(
        "Weight of the values beside cloning; 0 clones.", FROM_0, default=2.5
    )

    def agent_arguments(self) -> dict[str, Any]:
        """Returns the agent's arguments; see `Algorithm.agent_arguments`."""
        return {**super().agent_arguments(), "alpha": self.bc_alpha}


class ReBRAC(NearRecordedActions):
    """ReBRAC: TD3 with penalties on unlike actions (Tarasov et al., 2023)."""

    name = "rebrac"
    title = "ReBRAC"
    agent_name = "RebracAgent"

    actor_penalty: float = field(
        "Weight of the actor's distance from recorded actions.", FROM_0, default=0.01
    )
    critic_penalty: float = field(
        "Weight of that distance in the critics' targets.", FROM_0, default=0.01
    )

    def make_critic(self, **arguments: Any) -> networks.Network:
        """Makes the critic, whose layers are normalized."""
        body = networks.layers.bodies.layer_normed
        return super().make_critic(body=body, **arguments)

    def agent_arguments(self) -> dict[str, Any]:
        """Returns the agent's arguments; see `Algorithm.agent_arguments`."""
        return {
            **super().agent_arguments(),
            "actor_penalty": self.actor_penalty,
            "critic_penalty": self.critic_penalty,
        }


class EDAC(LearnsValues):
    """EDAC: SAC with many, diverse critics (An et al., 2021)."""

    name = "edac"
    title = "EDAC"
    agent_name = "EdacAgent"
    more_optimizers = ("alpha_optimizer",)
    actions = "continuous"

    num_critics: int = field("Critics in the ensemble.", integer(2), default=10)
    eta: float = field(
        "Weight of the similarity of critics' gradients; 0 is SAC-N.",
        FROM_0,
        default=1.0,
    )

    def make_networks(self) -> dict[str, Any]:
        """Makes the ensemble of critics and the actor, whose actions are squashed."""
        critic = parts.critics(self, self.num_critics, self.fc_layer_params)
        actor = self.make_actor(parts.squashed_projection())
        return {"critic_network": critic, "actor_network": actor}

    def agent_arguments(self) -> dict[str, Any]:
        """Returns the agent's arguments; see `Algorithm.agent_arguments`."""
        return {
            **super().agent_arguments(),
            "eta": self.eta,
            "target_entropy": -utils.actions.num_components(
                self.environment.action_spec()
            ),
            "greedy_eval": True,
        }


def _plain_projection() -> Any:
    """Returns a head for actions at the bounds: only the mean is squashed."""
    import tensorflow as tf  # Not at the top: --help does not wait for it.

    return functools.partial(
        networks.NormalProjectionNetwork,
        std_transform=lambda x: tf.exp(tf.clip_by_value(x, -5.0, 2.0)),
    )


def _episodes_in_words(returns: np.ndarray) -> str:
    """Returns how many whole episodes there are, and what they return."""
    if not len(returns):
        return "no whole episode"
    return (
        f"{len(returns)} whole episodes, mean return {returns.mean():.1f} "
        f"({returns.min():.1f} to {returns.max():.1f})"
    )


def find_files(path: str) -> list[str]:
    """Returns the files of recordings, or a Minari dataset's folder or file.

    Raises:
      ValueError: There is nothing at the path.
    """
    files = sorted(glob.glob(os.path.expanduser(path)))
    if not files:
        raise ValueError(
            f"data: got {path!r}, where there is no file or folder, expected "
            "recordings, which tfrl record makes, or the folder of a dataset of "
            "Minari's: `minari download NAME` fetches one to ~/.minari/datasets/NAME. "
            "Set data (--data) to either."
        )
    return files
