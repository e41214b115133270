"""The values in the sources of the presets, and how each becomes a setting of tfrl.

A `Comparison` holds what the sources of a preset say, in the sources' own names, and a
function that turns these values into settings. Steps become iterations of
`collect_steps_per_iteration` steps of each environment; fractions of a run become
iterations of the source's number of steps; periods of the target network become
updates. Only a whole number of iterations is possible, so a setting that counts them is
the number below or above the exact one.

Two rules hold for all presets. Schedules begin with the first iteration, after the
initial random steps, and take as many steps as in the source, whose own schedules count
the initial steps, too. How often a run is evaluated, logged and saved is tfrl's choice.
Hidden layers are rectified where the values name no activation, since that is what
CleanRL's, Dopamine's and the papers' networks have, and the default of
Stable-Baselines3's policies for off-policy algorithms.

`differs` names each setting that is not the source's, with the reason, and `others`
says what no setting expresses.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

# Choices of tfrl that change no result of training, or that a preset takes from the
# environment.
OWN = frozenset(
    {
        "seed",
        "device",
        "jit_compile",
        "dtype",
        "emulator",
        "grid_observations",
        "action_repeat",
        "eval_interval",
        "num_eval_episodes",
        "log_interval",
        "checkpoint_interval",
    }
)


@dataclasses.dataclass(frozen=True)
class Source:
    """Where values were read.

    Attributes:
      name: The repository, or the paper.
      commit: The commit; empty for a paper.
      file: The file of the repository, or the section of the paper.
      values: The values, in the source's own names.
    """

    name: str
    commit: str
    file: str
    values: Mapping[str, Any]


@dataclasses.dataclass(frozen=True)
class Between:
    """A number of iterations that need not be whole."""

    exact: float

    def __eq__(self, other: object) -> bool:
        return isinstance(other, int) and abs(other - self.exact) < 1

    __hash__ = None  # type: ignore[assignment]


@dataclasses.dataclass(frozen=True)
class Comparison:
    """What a preset is compared with.

    Attributes:
      sources: The sources; values of later ones replace those of earlier ones.
      to_settings: Returns the settings for the values of all sources. It removes each
        value that it reads.
      differs: The settings that differ from the sources', with the reasons.
      others: Differences that no setting expresses.
      has_networks: Whether the algorithm has networks, and settings for them.
    """

    sources: tuple[Source, ...]
    to_settings: Callable[[dict[str, Any]], dict[str, Any]]
    differs: Mapping[str, str] = dataclasses.field(default_factory=dict)
    others: tuple[str, ...] = ()
    has_networks: bool = True

    def expected(self) -> dict[str, Any]:
        """Returns the settings that the sources ask for.

        Raises:
          ValueError: A value of the sources became no setting.
        """
        values: dict[str, Any] = {}
        for source in self.sources:
            values.update(source.values)
        found = self.to_settings(values)
        if values:
            raise ValueError(f"These values became no setting: {sorted(values)}.")
        return {**({"activation": "relu"} if self.has_networks else {}), **found}


def _rates(rate: float | str) -> tuple[float, float]:
    """Returns the first and the last rate; rl-zoo3 writes "lin_" for a fall to 0."""
    if isinstance(rate, str):
        return float(rate.removeprefix("lin_")), 0.0
    return rate, rate


def _last(first: float, last: float) -> float | None:
    """Returns the last rate as a setting: None for a rate that stays."""
    return None if last == first else last


# What the sources' DQNs do not have.
_PLAIN = {
    "num_action_bins": 0,
    "frame_stack": 0,
    "goals_per_step": 0,
    "normalize_observations": False,
    "dueling": False,
    "noisy_stddev": 0.0,
    "double_q": False,
    "replay": "uniform",
    "n_step_update": 1,
    "conv_layer_params": (),
}
# These have no meaning with uniform replay.
_PRIORITIES = {
    "priority_exponent": 0.6,
    "importance_exponent": 0.4,
    "final_importance_exponent": 1.0,
}
_CONVOLUTIONS = ((32, 8, 4), (64, 4, 2), (64, 3, 1))


def _dqn_of_sb3(values: dict[str, Any]) -> dict[str, Any]:
    take = values.pop
    steps, starts = take("n_timesteps"), take("learning_starts")
    collected, updates = take("train_freq"), take("gradient_steps")
    batch = take("batch_size")
    if updates == -1:
        updates = collected
    first, last = _rates(take("learning_rate"))
    # The target is updated after steps, of which `collected` come without updates.
    period = max(take("target_update_interval"), collected)
    found = {
        **_PLAIN,
        **_PRIORITIES,
        "munchausen": False,
        "num_envs": 1,
        "num_iterations": Between((steps - starts) / collected),
        "initial_collect_steps": starts,
        "collect_steps_per_iteration": collected,
        "train_steps_per_iteration": updates,
        "replay_capacity": take("buffer_size"),
        "batch_size": batch,
        "gamma": take("gamma"),
        "target_update_tau": take("tau"),
        "target_update_period": period * updates // collected,
        "learning_rate": first,
        "final_learning_rate": _last(first, last),
        "adam_epsilon": take("optimizer_eps", 0.0)
        + take("optimizer_eps_times_batch", 0.0) / batch,
        "max_gradient_norm": take("max_grad_norm") or 0.0,
        "fc_layer_params": take("net_arch"),
        "conv_layer_params": take("convolutions", ()),
        "initial_epsilon": take("exploration_initial_eps"),
        "final_epsilon": take("exploration_final_eps"),
        "epsilon_decay_iterations": Between(
            take("exploration_fraction") * steps / collected
        ),
        **({"loss": take("loss")} if "loss" in values else {}),
        **({"num_quantiles": take("n_quantiles")} if "n_quantiles" in values else {}),
    }
    if "num_quantiles" not in found:  # DQN itself, whose choice is the class.
        del found["double_q"]
    return found


def _on_policy_of_sb3(values: dict[str, Any]) -> dict[str, Any]:
    take = values.pop
    num_envs, steps = take("n_envs"), take("n_steps")
    first, last = _rates(take("learning_rate"))
    is_normalized = take("normalize", False)
    found = {
        "num_envs": num_envs,
        "collect_steps_per_iteration": steps,
        "num_iterations": Between(take("n_timesteps") / (num_envs * steps)),
        "fc_layer_params": take("net_arch"),
        "conv_layer_params": take("convolutions", ()),
        "share_layers": take("shares", False),
        "activation": take("activation"),
        "normalize_observations": is_normalized,
        "normalize_rewards": is_normalized,
        "learning_rate": first,
        "final_learning_rate": _last(first, last),
        "gamma": take("gamma"),
        "lambda_value": take("gae_lambda"),
        "entropy_regularization": take("ent_coef"),
        "value_loss_weight": take("vf_coef"),
        "max_gradient_norm": take("max_grad_norm"),
        "normalize_advantages": take("normalize_advantage"),
        "initial_log_stddev": take("log_std_init"),
        "gsde_sample_freq": take("sde_sample_freq") if take("use_sde") else 0,
        "lstm_size": 0,
        "lstm_sequence_length": 0,
        "output_fc_layer_params": (),
    }
    values.pop("sde_sample_freq", None)
    if "clip_range" not in values:  # A2C has one update for a rollout.
        return {**found, "num_epochs": 1, "minibatch_size": 0}
    clip, last_clip = _rates(take("clip_range"))
    return {
        **found,
        "num_epochs": take("n_epochs"),
        "minibatch_size": take("batch_size"),
        "clip_range": clip,
        "final_clip_range": _last(clip, last_clip),
        "value_clip_range": take("clip_range_vf") or 0.0,
        "rpo_alpha": take("rpo_alpha", 0.0),
        "rnd_coefficient": 0.0,
        "target_kl": take("target_kl") or 0.0,
    }


def _replay_of_sb3(values: dict[str, Any]) -> dict[str, Any]:
    """Returns the settings of replay and of the loop, of SAC, TQC and TD3."""
    take = values.pop
    steps, starts = take("n_timesteps"), take("learning_starts")
    collected = take("train_freq")
    return {
        **_PRIORITIES,
        "num_envs": 1,
        "conv_layer_params": (),
        "frame_stack": 0,
        "replay": "uniform",
        "num_iterations": Between((steps - starts) / collected),
        "initial_collect_steps": starts,
        "collect_steps_per_iteration": collected,
        "train_steps_per_iteration": take("gradient_steps"),
        "replay_capacity": take("buffer_size"),
        "goals_per_step": take("n_sampled_goal", 0),
        "normalize_observations": take("normalize", False),
        "batch_size": take("batch_size"),
        "gamma": take("gamma"),
        "n_step_update": take("n_steps"),
        "target_update_tau": take("tau"),
    }


def _sac_of_sb3(values: dict[str, Any]) -> dict[str, Any]:
    take = values.pop
    first, last = _rates(take("learning_rate"))
    is_adapted = (temperature := take("ent_coef")) == "auto"
    uses_sde, rollout = take("use_sde"), values["train_freq"]
    # Stable-Baselines3 draws another matrix for each rollout, too.
    frequency = take("sde_sample_freq")
    layers = take("net_arch")
    found = {
        **_replay_of_sb3(values),
        "actor_fc_layer_params": layers,
        "critic_fc_layer_params": layers,
        "actor_learning_rate": first,
        "critic_learning_rate": first,
        "alpha_learning_rate": first if is_adapted else 0.0,
        "final_learning_rate": _last(first, last),
        "initial_alpha": 1.0 if is_adapted else temperature,
        "target_update_period": take("target_update_interval"),
        "num_critics": take("n_critics"),
        "num_min": 0,
        "encoder": "mlp",
        "weight_decay": 0.0,
        "actor_update_period": 1,
        "target_entropy_per_dimension": {"auto": -1.0}[take("target_entropy")],
        "ou_stddev": 0.0,
        "ou_damping": 0.15,
        "gsde_sample_freq": (rollout if frequency == -1 else frequency) * uses_sde,
        "gsde_initial_log_std": take("log_std_init"),
    }
    if "n_quantiles" not in values:
        return {**found, **_WITHOUT_LSTM, **_SAC_WITHOUT_BINS}
    found["num_quantiles"] = take("n_quantiles")
    found["num_dropped_quantiles"] = take("top_quantiles_to_drop_per_net")
    return found


# Of SAC and TD3 here; their sources have no such networks.
_WITHOUT_LSTM = {"lstm_size": 0, "lstm_sequence_length": 20}
_SAC_WITHOUT_BINS = {"value_bins": 0, "vmin": -1_700.0, "vmax": 100.0}
_TD3_WITHOUT_BINS = {"value_bins": 0, "vmin": -814.0, "vmax": 0.0}


def _crossq(values: dict[str, Any]) -> dict[str, Any]:
    take = values.pop
    own = {
        "critic_fc_layer_params": take("qf"),
        "actor_update_period": take("policy_delay"),
        "adam_beta_1": take("b1"),
        "renorm_momentum": take("batch_norm_momentum"),
        "renorm_warm_up": take("warm_up"),
    }
    values["net_arch"] = take("pi")
    found = {**_sac_of_sb3(values), **own}
    # There are no target networks.
    targets = "target_update_tau", "target_update_period", "encoder"
    absent = {*targets, *_WITHOUT_LSTM, *_SAC_WITHOUT_BINS}
    return {name: value for name, value in found.items() if name not in absent}


def _simba(values: dict[str, Any]) -> dict[str, Any]:
    take = values.pop
    own = {
        "actor_fc_layer_params": (take("actor_hidden_dim"),) * take("actor_num_blocks"),
        "critic_fc_layer_params": (
            (take("critic_hidden_dim"),) * take("critic_num_blocks")
        ),
        "encoder": {"residual": "simba"}[take("block_type")],
        "weight_decay": take("weight_decay"),
        "initial_alpha": take("temp_initial_value"),
        "target_entropy_per_dimension": take("temp_target_entropy_coef"),
        "num_critics": 2 if take("critic_use_cdq") else 1,
    }
    common = {"net_arch": (), "ent_coef": "auto", "target_entropy": "auto"}
    plain = {"use_sde": False, "sde_sample_freq": -1, "log_std_init": -3.0}
    values.update(common | plain, n_critics=2, target_update_interval=1)
    return {**_sac_of_sb3(values), **own}


def _offline_of_corl(values: dict[str, Any]) -> dict[str, Any]:
    take = values.pop
    renamed = {
        "iql_tau": "expectile",
        "beta": "inverse_temperature",
        "final_actor_lr": "final_actor_learning_rate",
        "alpha": "bc_alpha",
        "actor_bc_coef": "actor_penalty",
        "critic_bc_coef": "critic_penalty",
        "discount": "gamma",
        "tau": "target_update_tau",
    }
    found = {ours: take(theirs) for theirs, ours in renamed.items() if theirs in values}
    if "gamma" in found:
        scaled = take("normalize_reward")
        found |= {"reward_scale": "by the data" if scaled else 1.0}
        # Without steps in the environment, the buffer of new frames is idle.
        found |= {"online_share": 0.0}
        found |= {"initial_collect_steps": 200, "replay_capacity": 200_000}
    return {
        **found,
        "conv_layer_params": (),
        "data": "logs/recordings/{env}/*.tfrecord",
        "num_iterations": take("max_timesteps"),
        "train_steps_per_iteration": 1,
        "batch_size": take("batch_size"),
        "fc_layer_params": take("net_arch"),
        "learning_rate": take("learning_rate"),
        "normalize_observations": take("normalize"),
    }


def _td3_of_sb3(values: dict[str, Any]) -> dict[str, Any]:
    take = values.pop
    rate, delay = take("learning_rate"), take("policy_delay")
    return {
        **_replay_of_sb3(values),
        "fc_layer_params": take("net_arch"),
        "actor_learning_rate": rate,
        "critic_learning_rate": rate,
        "target_update_period": delay,
        "actor_update_period": delay,
        "encoder": "mlp",
        "weight_decay": 0.0,
        **_WITHOUT_LSTM,
        **_TD3_WITHOUT_BINS,
        "exploration_noise": {"normal": take("noise_std")}[take("noise_type")],
        "target_policy_noise": take("target_policy_noise"),
        "target_policy_noise_clip": take("target_noise_clip"),
    }


def _c51_of_cleanrl(values: dict[str, Any]) -> dict[str, Any]:
    take = values.pop
    steps, starts = take("total_timesteps"), take("learning_starts")
    collected, rate = take("train_frequency"), take("learning_rate")
    return {
        **_PLAIN,
        **_PRIORITIES,
        "num_envs": take("num_envs"),
        "num_iterations": Between((steps - starts) / collected),
        "initial_collect_steps": starts,
        "collect_steps_per_iteration": collected,
        "train_steps_per_iteration": 1,
        "replay_capacity": take("buffer_size"),
        "batch_size": take("batch_size"),
        "gamma": take("gamma"),
        "target_update_tau": 1.0,
        "target_update_period": take("target_network_frequency") // collected,
        "fc_layer_params": take("layers"),
        "learning_rate": rate,
        "final_learning_rate": None,
        "adam_epsilon": take("eps"),
        "max_gradient_norm": 0.0,
        "initial_epsilon": take("start_e"),
        "final_epsilon": take("end_e"),
        "epsilon_decay_iterations": Between(
            take("exploration_fraction") * steps / collected
        ),
        "num_atoms": take("n_atoms"),
        "vmin": take("v_min"),
        "vmax": take("v_max"),
        "min_probability": take("clamp"),
        "initial_weights": {"PyTorch's": "fan_in"}[take("initial_weights")],
    }


def _pqn_of_cleanrl(values: dict[str, Any]) -> dict[str, Any]:
    take = values.pop
    num_envs, steps = take("num_envs"), take("num_steps")
    total = take("total_timesteps")
    return {
        "num_action_bins": 0,
        "conv_layer_params": (),
        "normalize_observations": False,
        "num_envs": num_envs,
        "collect_steps_per_iteration": steps,
        "num_iterations": total // (num_envs * steps),
        "num_epochs": take("update_epochs"),
        "minibatch_size": num_envs * steps // take("num_minibatches"),
        "fc_layer_params": take("layers"),
        "learning_rate": take("learning_rate"),
        "final_learning_rate": 0.0 if take("anneal_lr") else None,
        "gamma": take("gamma"),
        "lambda_value": take("q_lambda"),
        "max_gradient_norm": take("max_grad_norm"),
        "initial_epsilon": take("start_e"),
        "final_epsilon": take("end_e"),
        "epsilon_decay_iterations": Between(
            take("exploration_fraction") * total / (num_envs * steps)
        ),
    }


def _dqn_of_atari(values: dict[str, Any]) -> dict[str, Any]:
    """Maps Dopamine's names, which count steps of the agent, and those of a paper."""
    take = values.pop
    steps = take("num_iterations") * take("training_steps")
    starts, collected = take("min_replay_history"), take("update_period")
    rate = take("learning_rate")
    found = {
        **_PLAIN,
        **_PRIORITIES,
        "num_envs": 1,
        "num_iterations": Between((steps - starts) / collected),
        "initial_collect_steps": starts,
        "collect_steps_per_iteration": collected,
        "train_steps_per_iteration": 1,
        "replay_capacity": take("replay_capacity"),
        "frame_stack": take("stack_size"),
        "batch_size": take("batch_size"),
        "gamma": take("gamma"),
        "n_step_update": take("update_horizon"),
        "target_update_tau": 1.0,
        "target_update_period": take("target_update_period") // collected,
        "conv_layer_params": take("convolutions"),
        "fc_layer_params": take("layers"),
        "learning_rate": rate,
        "final_learning_rate": None,
        "adam_epsilon": take("epsilon"),
        "max_gradient_norm": 0.0,
        "initial_epsilon": 1.0,
        "final_epsilon": take("epsilon_train"),
        "epsilon_decay_iterations": Between(take("epsilon_decay_period") / collected),
    }
    if "vmax" in values:
        highest = take("vmax")
        found |= {
            "num_atoms": take("num_atoms"),
            "vmin": -highest,
            "vmax": highest,
            "min_probability": 0.0,
            "initial_weights": "usual",
        }
    else:
        found["munchausen"] = False
    # Dopamine's names of the other settings are tfrl's names of the fields.
    found |= values
    values.clear()
    if not {"num_atoms", "num_quantiles"} & found.keys():
        del found["double_q"]
    return found


