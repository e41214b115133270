"""`IQL`, `CQL` and `BC`, which learn from recorded data.

Kostrikov et al. (2021), Kumar et al. (2020), and behavioural cloning. The equations are
in `tfrl.agents`.
"""

from __future__ import annotations

import functools
import glob
import os
from typing import Any, ClassVar

import numpy as np

from tfrl import agents, datasets, environments, networks, replay_buffers, train
from tfrl.algorithms import algorithm, parts, recordings
from tfrl.algorithms.settings import (
    FINITE,
    FRACTION,
    FROM_0,
    SIZE,
    Settings,
    check_layers,
    field,
    number,
)
from tfrl.system import log


class BCSettings(Settings):
    """The settings of behavioural cloning, which were chosen on seeds from 100 up."""

    defaults: ClassVar = {"num_iterations": 20_000, "eval_interval": 2_000}

    data: str = field(
        f"{recordings.FOLDER}/*.tfrecord",
        "Files of recordings, or a Minari dataset's folder; {env} is the environment.",
    )
    train_steps_per_iteration: int = field(1, "Updates in each iteration.", SIZE)
    batch_size: int = field(64, "Frames in each update.", SIZE)
    fc_layer_params: tuple[int, ...] = field(
        (64, 64), "Units of each network's hidden layers.", check_layers
    )
    normalize_observations: bool = field(
        False, "Normalize observations by the data's mean and variance."
    )
    learning_rate: float = field(1e-3, "Learning rate of Adam.", FROM_0)


class OfflineSettings(BCSettings):
    """The settings of algorithms that learn values from data."""

    gamma: float = field(0.99, "Discount per step.", FRACTION)
    reward_scale: float = field(0.1, "Factor by which rewards are multiplied.", FINITE)
    target_update_tau: float = field(
        0.005, "Step size of the target critics towards the critics.", FRACTION
    )


class IQLSettings(OfflineSettings):
    """The settings of IQL."""

    expectile: float = field(
        0.7,
        "Expectile of the values of recorded actions.",
        number(low=0.0, high=1.0, excludes_low=True, excludes_high=True),
    )
    inverse_temperature: float = field(
        10.0, "Inverse temperature of advantages; 0 clones all actions.", FROM_0
    )


class CQLSettings(OfflineSettings):
    """The settings of CQL."""

    cql_alpha: float = field(0.1, "Weight of the penalty.", FROM_0)
    num_cql_samples: int = field(
        4, "Sampled actions of each kind in the penalty.", SIZE
    )


class BC(algorithm.Algorithm):
    """Behavioural cloning: the likelihood of recorded actions."""

    Settings: ClassVar[Any] = BCSettings
    name = "bc"
    relative: ClassVar[str | None] = "iql"
    title = "Behavioural cloning"
    agent_name = "BehavioralCloningAgent"
    is_offline = True
    supports_sweep = False
    environment_name = "Pendulum-v1"

    def make_networks(self) -> dict[str, Any]:
        """Makes the actor."""
        s = self.settings
        return {
            "cloning_network": _make_actor(s, self.environment, _plain_projection())
        }

    def agent_arguments(self) -> dict[str, Any]:
        """Returns the agent's arguments; see `Algorithm.agent_arguments`."""
        import keras  # Not at the top: --help does not wait for TensorFlow.

        s = self.settings
        return {
            "optimizer": keras.optimizers.Adam(s.learning_rate),
            "observation_normalizer": parts.observation_normalizer(
                s, self.observation_spec
            ),
            "seed": s.seed,
        }

    def make_loop(self, agent: agents.TFAgent) -> train.OfflineLoop:
        """Makes the loop, with a buffer of the data; see `Algorithm.make_loop`.

        The environment is only for evaluations.
        """
        s = self.settings
        with train.device_scope(s.device):
            buffer = self.own_buffer(agent)
            if buffer is None:
                buffer = make_replay_buffer(s, agent, self.world.name)
        return train.OfflineLoop(
            agent,
            buffer,
            train_steps_per_iteration=s.train_steps_per_iteration,
            sample_batch_size=s.batch_size,
            seed=s.seed,
            jit_compile="auto" if s.jit_compile else False,
        )


class IQL(BC):
    """IQL: expectiles of the values of recorded actions (Kostrikov et al., 2021)."""

    Settings = IQLSettings
    name = "iql"
    relative = None
    title = "IQL"
    agent_name = "IqlAgent"
    actions = "continuous"

    def make_networks(self) -> dict[str, Any]:
        """Makes the critics, the values and the actor."""
        s = self.settings
        value_network = networks.ValueNetwork(
            self.observation_spec,
            fc_layer_params=s.fc_layer_params,
            seed=s.seed + 2,
            **parts.network_arguments(s, self.observation_spec),
        )
        return {
            "critic_network": _make_critic(s, self.environment),
            "value_network": value_network,
            "actor_network": _make_actor(s, self.environment, _plain_projection()),
        }

    def agent_arguments(self) -> dict[str, Any]:
        """Returns the agent's arguments; see `Algorithm.agent_arguments`."""
        s = self.settings
        return {
            **_arguments_of_values(s, self.environment, "value_optimizer"),
            "expectile": s.expectile,
            "inverse_temperature": s.inverse_temperature,
            "seed": s.seed,
        }


