"""The presets have the values of their sources, but for those that they say.

An `Origin` holds what the sources of a preset say, in the sources' own names, and a
function here turns these values into settings. Steps become iterations of
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
"""

import dataclasses
import re
from typing import Any

import pytest

from tfrl.algorithms import presets, registry
from tfrl.algorithms import settings as settings_lib
from tfrl.environments import suites

# Choices of tfrl that change no result of training, or that a preset takes from the
# environment.
OWN = frozenset(
    {
        "seed",
        "device",
        "jit_compile",
        "dtype",
        "eval_interval",
        "num_eval_episodes",
        "log_interval",
        "checkpoint_interval",
    }
)


@dataclasses.dataclass(frozen=True)
class Between:
    """A number of iterations that need not be whole."""

    exact: float

    def __eq__(self, other: object) -> bool:
        return isinstance(other, int) and abs(other - self.exact) < 1

    __hash__ = None  # type: ignore[assignment]


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
    "overlap": False,
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
        "overlap": False,
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
        "conv_layer_params": take("convolutions", ()),
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


# How the values are read: by whose names they have, and by the algorithm.
READERS = {
    **{
        ("Stable-Baselines3", name): reader
        for reader, names in {
            _dqn_of_sb3: ("dqn", "qr_dqn"),
            _on_policy_of_sb3: ("a2c", "ppo"),
            _sac_of_sb3: ("sac", "tqc"),
            _td3_of_sb3: ("td3",),
        }.items()
        for name in names
    },
    ("CleanRL", "c51"): _c51_of_cleanrl,
    ("CleanRL", "pqn"): _pqn_of_cleanrl,
    ("CrossQ", "crossq"): _crossq,
    ("SimBa", "sac"): _simba,
}
READERS_OF_ALL = {
    "CORL": _offline_of_corl,
    "Dopamine": _dqn_of_atari,
    "tfrl": _as_named,
}

COMPARED = [preset for preset in presets.every() if preset.origin is not None]
by_preset = pytest.mark.parametrize("preset", COMPARED, ids=lambda preset: preset.name)


def read(names, algorithm, values):
    """Returns the settings for the values of sources.

    Raises:
      ValueError: A value became no setting.
    """
    reader = READERS_OF_ALL.get(names) or READERS[names, algorithm]
    left = dict(values)
    found = reader(left)
    if left:
        raise ValueError(f"These values became no setting: {sorted(left)}.")
    if "activation" in registry.find(algorithm).setting_fields():
        found = {"activation": "relu", **found}
    return found


def expected(preset):
    values = {name: settings_lib._plain(x) for name, x in preset.origin.values.items()}
    return read(preset.origin.names, preset.algorithm, values)


def settings_of(preset):
    return registry.find(preset.algorithm)(settings=preset.settings).settings


@by_preset
def test_a_preset_has_the_values_of_its_source_but_for_those_that_are_listed(preset):
    wanted = expected(preset)
    found = {
        name: (value, wanted.get(name, "nothing"))
        for name, value in settings_of(preset).items()
        if name not in OWN | suites.options().keys()
        and wanted.get(name, "nothing") != value
    }
    listed = preset.origin.differs
    assert {name: x for name, x in found.items() if name not in listed} == {}
    assert listed.keys() - found.keys() == set()


def test_each_preset_that_names_a_source_has_its_values():
    # Words of a `source` that names none.
    own = ("chosen on", "chosen for")
    assert [x for x in presets.every() if not x.source.startswith(own)] == COMPARED


@by_preset
def test_the_text_of_a_source_says_that_settings_differ(preset):
    # A comma separates the source from what is different.
    assert "," in preset.source or not preset.origin.differs


@by_preset
def test_a_source_is_a_place_that_can_be_read_again(preset):
    for source in preset.origin.sources:
        is_repository = bool(re.fullmatch(r"[\w-]+/[\w.-]+", source.name))
        assert bool(re.fullmatch("[0-9a-f]{40}", source.commit)) == is_repository
        assert source.file
        assert source.values
        assert source.notes.keys() <= source.values.keys()


def test_a_source_whose_values_are_not_all_read_is_refused():
    values = dict(presets.named("c51").origin.values)
    with pytest.raises(ValueError, match=r"no setting: \['forgotten'\]"):
        read("CleanRL", "c51", {**values, "forgotten": 1})


@by_preset
def test_the_settings_of_a_source_are_settings(preset):
    assert expected(preset).keys() <= settings_of(preset).keys()


def test_a_number_of_iterations_is_next_to_the_exact_one():
    exact = Between(93.75)
    assert [x for x in range(80, 100) if exact == x] == [93, 94]