def _as_named(values: dict[str, Any]) -> dict[str, Any]:
    """Returns values that are written in the names of the settings."""
    found = dict(values)
    values.clear()
    return found


_ADAM = 1e-8  # The default epsilon of torch.optim.Adam.
_SB3 = "DLR-RM/stable-baselines3", "e05d2dbe6eda0acd0ef2e316e3e4065677add3eb"
_CONTRIB = (
    "Stable-Baselines-Team/stable-baselines3-contrib",
    "0ca7fdd8d1150bd3a48b86016a85db036efc3b6d",
)
_ZOO = "DLR-RM/rl-baselines3-zoo", "22e3ff2450fd92033f7f032915e1f64894a09584"
_CORL = "tinkoff-ai/CORL", "2b19dd1848bef6922a319901614552e02d74a1eb"
# What its files have in common: those that clone, and those that learn values.
_CLONING_OF_CORL = {
    "max_timesteps": 1_000_000,
    "batch_size": 256,
    "net_arch": (256, 256),
    "learning_rate": 3e-4,
    "normalize": True,
}
_VALUES_OF_CORL = {
    **_CLONING_OF_CORL,
    "discount": 0.99,
    "tau": 0.005,
    "normalize_reward": False,
}
_FEWER_UPDATES = {"num_iterations": "one core makes a tenth in reasonable time"}
_CLEAN_RL = "vwxyzjn/cleanrl", "fe8d8a03c41a7ef5b523e2e354bd01c363e786bb"
_DOPAMINE = "google/dopamine", "5873f5494ee0c2d7c016d0ab2ad530354fec59d0"
# The commit that Tianshou's page of results names for PPO.
_TIANSHOU = "thu-ml/tianshou", "6426a39796db052bafb7cabe85c764db20a722b0"

