"""The rows of the score table: which agents are trained where, and in which order."""

from __future__ import annotations

import ast
import dataclasses
import functools
import hashlib
import itertools
import json
import pathlib
import runpy
from collections.abc import Mapping
from typing import Any

from benchmarks import published
from tfrl.algorithms import presets, registry

ROOT = pathlib.Path(__file__).resolve().parent.parent
LOGS = ROOT / "logs" / "scores"


@dataclasses.dataclass(frozen=True)
class Entry:
    """An agent on an environment.

    Attributes:
      agent: Its name for readers.
      example: The script that trains it.
      config: The configuration file.
      num_seeds: The number of runs; their seeds begin at 0.
      flags: Further flags of the script.
      note: The text on the page if the settings are neither published nor chosen on
        other seeds.
      published_as: The algorithm whose published results are its references; empty for
        the agent's name.
    """

    agent: str
    example: str
    config: str
    num_seeds: int
    flags: tuple[str, ...] = ()
    note: str = ""
    published_as: str = ""

    def settings(self) -> dict:
        """Returns the environment, the algorithm and its settings."""
        values = runpy.run_path(str(ROOT / self.config))["get_config"]().to_dict()
        for flag in self.flags:
            name, _, text = flag.removeprefix("--").partition("=")
            values[name.removeprefix("config.")] = _value_of(text)
        chosen = registry.find(values["agent"]).Settings.of(values)
        return {"env": values["env"], "agent": values["agent"], **chosen.to_dict()}

    def hash(self) -> str:
        """Returns a hash of the settings, without the seed and the device.

        Settings at their defaults do not count, so that new ones change no hash.
        """
        values = self.settings()
        defaults = registry.find(values["agent"]).Settings.default_values()
        kept = {
            name: value
            for name, value in values.items()
            if name not in ("seed", "device")
            and not (name in defaults and value == defaults[name])
        }
        text = json.dumps(kept, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    @property
    def environment(self) -> str:
        """The name of the environment."""
        return str(self.settings()["env"])

    @functools.cached_property
    def figures(self) -> tuple[published.Figure, ...]:
        """The published results of its algorithm on its environment."""
        algorithm = self.published_as or self.agent
        return published.of(published.read(), algorithm, self.environment)

    def settings_source(self) -> str:
        """Returns where its settings are from."""
        return presets.named(pathlib.Path(self.config).stem).source

    def has(self, row: Mapping[str, str]) -> bool:
        """Returns whether a row of the table is a run of this entry."""
        is_named = (row["agent"], row["config"]) == (self.agent, self.config)
        return is_named and row["config_hash"] == self.hash()

    @property
    def name(self) -> str:
        """The name of its files."""
        name = f"{self.agent}_{pathlib.Path(self.config).stem}"
        if any(flag.startswith("--env=") for flag in self.flags):
            name += f"_{self.environment}"
        return name.replace(" ", "_").lower()

    def names(self) -> tuple[str, str, str, str]:
        """Returns the names by which a command may choose it, among others."""
        stem = pathlib.Path(self.config).stem
        return self.agent, self.environment, stem, self.name

    def folder(self, seed: int, logs: pathlib.Path = LOGS) -> pathlib.Path:
        """Returns where the outputs of the run with a seed are."""
        return logs / f"{self.name}_{self.hash()}_{seed}"


def _value_of(text: str) -> Any:
    """Returns the value that the text of a flag stands for."""
    try:
        return ast.literal_eval(text)
    except (SyntaxError, ValueError):
        return text


# The replay of a SAC that has seen 50,000 steps, and learned from few of them.
RECORDING = LOGS / "half_trained_sac" / "replay.tfrecord"
HALF_TRAINED = (
    "--preset=sac",
    "--config.initial_collect_steps=2000",
    "--config.collect_steps_per_iteration=16",
    "--config.replay_capacity=50000",
    "--num_iterations=3000",
    f"--logdir={RECORDING.parent.relative_to(ROOT)}",
)

_AS_C51 = "DQN as C51"  # With the settings and the budget of C51.
_DQN = ("--config.agent=dqn",)
_HINDSIGHT = "DQN with hindsight"
_NO_HINDSIGHT = ("--config.goals_per_step=0",)
_DDPG = ("--config.agent=ddpg",)
DATA = f"--config.data={RECORDING.relative_to(ROOT)}"
_OFFLINE = "configs/offline.py"
_CQL, _BC = "--config.agent=cql", "--config.agent=bc"


def _on(environment: str, *flags: str) -> tuple[str, ...]:
    return f"--env={environment}", *flags


# Stable-Baselines3's defaults with rl-zoo3's discount for Swimmer, and a larger lambda.
_LONG_HORIZON = (
    "--config.gamma=0.9999",
    "--config.gae_lambda=0.99",
    "--config.normalize_advantages=True",
    "--config.value_loss_weight=0.5",
    "--config.anneal_learning_rate=False",
    "--config.initial_log_stddev=0.0",
)
_SEED_0_SEEN = "chosen on seed 100, after seed 0 had been seen with other settings"
_PPO_ON_MUJOCO = tuple(
    Entry(
        "PPO",
        "train_ppo",
        "configs/ppo_mujoco.py",
        # Five seeds of HalfCheetah differ too much: they return 3,804 to 5,549.
        10 if name == "HalfCheetah-v5" else 5,
        _on(name, *flags),
        _SEED_0_SEEN if flags else "",
    )
    for name, *flags in (
        ("HalfCheetah-v5",),
        ("Hopper-v5",),
        ("Walker2d-v5",),
        ("Ant-v5",),
        ("Humanoid-v5",),
        ("Swimmer-v5", *_LONG_HORIZON),
        ("Reacher-v5",),
        ("InvertedPendulum-v5",),
        ("InvertedDoublePendulum-v5",),
    )
)
_OTHERS_ON_MUJOCO = (
    Entry("SAC", "train_sac", "configs/sac_mujoco.py", 1, _on("HalfCheetah-v5")),
    Entry("TD3", "train_td3", "configs/td3_mujoco.py", 1, _on("HalfCheetah-v5")),
    Entry(
        "SAC",
        "train_sac",
        "configs/sac_mujoco.py",
        3,
        _on("Hopper-v5", "--num_iterations=290000"),
    ),
    Entry(
        "TD3",
        "train_td3",
        "configs/td3_mujoco.py",
        3,
        _on("Hopper-v5", "--num_iterations=290000"),
    ),
)
_ON_LUNAR_LANDER = tuple(
    Entry(agent, "train_sac", "configs/sac_lunar_lander.py", 3, flags)
    for agent, flags in (("SAC", ()), ("TQC", ("--config.agent=tqc",)))
)
_CONVOLUTIONS = (
    "--config.grid_observations=image",
    "--config.conv_layer_params=((16,2,1),(32,2,1))",
)
_MINIGRID = tuple(
    Entry(agent, "train_ppo", "configs/ppo_minigrid.py", 5, flags, published_as="PPO")
    for name in (
        "MiniGrid-DoorKey-5x5-v0",
        "MiniGrid-Empty-Random-5x5-v0",
        "MiniGrid-Unlock-v0",
    )
    for agent, flags in (
        ("PPO", _on(name)),
        ("PPO with convolutions", _on(name, *_CONVOLUTIONS)),
    )
)
# The rows of the page, by kinds of environments.
FAMILIES: dict[str, tuple[Entry, ...]] = {
    "Classic control": (
        Entry("DQN", "train_dqn", "configs/dqn.py", 32),
        Entry(
            "Prioritized DQN",
            "train_dqn",
            "configs/dqn_prioritized.py",
            32,
            published_as="DQN",
        ),
        Entry(
            "DQN at the rate of prioritized DQN",
            "train_dqn",
            "configs/dqn_prioritized.py",
            32,
            ("--config.replay=uniform",),
            published_as="DQN",
        ),
        Entry("DQN", "train_dqn", "configs/dqn_acrobot.py", 5),
        Entry("DQN", "train_dqn", "configs/dqn_mountain_car.py", 5),
        Entry("C51", "train_dqn", "configs/c51.py", 32),
        Entry("C51", "train_dqn", "configs/c51_acrobot.py", 5),
        Entry("C51", "train_dqn", "configs/c51_mountain_car.py", 5),
        *(
            Entry(_AS_C51, "train_dqn", config, 5, _DQN, published_as="DQN")
            for config in (
                "configs/c51.py",
                "configs/c51_acrobot.py",
                "configs/c51_mountain_car.py",
            )
        ),
        Entry("QR-DQN", "train_dqn", "configs/qr_dqn.py", 32),
        Entry("QR-DQN", "train_dqn", "configs/qr_dqn_acrobot.py", 5),
        Entry("QR-DQN", "train_dqn", "configs/qr_dqn_mountain_car.py", 5),
        Entry("IQN", "train_dqn", "configs/iqn.py", 32),
        Entry("Rainbow", "train_dqn", "configs/rainbow.py", 5),
        Entry(
            "REINFORCE",
            "train_reinforce",
            "configs/reinforce.py",
            32,
            flags=_on("CartPole-v1"),
        ),
        Entry(
            "Discrete SAC",
            "train_sac",
            "configs/discrete_sac.py",
            32,
            note="chosen on seeds 0 to 2",
        ),
        Entry("PPO", "train_ppo", "configs/ppo.py", 32),
        Entry("A2C", "train_ppo", "configs/a2c.py", 32),
        Entry("A2C", "train_ppo", "configs/a2c_acrobot.py", 5),
        Entry("IMPALA", "train_impala", "configs/impala.py", 32),
        Entry("PPO", "train_ppo", "configs/ppo_acrobot.py", 5),
        Entry("PPO", "train_ppo", "configs/ppo_pendulum.py", 5),
        Entry("PQN", "train_pqn", "configs/pqn.py", 32),
        Entry("PQN", "train_pqn", "configs/pqn_acrobot.py", 10),
        Entry("SAC", "train_sac", "configs/sac.py", 32),
        Entry("TD3", "train_td3", "configs/td3.py", 32),
        Entry("DDPG", "train_td3", "configs/td3.py", 32, _DDPG),
        Entry("D4PG", "train_d4pg", "configs/d4pg.py", 5),
        Entry("DMPO", "train_dmpo", "configs/dmpo.py", 5),
        Entry("MPO", "train_dmpo", "configs/mpo.py", 32),
        Entry("SAC", "train_sac", "configs/sac_mountain_car.py", 5),
        Entry("DDPG", "train_td3", "configs/td3_mountain_car.py", 5),
    ),
    "Box2D": (
        Entry("DQN", "train_dqn", "configs/dqn_lunar_lander.py", 3),
        Entry("QR-DQN", "train_dqn", "configs/qr_dqn_lunar_lander.py", 3),
        Entry("PPO", "train_ppo", "configs/ppo_lunar_lander.py", 3),
        *_ON_LUNAR_LANDER,
    ),
    "MuJoCo": (*_PPO_ON_MUJOCO, *_OTHERS_ON_MUJOCO),
    "dm_control": (Entry("D4PG", "train_d4pg", "configs/d4pg_cartpole.py", 5),),
    "MiniGrid": _MINIGRID,
    "Memory": (
        Entry("R2D2", "train_dqn", "configs/r2d2.py", 3),
        Entry("Recurrent PPO", "train_ppo", "configs/ppo_cartpole_memory.py", 3),
        Entry(
            "Recurrent PPO",
            "train_ppo",
            "configs/ppo_pendulum_memory.py",
            3,
            note="chosen on other seeds, after seeds 0 to 2 had been seen",
        ),
    ),
    "Goals": (
        Entry(_HINDSIGHT, "train_dqn", "configs/dqn_bit_flipping_to_ones.py", 3),
        Entry(_HINDSIGHT, "train_dqn", "configs/dqn_bit_flipping.py", 3),
        Entry(
            "DQN", "train_dqn", "configs/dqn_bit_flipping.py", 3, flags=_NO_HINDSIGHT
        ),
        Entry("TQC with hindsight", "train_sac", "configs/sac_fetch_reach.py", 3),
    ),
    "Recordings": (
        Entry("IQL", "train_offline", _OFFLINE, 5, (DATA,)),
        Entry("CQL", "train_offline", _OFFLINE, 5, (_CQL, DATA)),
        Entry("BC", "train_offline", _OFFLINE, 5, (_BC, DATA)),
    ),
}
ENTRIES = tuple(itertools.chain.from_iterable(FAMILIES.values()))
_LONGEST = (*_OTHERS_ON_MUJOCO, *_ON_LUNAR_LANDER)
# The order in which missing runs are trained.
QUEUE = tuple(
    dict.fromkeys(
        (
            *_PPO_ON_MUJOCO,
            *_MINIGRID,
            *(entry for entry in ENTRIES if entry not in _LONGEST),
            *_LONGEST,
        )
    )
)