class CQL(BC):
    """CQL on SAC: a penalty on actions outside of the data (Kumar et al., 2020)."""

    Settings = CQLSettings
    name = "cql"
    relative = "iql"
    title = "CQL"
    agent_name = "CqlSacAgent"
    actions = "vector"

    def make_networks(self) -> dict[str, Any]:
        """Makes the critics and the actor, whose actions are squashed."""
        s = self.settings
        squashed = functools.partial(
            agents.sac.TanhNormalProjectionNetwork,
            std_transform=agents.sac.std_clip_transform,
        )
        return {
            "critic_network": _make_critic(s, self.environment),
            "actor_network": _make_actor(s, self.environment, squashed),
        }

    def agent_arguments(self) -> dict[str, Any]:
        """Returns the agent's arguments; see `Algorithm.agent_arguments`."""
        s = self.settings
        return {
            **_arguments_of_values(s, self.environment, "alpha_optimizer"),
            "cql_alpha": s.cql_alpha,
            "num_cql_samples": s.num_cql_samples,
            "include_critic_entropy_term": False,
            "use_lagrange_cql_alpha": False,
            "random_seed": s.seed,
            "greedy_eval": True,
        }


def _arguments_of_values(
    s: Any, environment: environments.TFEnvironment, third_optimizer: str
) -> dict[str, Any]:
    """Returns the arguments that IQL and CQL share."""
    import keras  # Not at the top: --help does not wait for TensorFlow.

    optimizers = ("actor_optimizer", "critic_optimizer", third_optimizer)
    return {
        **{name: keras.optimizers.Adam(s.learning_rate) for name in optimizers},
        "target_update_tau": s.target_update_tau,
        "gamma": s.gamma,
        "reward_scale_factor": s.reward_scale,
        "observation_normalizer": parts.observation_normalizer(
            s, environment.observation_spec()
        ),
    }


def _make_actor(
    s: Any, environment: environments.TFEnvironment, projection: Any
) -> networks.Network:
    return networks.ActorDistributionNetwork(
        environment.observation_spec(),
        environment.action_spec(),
        fc_layer_params=s.fc_layer_params,
        continuous_projection_net=projection,
        seed=s.seed,
        **parts.network_arguments(s, environment.observation_spec()),
    )


def _make_critic(s: Any, environment: environments.TFEnvironment) -> networks.Network:
    return networks.CriticNetwork(
        (environment.observation_spec(), environment.action_spec()),
        joint_fc_layer_params=s.fc_layer_params,
        seed=s.seed + 1,
        **parts.network_arguments(s, environment.observation_spec(), for_critic=True),
    )


def _plain_projection() -> Any:
    """Returns a head for actions at the bounds: only the mean is squashed."""
    import tensorflow as tf  # Not at the top: --help does not wait for it.

    return functools.partial(
        networks.NormalProjectionNetwork,
        std_transform=lambda x: tf.exp(tf.clip_by_value(x, -5.0, 2.0)),
    )


def make_replay_buffer(
    s: Any, agent: agents.TFAgent, environment: str
) -> replay_buffers.TFUniformReplayBuffer:
    """Makes a buffer of all recorded frames, and prints their mean return.

    It also shows the frames to the agent's normalizer.

    Args:
      s: The settings.
      agent: The agent.
      environment: The environment's name; empty if it has none.
    """
    import tensorflow as tf  # Not at the top: --help does not wait for it.

    # Parsed once, for the buffer and for the returns.
    path = recordings.in_folder_of(s.data, environment)
    blocks = load(path, agent.collect_data_spec).batch(1024).as_numpy_iterator()
    arrays = tf.nest.map_structure(lambda *parts: np.concatenate(parts), *blocks)
    frames = tf.data.Dataset.from_tensor_slices(arrays)
    num_frames = len(arrays.step_type)
    replay_buffer = replay_buffers.TFUniformReplayBuffer(
        agent.collect_data_spec, batch_size=1, max_length=num_frames, seed=s.seed
    )
    datasets.fill(replay_buffer, frames)
    one_sequence = tf.nest.map_structure(lambda x: tf.constant(x[np.newaxis]), arrays)
    agent.update_normalizers(one_sequence)
    returns = datasets.episode_returns(frames)
    mean = f", mean return {returns.mean():.1f}" if len(returns) else ""
    log.info(f"Data: {num_frames:,} frames, {len(returns)} whole episodes{mean}")
    return replay_buffer


def load(path: str, spec: Any) -> Any:
    """Returns the frames of recordings, or of a Minari dataset's folder.

    Raises:
      ValueError: There is nothing at the path.
    """
    path = os.path.expanduser(path)
    if os.path.isdir(path) or path.endswith(".hdf5"):
        return datasets.load_minari(path, spec)
    files = sorted(glob.glob(path))
    if not files:
        raise ValueError(
            f"data: got {path!r}, where there is no file or folder, expected "
            "recordings, which tfrl record makes, or the folder of a dataset of "
            "Minari's: `minari download NAME` fetches one to ~/.minari/datasets/NAME. "
            "Set data (--config.data) to either."
        )
    return datasets.load_recordings(files)