_SB3_DQN = Source(
    *_SB3,
    "stable_baselines3/dqn/dqn.py and policies.py",
    {
        "learning_rate": 1e-4,
        "buffer_size": 1_000_000,
        "learning_starts": 100,
        "batch_size": 32,
        "tau": 1.0,
        "gamma": 0.99,
        "train_freq": 4,
        "gradient_steps": 1,
        "target_update_interval": 10_000,
        "exploration_fraction": 0.1,
        "exploration_initial_eps": 1.0,
        "exploration_final_eps": 0.05,
        "max_grad_norm": 10.0,
        "loss": "huber",
        "net_arch": (64, 64),
        "optimizer_eps": _ADAM,
    },
)
_SB3_QR_DQN = Source(
    *_CONTRIB,
    "sb3_contrib/qrdqn/qrdqn.py and policies.py",
    {
        "learning_rate": 5e-5,
        "buffer_size": 1_000_000,
        "learning_starts": 100,
        "batch_size": 32,
        "tau": 1.0,
        "gamma": 0.99,
        "train_freq": 4,
        "gradient_steps": 1,
        "target_update_interval": 10_000,
        "exploration_fraction": 0.005,
        "exploration_initial_eps": 1.0,
        "exploration_final_eps": 0.01,
        "max_grad_norm": None,
        "net_arch": (64, 64),
        "n_quantiles": 200,
        "optimizer_eps_times_batch": 0.01,
    },
)
_SB3_ACTOR_CRITIC = {
    "net_arch": (64, 64),
    "activation": "tanh",
    "log_std_init": 0.0,
    "use_sde": False,
    "sde_sample_freq": -1,
    "n_envs": 1,
}
_SB3_A2C = Source(
    *_SB3,
    "stable_baselines3/a2c/a2c.py and common/policies.py",
    {
        **_SB3_ACTOR_CRITIC,
        "learning_rate": 7e-4,
        "n_steps": 5,
        "gamma": 0.99,
        "gae_lambda": 1.0,
        "ent_coef": 0.0,
        "vf_coef": 0.5,
        "max_grad_norm": 0.5,
        "normalize_advantage": False,
    },
)
_SB3_PPO = Source(
    *_SB3,
    "stable_baselines3/ppo/ppo.py and common/policies.py",
    {
        **_SB3_ACTOR_CRITIC,
        "learning_rate": 3e-4,
        "n_steps": 2048,
        "batch_size": 64,
        "n_epochs": 10,
        "gamma": 0.99,
        "gae_lambda": 0.95,
        "clip_range": 0.2,
        "clip_range_vf": None,
        "normalize_advantage": True,
        "ent_coef": 0.0,
        "vf_coef": 0.5,
        "max_grad_norm": 0.5,
        "target_kl": None,
    },
)
_SB3_SAC = Source(
    *_SB3,
    "stable_baselines3/sac/sac.py and policies.py",
    {
        "learning_rate": 3e-4,
        "buffer_size": 1_000_000,
        "learning_starts": 100,
        "batch_size": 256,
        "tau": 0.005,
        "gamma": 0.99,
        "train_freq": 1,
        "gradient_steps": 1,
        "n_steps": 1,
        "ent_coef": "auto",
        "target_update_interval": 1,
        "target_entropy": "auto",
        "use_sde": False,
        "sde_sample_freq": -1,
        "net_arch": (256, 256),
        "log_std_init": -3.0,
        "n_critics": 2,
    },
)
_SB3_TQC = Source(
    *_CONTRIB,
    "sb3_contrib/tqc/tqc.py and policies.py",
    {**_SB3_SAC.values, "top_quantiles_to_drop_per_net": 2, "n_quantiles": 25},
)
_SB3_TD3 = Source(
    *_SB3,
    "stable_baselines3/td3/td3.py and policies.py",
    {
        "learning_rate": 1e-3,
        "buffer_size": 1_000_000,
        "learning_starts": 100,
        "batch_size": 256,
        "tau": 0.005,
        "gamma": 0.99,
        "train_freq": 1,
        "gradient_steps": 1,
        "n_steps": 1,
        "policy_delay": 2,
        "target_policy_noise": 0.2,
        "target_noise_clip": 0.5,
        "net_arch": (400, 300),
    },
)


def _zoo(file: str, **values: Any) -> Source:
    return Source(*_ZOO, f"hyperparams/{file}.yml", values)


_DQN_CLASSIC = {
    "n_timesteps": 100_000,
    "learning_rate": 6.3e-4,
    "batch_size": 128,
    "buffer_size": 50_000,
    "learning_starts": 0,
    "gamma": 0.99,
    "target_update_interval": 250,
    "train_freq": 4,
    "gradient_steps": -1,
    "exploration_fraction": 0.12,
    "exploration_final_eps": 0.1,
    "net_arch": (256, 256),
}
_DQN_MOUNTAIN_CAR = {
    "n_timesteps": 120_000,
    "learning_rate": 4e-3,
    "batch_size": 128,
    "buffer_size": 10_000,
    "learning_starts": 1_000,
    "gamma": 0.98,
    "target_update_interval": 600,
    "train_freq": 16,
    "gradient_steps": 8,
    "exploration_fraction": 0.2,
    "exploration_final_eps": 0.07,
    "net_arch": (256, 256),
}
_FIRST_BATCH = {
    "initial_collect_steps": "Updates begin with different frames in a batch; the "
    "source has as many updates, with 4 frames before the first one."
}
_RMS_PROP = ("The optimizer is Adam; Stable-Baselines3's A2C has RMSprop.",)
_SAC_EPSILON = (
    "Adam's epsilon is 1e-7, Keras's default; Stable-Baselines3 has PyTorch's 1e-8.",
)

_CLEAN_RL_C51 = Source(
    *_CLEAN_RL,
    "cleanrl/c51.py",
    {
        "total_timesteps": 500_000,
        "learning_rate": 2.5e-4,
        "num_envs": 1,
        "n_atoms": 101,
        "v_min": -100.0,
        "v_max": 100.0,
        "buffer_size": 10_000,
        "gamma": 0.99,
        "target_network_frequency": 500,
        "batch_size": 128,
        "start_e": 1.0,
        "end_e": 0.05,
        "exploration_fraction": 0.5,
        "learning_starts": 10_000,
        "train_frequency": 10,
        "layers": (120, 84),
        "eps": 0.01 / 128,
        "clamp": 1e-5,
        "initial_weights": "PyTorch's",
    },
)
_UNCLIPPED = {
    "min_probability": "The loss uses logits, which need no clipping.",
    "initial_weights": "Those of all networks of tfrl, which learn this environment; "
    "MountainCar-v0 needs the source's.",
}
_ACTS_AT_FIRST = (
    "The first 10,000 actions are random; CleanRL's are random by epsilon, which is "
    "0.96 or more then.",
)


def _tf_agents_bandit(file: str, **values: Any) -> Source:
    """An example of bandits."""
    return Source(
        "tensorflow/agents",
        "eb24cf5f93f99ed78261975cc61a7fc648febcd5",
        f"tf_agents/bandits/agents/examples/v2/train_eval_{file}.py",
        {"collect_steps_per_iteration": 2, **values},
    )


# The defaults of LinearUCBAgent and LinearThompsonSamplingAgent.
_LINEAR = {"gamma": 1.0, "tikhonov_weight": 1.0, "add_bias": False}
_NETWORK = {
    "fc_layer_params": (50, 50, 50),
    "learning_rate": 1e-3,
    "final_epsilon": 0.05,
    # The default of the agents.
    "max_gradient_norm": 0.0,
}
_SMALLER_NETWORK = {
    **_NETWORK,
    # The three parts have 40 and 30, 30 and 40, 40 and 20 units.
    "fc_layer_params": "(40, 30), (30, 40), (40, 20)",
    "learning_rate": 0.05,
    "final_epsilon": 0.01,
}
_ENCODING = {
    "encoding_dim": 9,
    "encoding_iterations": 1000,
    "alpha": 1.0,
    "gamma": 1.0,
    # It adds the identity.
    "tikhonov_weight": 1.0,
}
_LINEAR_BANDIT = _tf_agents_bandit("stationary_linear", num_envs=8, num_iterations=2000)
_PER_ARM = _tf_agents_bandit(
    "per_arm_stationary_linear", num_envs=16, num_iterations=2000
)
_WHEEL = _tf_agents_bandit("wheel", num_envs=32, num_iterations=20_000)
_EQUAL_PARTS = {"fc_layer_params": "One setting is for all three parts."}


def _bandit(
    example: Source,
    values: Mapping[str, Any],
    differs: Mapping[str, str] | None = None,
) -> Comparison:
    """An agent of an example.

    Args:
      example: The example.
      values: What it gives to the agent, and the agent's defaults.
      differs: See `Comparison`.
    """
    source = dataclasses.replace(example, values={**example.values, **values})
    has_networks = "fc_layer_params" in values
    return Comparison((source,), _as_named, differs or {}, has_networks=has_networks)


_CLEAN_RL_PQN = Source(
    *_CLEAN_RL,
    "cleanrl/pqn.py",
    {
        "total_timesteps": 500_000,
        "learning_rate": 2.5e-4,
        "num_envs": 4,
        "num_steps": 128,
        "num_minibatches": 4,
        "update_epochs": 4,
        "anneal_lr": True,
        "gamma": 0.99,
        "start_e": 1.0,
        "end_e": 0.05,
        "exploration_fraction": 0.5,
        "max_grad_norm": 10.0,
        "q_lambda": 0.65,
        "layers": (120, 84),
    },
)
_LARGER_RATE = "Chosen on seeds from 100 up, with the other optimizer."
_R_ADAM = ("The optimizer is Adam; CleanRL's PQN has RAdam, with an epsilon of 1e-8.",)

_DOPAMINE_ATARI = Source(
    *_DOPAMINE,
    "dopamine/tf/agents/dqn/dqn_agent.py and discrete_domains/atari_lib.py",
    {"stack_size": 4, "convolutions": _CONVOLUTIONS, "layers": (512,)},
)
_C51_ICML = Source(
    *_DOPAMINE,
    "dopamine/tf/agents/rainbow/configs/c51_icml.gin",
    {
        "num_atoms": 51,
        "vmax": 10.0,
        "gamma": 0.99,
        "update_horizon": 1,
        "min_replay_history": 50_000,
        "update_period": 4,
        "target_update_period": 10_000,
        "epsilon_train": 0.01,
        "epsilon_decay_period": 1_000_000,
        "learning_rate": 2.5e-4,
        "epsilon": 0.0003125,
        "num_iterations": 200,
        "training_steps": 250_000,
        "replay_capacity": 1_000_000,
        "batch_size": 32,
    },
)
_ICML = {
    name: value
    for name, value in _C51_ICML.values.items()
    if name not in ("num_atoms", "vmax")
}


COMPARISONS: dict[str, Comparison] = {
    "c51": Comparison((_CLEAN_RL_C51,), _c51_of_cleanrl, _UNCLIPPED, _ACTS_AT_FIRST),
    "c51_acrobot": Comparison(
        (_CLEAN_RL_C51,), _c51_of_cleanrl, _UNCLIPPED, _ACTS_AT_FIRST
    ),
    "c51_mountain_car": Comparison(
        (_CLEAN_RL_C51,), _c51_of_cleanrl, others=_ACTS_AT_FIRST
    ),
    "c51_atari": Comparison((_DOPAMINE_ATARI, _C51_ICML), _dqn_of_atari),
    "dqn_acrobot": Comparison(
        (_SB3_DQN, _zoo("dqn", **_DQN_CLASSIC)), _dqn_of_sb3, _FIRST_BATCH
    ),
    "dqn_lunar_lander": Comparison(
        (_SB3_DQN, _zoo("dqn", **_DQN_CLASSIC)), _dqn_of_sb3, _FIRST_BATCH
    ),
    "dqn_mountain_car": Comparison(
        (_SB3_DQN, _zoo("dqn", **_DQN_MOUNTAIN_CAR)), _dqn_of_sb3
    ),
    "dqn_pixels": Comparison(
        (
            _SB3_DQN,
            _zoo(
                "dqn",
                n_timesteps=10_000_000,
                buffer_size=100_000,
                learning_rate=1e-4,
                batch_size=32,
                learning_starts=100_000,
                target_update_interval=1_000,
                train_freq=4,
                gradient_steps=1,
                exploration_fraction=0.1,
                exploration_final_eps=0.01,
                convolutions=_CONVOLUTIONS,  # Those of Stable-Baselines3's NatureCNN.
                net_arch=(512,),
            ),
        ),
        _dqn_of_sb3,
        {"replay_capacity": "Pictures of any size are stored; 10,000 need 0.3 GB."},
        ("The environment is not wrapped; rl-zoo3 wraps Atari's games.",),
    ),
    "dqn_atari": Comparison(
        (
            Source(
                "Mnih et al., Human-level control through deep reinforcement learning",
                "",
                "extended data table 1, and methods",
                {
                    "batch_size": 32,
                    "replay_capacity": 1_000_000,
                    "stack_size": 4,
                    # Measured in updates.
                    "target_update_period": 10_000 * 4,
                    "gamma": 0.99,
                    "update_horizon": 1,
                    "update_period": 4,
                    "epsilon_train": 0.1,
                    "epsilon_decay_period": 1_000_000,
                    "min_replay_history": 50_000,
                    "num_iterations": 200,
                    "training_steps": 250_000,
                    "convolutions": _CONVOLUTIONS,
                    "layers": (512,),
                    "loss": "huber",  # Errors clipped to [-1, 1].
                },
            ),
            Source(
                *_CLEAN_RL,
                "cleanrl/dqn_atari.py",
                {"learning_rate": 1e-4, "epsilon": _ADAM},
            ),
        ),
        _dqn_of_atari,
    ),
    "iqn_atari": Comparison(
        (
            _DOPAMINE_ATARI,
            Source(
                *_DOPAMINE,
                "dopamine/tf/agents/implicit_quantile/configs/"
                "implicit_quantile_icml.gin, and discrete_domains/atari_lib.py",
                {
                    **_ICML,
                    "learning_rate": 5e-5,
                    "num_quantiles": 64,  # num_tau_samples, num_tau_prime_samples
                    "num_acting_quantiles": 32,  # num_quantile_samples
                    "layers": (),
                    # The layer after the product with the fractions' embedding.
                    "quantile_layer_params": (512,),
                },
            ),
        ),
        _dqn_of_atari,
        others=("The fractions of an action are evenly spaced; Dopamine draws them.",),
    ),
    "qr_dqn_atari": Comparison(
        (
            _DOPAMINE_ATARI,
            Source(*_DOPAMINE, _C51_ICML.file, _ICML),
            Source(
                "Dabney et al., arXiv:1710.10044",
                "",
                "section 5, and the appendix",
                {"learning_rate": 5e-5, "epsilon": 0.01 / 32, "num_quantiles": 200},
            ),
        ),
        _dqn_of_atari,
    ),
    "rainbow_atari": Comparison(
        (
            _DOPAMINE_ATARI,
            _C51_ICML,
            Source(
                "Hessel et al., arXiv:1710.02298",
                "",
                "table 1, in frames of which a step has four",
                {
                    "min_replay_history": 80_000 // 4,
                    "learning_rate": 6.25e-5,
                    "epsilon": 1.5e-4,
                    "epsilon_train": 0.0,
                    "initial_epsilon": 0.0,
                    "noisy_stddev": 0.5,
                    "target_update_period": 32_000 // 4,
                    "replay": "prioritized",
                    "priority_exponent": 0.5,
                    "importance_exponent": 0.4,
                    "final_importance_exponent": 1.0,
                    "update_horizon": 3,
                    "double_q": True,
                    "dueling": True,
                },
            ),
        ),
        _dqn_of_atari,
    ),
    "qr_dqn": Comparison(
        (
            _SB3_QR_DQN,
            _zoo(
                "qrdqn",
                n_timesteps=50_000,
                learning_rate=2.3e-3,
                batch_size=64,
                buffer_size=100_000,
                learning_starts=1_000,
                gamma=0.99,
                target_update_interval=10,
                train_freq=256,
                gradient_steps=128,
                exploration_fraction=0.16,
                exploration_final_eps=0.04,
                net_arch=(256, 256),
                n_quantiles=10,
            ),
        ),
        _dqn_of_sb3,
    ),
    "qr_dqn_acrobot": Comparison(
        (
            _SB3_QR_DQN,
            _zoo("qrdqn", **_DQN_CLASSIC, n_quantiles=25),
        ),
        _dqn_of_sb3,
        _FIRST_BATCH,
    ),
    "qr_dqn_lunar_lander": Comparison(
        (
            _SB3_QR_DQN,
            _zoo(
                "qrdqn",
                n_timesteps=100_000,
                learning_rate="lin_1.5e-3",
                batch_size=128,
                buffer_size=100_000,
                learning_starts=10_000,
                gamma=0.995,
                target_update_interval=1,
                train_freq=256,
                gradient_steps=-1,
                exploration_fraction=0.24,
                exploration_final_eps=0.18,
                net_arch=(256, 256),
                n_quantiles=170,
            ),
        ),
        _dqn_of_sb3,
    ),
    "qr_dqn_mountain_car": Comparison(
        (
            _SB3_QR_DQN,
            _zoo("qrdqn", **_DQN_MOUNTAIN_CAR, n_quantiles=25),
        ),
        _dqn_of_sb3,
    ),
    "a2c": Comparison(
        (_SB3_A2C, _zoo("a2c", n_envs=8, n_timesteps=500_000, ent_coef=0.0)),
        _on_policy_of_sb3,
        {
            "final_learning_rate": "Chosen with Adam.",
            "lambda_value": "With 1, 4 of 64 seeds end below 475; with 0.95, 2 of 128.",
        },
        _RMS_PROP,
    ),
    "a2c_acrobot": Comparison(
        (
            _SB3_A2C,
            _zoo("a2c", normalize=True, n_envs=16, n_timesteps=500_000, ent_coef=0.0),
        ),
        _on_policy_of_sb3,
        others=_RMS_PROP,
    ),
    "ppo": Comparison(
        (
            _SB3_PPO,
            _zoo(
                "ppo",
                n_envs=8,
                n_timesteps=100_000,
                n_steps=32,
                batch_size=256,
                gae_lambda=0.8,
                gamma=0.98,
                n_epochs=20,
                ent_coef=0.0,
                learning_rate="lin_0.001",
                clip_range="lin_0.2",
            ),
        ),
        _on_policy_of_sb3,
        dict.fromkeys(
            ("collect_steps_per_iteration", "num_iterations", "gamma", "lambda_value"),
            "With the source's values 3 of 64 seeds do not learn to keep the cart on "
            "the track, with these all of 128 do. The run has as many steps.",
        ),
    ),
    "ppo_acrobot": Comparison(
        (
            _SB3_PPO,
            _zoo(
                "ppo",
                normalize=True,
                n_envs=16,
                n_timesteps=1_000_000,
                n_steps=256,
                gae_lambda=0.94,
                gamma=0.99,
                n_epochs=4,
                ent_coef=0.0,
            ),
        ),
        _on_policy_of_sb3,
    ),
    "ppo_atari": Comparison(
        (
            _SB3_PPO,
            _zoo(
                "ppo",
                n_envs=8,
                n_steps=128,
                n_epochs=4,
                batch_size=256,
                n_timesteps=10_000_000,
                learning_rate="lin_2.5e-4",
                clip_range="lin_0.1",
                vf_coef=0.5,
                ent_coef=0.01,
                # Those of Stable-Baselines3's NatureCNN.
                convolutions=_CONVOLUTIONS,
                net_arch=(512,),
                activation="relu",
                shares=True,
            ),
        ),
        _on_policy_of_sb3,
    ),
    "ppo_lunar_lander": Comparison(
        (
            _SB3_PPO,
            _zoo(
                "ppo",
                n_envs=16,
                n_timesteps=1_000_000,
                n_steps=1024,
                batch_size=64,
                gae_lambda=0.98,
                gamma=0.999,
                n_epochs=4,
                ent_coef=0.01,
            ),
        ),
        _on_policy_of_sb3,
    ),
    "ppo_minigrid": Comparison(
        (
            _SB3_PPO,
            _zoo(
                "ppo",
                normalize=True,
                n_envs=8,
                n_timesteps=100_000,
                n_steps=128,
                batch_size=64,
                gae_lambda=0.95,
                gamma=0.99,
                n_epochs=10,
                ent_coef=0.0,
                learning_rate=2.5e-4,
                clip_range=0.2,
            ),
        ),
        _on_policy_of_sb3,
    ),
    "ppo_mujoco": Comparison(
        (
            Source(
                *_TIANSHOU,
                "examples/mujoco/mujoco_ppo.py",
                {
                    "n_timesteps": 100 * 30_000,  # epoch, step-per-epoch
                    "n_steps": 2048 // 64,  # step-per-collect, training-num
                    "n_envs": 64,
                    "n_epochs": 10,  # repeat-per-collect
                    "batch_size": 64,
                    "net_arch": (64, 64),
                    "activation": "tanh",
                    "learning_rate": "lin_3e-4",  # lr, lr-decay
                    "gamma": 0.99,
                    "gae_lambda": 0.95,
                    "normalize": True,  # norm_obs, rew-norm
                    "vf_coef": 0.25,
                    "ent_coef": 0.0,
                    "max_grad_norm": 0.5,
                    "clip_range": 0.2,
                    "clip_range_vf": 0.0,  # value-clip
                    "normalize_advantage": False,  # norm-adv
                    "target_kl": None,
                    "log_std_init": -0.5,
                    "use_sde": False,
                    "sde_sample_freq": -1,
                },
            ),
        ),
        _on_policy_of_sb3,
        {
            "num_envs": "64 environments need processes to pay.",
            "collect_steps_per_iteration": "The rollout of one environment is as long.",
            "num_iterations": "1,000,000 steps; the source's rate falls over "
            "3,000,000, of which it publishes results after 1,000,000, too.",
        },
        (
            "Advantages are computed once a rollout; the source computes them again in "
            "each epoch.",
            "Adam's epsilon is 1e-5, Stable-Baselines3's for PPO; the source has 1e-8.",
        ),
    ),
    "ppo_rpo": Comparison(
        (
            Source(
                *_CLEAN_RL,
                "cleanrl/rpo_continuous_action.py",
                {
                    "n_timesteps": 8_000_000,
                    "n_envs": 1,
                    "n_steps": 2048,
                    "n_epochs": 10,
                    "batch_size": 2048 // 32,  # num_minibatches
                    "net_arch": (64, 64),
                    "activation": "tanh",
                    "learning_rate": "lin_3e-4",  # anneal_lr
                    "gamma": 0.99,
                    "gae_lambda": 0.95,
                    "normalize": True,
                    "vf_coef": 0.25,  # Half of 0.5: its squared errors are halved.
                    "ent_coef": 0.0,
                    "max_grad_norm": 0.5,
                    "clip_range": 0.2,
                    "clip_range_vf": 0.2,  # clip_vloss
                    "normalize_advantage": True,
                    "target_kl": None,
                    "log_std_init": 0.0,
                    "use_sde": False,
                    "sde_sample_freq": -1,
                    "rpo_alpha": 0.5,
                },
            ),
        ),
        _on_policy_of_sb3,
        {"num_iterations": "2,000,000 steps fit into the table's time."},
        ("The noise is in units of half of each action's range, which is 1 there.",),
    ),
    "ppo_pendulum": Comparison(
        (
            _SB3_PPO,
            _zoo(
                "ppo",
                n_envs=4,
                n_timesteps=100_000,
                n_steps=1024,
                gae_lambda=0.95,
                gamma=0.9,
                n_epochs=10,
                ent_coef=0.0,
                learning_rate=1e-3,
                clip_range=0.2,
                use_sde=True,
                sde_sample_freq=4,
            ),
        ),
        _on_policy_of_sb3,
        {"initial_log_stddev": "Seeds 100 to 102 end at -159 to -163, from 0 to -182."},
    ),
    "lin_ucb": _bandit(_LINEAR_BANDIT, {**_LINEAR, "alpha": 0.1}),
    "lin_ucb_per_arm": _bandit(_PER_ARM, {**_LINEAR, "alpha": 0.1}),
    "lin_ucb_wheel": _bandit(_WHEEL, {**_LINEAR, "alpha": 10.0}),
    "lin_ts": _bandit(_LINEAR_BANDIT, {**_LINEAR, "alpha": 0.1}),
    "lin_ts_per_arm": _bandit(_PER_ARM, {**_LINEAR, "alpha": 0.1}),
    "neural_epsilon_greedy": _bandit(_LINEAR_BANDIT, _NETWORK),
    "neural_epsilon_greedy_per_arm": _bandit(_PER_ARM, _SMALLER_NETWORK, _EQUAL_PARTS),
    "neural_epsilon_greedy_wheel": _bandit(_WHEEL, _NETWORK),
    "neural_lin_ucb": _bandit(_LINEAR_BANDIT, {**_NETWORK, **_ENCODING}),
    "neural_lin_ucb_per_arm": _bandit(
        _PER_ARM, {**_SMALLER_NETWORK, **_ENCODING}, _EQUAL_PARTS
    ),
    "neural_lin_ucb_wheel": _bandit(
        _WHEEL,
        {**_NETWORK, **_ENCODING},
        {"encoding_iterations": "Half of the iterations, as in the other example."},
    ),
    "pqn": Comparison(
        (_CLEAN_RL_PQN,),
        _pqn_of_cleanrl,
        dict.fromkeys(("learning_rate", "gamma"), _LARGER_RATE),
        _R_ADAM,
    ),
    "pqn_acrobot": Comparison(
        (_CLEAN_RL_PQN,), _pqn_of_cleanrl, {"learning_rate": _LARGER_RATE}, _R_ADAM
    ),
    "reinforce": Comparison(
        (
            Source(
                "tensorflow/agents",
                "eb24cf5f93f99ed78261975cc61a7fc648febcd5",
                "docs/tutorials/6_reinforce_tutorial.ipynb",
                {
                    "num_iterations": 250,
                    "collect_episodes_per_iteration": 2,
                    "replay_capacity": 2000,
                    "fc_layer_params": (100,),
                    "learning_rate": 1e-3,
                    "normalize_returns": True,
                    # Defaults of ReinforceAgent.
                    "gamma": 1.0,
                    "use_baseline": False,
                    "entropy_regularization": 0.0,
                    # The tutorial's environment and buffer.
                    "num_envs": 1,
                    "conv_layer_params": (),
                },
            ),
        ),
        _as_named,
    ),
    "sac_bipedal_walker": Comparison(
        (
            _SB3_SAC,
            _zoo(
                "sac",
                n_timesteps=500_000,
                learning_rate=7.3e-4,
                buffer_size=300_000,
                batch_size=256,
                ent_coef="auto",
                gamma=0.98,
                tau=0.02,
                train_freq=64,
                gradient_steps=64,
                learning_starts=10_000,
                use_sde=True,
                log_std_init=-3.0,
                net_arch=(400, 300),
            ),
        ),
        _sac_of_sb3,
        others=_SAC_EPSILON,
    ),
    "sac_fetch_reach": Comparison(
        (
            _SB3_TQC,
            _zoo(
                "tqc",
                n_timesteps=20_000,
                buffer_size=1_000_000,
                ent_coef="auto",
                batch_size=256,
                gamma=0.95,
                learning_rate=0.001,
                learning_starts=1_000,
                normalize=True,
                n_sampled_goal=4,
                net_arch=(64, 64),
                n_critics=1,
            ),
        ),
        _sac_of_sb3,
        {"replay_capacity": "A run has 20,000 steps, so no buffer is ever full."},
        (*_SAC_EPSILON, "Rewards are not normalized; rl-zoo3's `normalize` does both."),
    ),
    "sac_lunar_lander": Comparison(
        (
            _SB3_SAC,
            _zoo(
                "sac",
                n_timesteps=500_000,
                batch_size=256,
                learning_rate="lin_7.3e-4",
                buffer_size=1_000_000,
                ent_coef="auto",
                gamma=0.99,
                tau=0.01,
                train_freq=1,
                gradient_steps=1,
                learning_starts=10_000,
                net_arch=(400, 300),
            ),
        ),
        _sac_of_sb3,
        {
            "num_iterations": "300,000 steps, so that a run takes an hour on one core.",
            "replay_capacity": "Neither buffer is ever full.",
            "final_learning_rate": "The rate would reach 0 after 300,000 steps.",
        },
        _SAC_EPSILON,
    ),
    "sac_mountain_car_gsde": Comparison(
        (
            _SB3_SAC,
            _zoo(
                "sac",
                n_timesteps=50_000,
                learning_rate=3e-4,
                buffer_size=50_000,
                batch_size=512,
                ent_coef=0.1,
                train_freq=32,
                gradient_steps=32,
                gamma=0.9999,
                tau=0.01,
                learning_starts=0,
                use_sde=True,
                log_std_init=-3.67,
                net_arch=(64, 64),
            ),
        ),
        _sac_of_sb3,
        {
            "initial_collect_steps": "A batch has more different frames at first.",
            "num_iterations": "50,000 steps together with the initial ones.",
        },
        _SAC_EPSILON,
    ),
    "sac_mujoco": Comparison(
        (
            Source(
                "Haarnoja et al., arXiv:1812.05905",
                "",
                "appendix D, table 1",
                {
                    "learning_rate": 3e-4,
                    "gamma": 0.99,
                    "buffer_size": 1_000_000,
                    "net_arch": (256, 256),
                    "batch_size": 256,
                    "target_entropy": "auto",  # -dim(A)
                    "tau": 0.005,
                    "target_update_interval": 1,
                    "gradient_steps": 1,
                    # What the algorithm of the paper has.
                    "ent_coef": "auto",
                    "train_freq": 1,
                    "n_steps": 1,
                    "n_critics": 2,
                    "use_sde": False,
                    "sde_sample_freq": -1,
                    "log_std_init": -3.0,
                },
            ),
            # The paper's table has neither.
            _zoo("sac", n_timesteps=1_000_000, learning_starts=10_000),
        ),
        _sac_of_sb3,
        others=_SAC_EPSILON,
    ),
    "iql_mujoco": Comparison(
        (
            Source(
                *_CORL,
                "algorithms/offline/iql.py",
                {
                    **_VALUES_OF_CORL,
                    "beta": 3.0,
                    "iql_tau": 0.7,
                    "final_actor_lr": 0.0,
                },
            ),
        ),
        _offline_of_corl,
        _FEWER_UPDATES,
        (
            "The actor's rate falls linearly; the source's along a cosine.",
            "Adam's epsilon is 1e-7, Keras's default; PyTorch has 1e-8.",
        ),
    ),
    "td3_bc_mujoco": Comparison(
        (
            Source(
                *_CORL,
                "algorithms/offline/td3_bc.py",
                {
                    **_VALUES_OF_CORL,
                    "alpha": 2.5,
                },
            ),
        ),
        _offline_of_corl,
        _FEWER_UPDATES,
        ("Adam's epsilon is 1e-7, Keras's default; PyTorch has 1e-8.",),
    ),
    "bc_mujoco": Comparison(
        (
            Source(
                *_CORL,
                "algorithms/offline/any_percent_bc.py",
                _CLONING_OF_CORL,
            ),
        ),
        _offline_of_corl,
        _FEWER_UPDATES,
        (
            "All episodes are cloned; the source takes the best tenth by default.",
            "The loss is a normal likelihood; the source's a squared error.",
            "Adam's epsilon is 1e-7, Keras's default; PyTorch has 1e-8.",
        ),
    ),
    "rebrac_mujoco": Comparison(
        (
            Source(
                *_CORL,
                "algorithms/offline/rebrac.py",
                {
                    "max_timesteps": 1_000_000,
                    "batch_size": 1024,
                    "net_arch": (256, 256, 256),
                    "learning_rate": 1e-3,
                    "normalize": False,
                    "discount": 0.99,
                    "tau": 0.005,
                    "normalize_reward": False,
                    "actor_bc_coef": 0.01,
                    "critic_bc_coef": 0.01,
                },
            ),
        ),
        _offline_of_corl,
        _FEWER_UPDATES,
        (
            "Weights begin as Keras's; the source's as PyTorch's, with biases of 0.1.",
            "Adam's epsilon is 1e-7, Keras's default; Optax has 1e-8.",
        ),
    ),
    "crossq_mujoco": Comparison(
        (
            Source(
                "adityab/CrossQ",
                "a318a266679bec3f9d93c44e029860a6da077c89",
                "train.py, sbx/sac/sac.py and sbx/sac/policies.py",
                {
                    "n_timesteps": 1_000_000,  # The figure's; the default is 5e6.
                    "learning_starts": 5_000,
                    "buffer_size": 1_000_000,
                    "batch_size": 256,
                    "gamma": 0.99,  # 0.9999 for Swimmer.
                    "learning_rate": 1e-3,
                    "tau": 1.0,
                    "target_update_interval": 1,
                    "pi": (256, 256),
                    "qf": (2048, 2048),
                    "n_critics": 2,
                    "policy_delay": 3,
                    "b1": 0.5,
                    "batch_norm_momentum": 0.99,
                    "warm_up": 100_000,
                    "gradient_steps": 1,
                    "train_freq": 1,
                    "n_steps": 1,
                    "ent_coef": "auto",
                    "target_entropy": "auto",
                    "use_sde": False,
                    "sde_sample_freq": -1,
                    "log_std_init": -3.0,
                },
            ),
        ),
        _crossq,
        differs={
            "critic_fc_layer_params": "one core trains 512 units in reasonable time"
        },
        others=("Adam's epsilon is 1e-7, Keras's default; Optax has 1e-8.",),
    ),
    "sac_simba": Comparison(
        (
            Source(
                "SonyResearch/simba",
                "7d0358b1f1fa3404fc5ea0ffedf9dc1424b49a45",
                "configs: agent/sac_simba.yaml, base.yaml, env/dmc_em.yaml",
                {
                    "n_timesteps": 100_000 / 2,  # Of 500,000, two for each decision.
                    "learning_starts": 5_000,
                    "buffer_size": 1_000_000,
                    "batch_size": 256,
                    "gamma": 0.99,  # Of 500 decisions an episode.
                    "normalize": True,
                    "gradient_steps": 2,
                    "train_freq": 1,
                    "n_steps": 1,
                    "tau": 0.005,
                    "learning_rate": 1e-4,
                    "block_type": "residual",
                    "actor_num_blocks": 1,
                    "actor_hidden_dim": 128,
                    "critic_num_blocks": 2,
                    "critic_hidden_dim": 512,
                    "weight_decay": 1e-2,
                    "critic_use_cdq": False,  # Episodes of dm_control do not end.
                    "temp_initial_value": 0.01,
                    "temp_target_entropy_coef": -0.5,
                },
            ),
        ),
        _simba,
        others=("Adam's epsilon is 1e-7, Keras's default; Optax has 1e-8.",),
    ),
    "td3_bipedal_walker": Comparison(
        (
            _SB3_TD3,
            _zoo(
                "td3",
                n_timesteps=1_000_000,
                gamma=0.98,
                buffer_size=200_000,
                learning_starts=10_000,
                noise_type="normal",
                noise_std=0.1,
                gradient_steps=1,
                train_freq=1,
                learning_rate=1e-3,
                net_arch=(400, 300),
            ),
        ),
        _td3_of_sb3,
        others=_SAC_EPSILON,
    ),
    "td3_mujoco": Comparison(
        (
            _SB3_TD3,
            _zoo(
                "td3",
                n_timesteps=1_000_000,
                learning_starts=10_000,
                noise_type="normal",
                noise_std=0.1,
                train_freq=1,
                gradient_steps=1,
                learning_rate=1e-3,
                batch_size=256,
                net_arch=(400, 300),
            ),
        ),
        _td3_of_sb3,
        others=_SAC_EPSILON,
    ),
}
