"""Which values the settings of the algorithms may have."""

import keras
import pytest

from tfrl.algorithms import (
    distributed,
    dqn,
    off_policy,
    registry,
    reinforce,
    settings,
)
from tfrl.algorithms.settings import Settings, check_layers, field

CLASSES = {
    **{name: registry.find(name).Settings for name in registry.CLASSES},
    "actors": distributed.ActorSettings,
}
NAN, INF = float("nan"), float("inf")
HUGE = 10**20

# Values that a field must not have: by the kind of the field, those next to its range.
COUNTS = (0, -1, HUGE, 1.5, 2.0, "two", None, NAN)
COUNTS_OR_0 = (-1, HUGE, 1.5, "two", None, NAN)
NOT_FINITE = (NAN, INF, -INF, "two", None)
NEGATIVE = (-1e-9, *NOT_FINITE)
NOT_POSITIVE = (0.0, -1.0, *NOT_FINITE)
NO_FRACTION = (-1e-9, 1.0001, 2.5, *NOT_FINITE)
NO_LAYERS = (64, (0,), (8, -1), (1.5,), ("8",), (HUGE,), None)
NO_WORD = ("foo", "", 1, None)
FORBIDDEN = {
    "activation": NO_WORD,
    "actor_fc_layer_params": NO_LAYERS,
    "actor_learning_rate": NEGATIVE,
    "actor_update_period": COUNTS,
    "adam_epsilon": NOT_POSITIVE,
    "alpha_learning_rate": NEGATIVE,
    "batch_size": COUNTS,
    "burn_in_length": COUNTS_OR_0,
    "checkpoint_interval": COUNTS,
    "clip_range": NEGATIVE,
    "collect_episodes_per_iteration": COUNTS,
    "collect_steps_per_iteration": COUNTS,
    "collect_update_period": COUNTS,
    "conv_layer_params": (3, (3,), ((32, 8),), ((32, 8, 0),), (("a", 1, 1),), None),
    "cql_alpha": NEGATIVE,
    "critic_fc_layer_params": NO_LAYERS,
    "critic_learning_rate": NEGATIVE,
    "dtype": (*NO_WORD, "float64", "bfloat16"),
    "dual_learning_rate": NEGATIVE,
    "emulator": NO_WORD,
    "grid_observations": NO_WORD,
    "entropy_regularization": NEGATIVE,
    "epsilon": NEGATIVE,
    "epsilon_decay_iterations": COUNTS,
    "epsilon_mean": NEGATIVE,
    "epsilon_penalty": NEGATIVE,
    "epsilon_stddev": NEGATIVE,
    "eval_interval": COUNTS,
    "expectile": (0.0, 1.0, *NO_FRACTION),
    "exploration_noise": NEGATIVE,
    "fc_layer_params": NO_LAYERS,
    "final_epsilon": NO_FRACTION,
    "final_importance_exponent": NEGATIVE,
    "final_learning_rate": NEGATIVE,
    "frame_stack": COUNTS_OR_0,
    "gae_lambda": NO_FRACTION,
    "gamma": NO_FRACTION,
    "gradient_clipping": (0.0, -1.0, NAN, INF, "two"),
    "goals_per_step": COUNTS_OR_0,
    "gsde_initial_log_std": NOT_FINITE,
    "gsde_sample_freq": COUNTS_OR_0,
    "importance_exponent": NEGATIVE,
    "init_log_alpha_mean": NOT_FINITE,
    "init_log_alpha_stddev": NOT_FINITE,
    "init_log_temperature": NOT_FINITE,
    "init_scale": NOT_POSITIVE,
    "initial_alpha": NOT_POSITIVE,
    "initial_collect_steps": COUNTS,
    "initial_epsilon": NO_FRACTION,
    "initial_weights": NO_WORD,
    "initial_log_stddev": NOT_FINITE,
    "inverse_temperature": NEGATIVE,
    "lambda_value": NO_FRACTION,
    "learning_rate": NEGATIVE,
    "log_interval": COUNTS,
    "loss": NO_WORD,
    "lstm_sequence_length": COUNTS_OR_0,
    "lstm_size": COUNTS_OR_0,
    "max_abs_reward": NEGATIVE,
    "max_gradient_norm": NEGATIVE,
    "max_q_value": NOT_FINITE,
    "max_queue_size": COUNTS,
    "min_probability": (0.5, *NO_FRACTION),
    "min_q_value": NOT_FINITE,
    "minibatch_size": COUNTS_OR_0,
    "n_step_update": COUNTS,
    "noisy_stddev": NEGATIVE,
    "num_acting_quantiles": COUNTS_OR_0,
    "num_action_bins": COUNTS_OR_0,
    "num_atoms": (1, *COUNTS),
    "num_cql_samples": COUNTS,
    "num_critics": COUNTS,
    "num_dropped_quantiles": COUNTS_OR_0,
    "num_envs": COUNTS,
    "num_epochs": COUNTS,
    "num_eval_episodes": COUNTS,
    "num_iterations": COUNTS,
    "num_min": COUNTS_OR_0,
    "num_quantiles": COUNTS,
    "num_samples": COUNTS,
    "ou_damping": NO_FRACTION,
    "ou_stddev": NEGATIVE,
    "output_fc_layer_params": NO_LAYERS,
    "policy_learning_rate": NEGATIVE,
    "priority_eta": NO_FRACTION,
    "priority_exponent": NEGATIVE,
    "replay_capacity": COUNTS,
    "pull_period": COUNTS,
    "push_period": COUNTS,
    "quantile_layer_params": NO_LAYERS,
    "reward_scale": NOT_FINITE,
    "samples_per_insert": NOT_POSITIVE,
    "seed": COUNTS_OR_0,
    "sequence_length": COUNTS,
    "sigma": NEGATIVE,
    "stride_length": COUNTS,
    "target_entropy_fraction": NO_FRACTION,
    "target_entropy_per_dimension": NOT_FINITE,
    "target_kl": NEGATIVE,
    "target_policy_noise": NEGATIVE,
    "target_policy_noise_clip": NEGATIVE,
    "target_update_period": COUNTS,
    "target_update_tau": NO_FRACTION,
    "trace_length": COUNTS_OR_0,
    "train_steps_per_iteration": COUNTS,
    "value_clip_range": NEGATIVE,
    "value_loss_weight": NEGATIVE,
    "vmax": NOT_FINITE,
    "vmin": NOT_FINITE,
}
# Values at the ends of the ranges, and others that are rare.
ALLOWED = {
    "alpha_learning_rate": (0.0,),
    "conv_layer_params": ((), [[32, 8, 4]]),
    "fc_layer_params": ((), (1,), [64, 64]),
    "gamma": (0, 0.0, 1, 1.0),
    "gradient_clipping": (None, 1e-9),
    "learning_rate": (0.0, 1e10),
    "minibatch_size": (0,),
    "num_atoms": (2,),
    "num_iterations": (1, 10**12),
    "reward_scale": (-1.0, 0.0),
    "seed": (0, 2**32, 2**62),
    "target_update_period": (10**10,),
    "vmin": (-1e6, 0.0),
}


def class_with(name):
    """A class of settings with a field."""
    return next(each for each in CLASSES.values() if name in each.texts())


@pytest.mark.parametrize("name", CLASSES)
def test_every_field_that_is_a_number_or_numbers_is_checked_and_has_a_text(name):
    settings = CLASSES[name]
    for field_name, value in settings.default_values().items():
        assert settings.texts()[field_name], field_name
        if not isinstance(value, bool | str):
            assert field_name in FORBIDDEN, f"{field_name} of {name} has no range"
    settings()


def test_every_range_that_is_tested_is_of_a_field():
    fields = {field_name for each in CLASSES.values() for field_name in each.texts()}
    assert set(FORBIDDEN) <= fields


@pytest.mark.parametrize("name", FORBIDDEN)
def test_a_value_out_of_range_is_refused_with_the_field_the_value_and_the_remedy(name):
    for value in FORBIDDEN[name]:
        with pytest.raises((TypeError, ValueError)) as error:
            class_with(name)(**{name: value})
        message = str(error.value)
        assert message.startswith(f"{name}: expected "), message
        shown = repr(value) if value is None or isinstance(value, str) else value
        assert f"got {shown}" in message, message
        assert f"set {name}" in message


@pytest.mark.parametrize("name", ALLOWED)
def test_a_value_at_the_end_of_a_range_passes(name):
    for value in ALLOWED[name]:
        class_with(name)(**{name: value})


def test_the_remedy_is_the_callers():
    with pytest.raises(ValueError, match="write --seed, please"):
        Settings.check({"seed": -1}, "write --{}, please".format)


@pytest.mark.parametrize("name", settings.ACTIVATIONS)
def test_keras_has_every_activation(name):
    assert callable(keras.activations.get(name))


def test_a_class_inherits_fields_changes_defaults_and_takes_known_values():
    class Child(Settings):
        defaults = {"seed": 3}  # noqa: RUF012
        units: tuple[int, ...] = field((8,), "Units.", check_layers)

    made = Child.of({"units": [4, 5], "unknown": 1})
    assert (made.seed, made.units) == (3, (4, 5))
    assert made.changed() == {"units": (4, 5)}
    assert Settings().seed == 0
    assert list(Child.texts())[-1] == "units"
    assert Child(**made.to_dict()) == made


def test_a_buffer_has_room_for_a_window_of_each_environment():
    values = {"num_envs": 5, "n_step_update": 3, "replay_capacity": 20}
    off_policy.OffPolicySettings(**values)
    with pytest.raises(
        ValueError,
        match=r"^replay_capacity: expected at least 20, 4 frames of each environment "
        r"\(num_envs, n_step_update\), got 19; set replay_capacity",
    ):
        off_policy.OffPolicySettings(**{**values, "replay_capacity": 19})


def test_each_environment_gives_the_same_number_of_episodes():
    values = {"num_envs": 3, "collect_episodes_per_iteration": 6}
    reinforce.REINFORCESettings(**values)
    with pytest.raises(
        ValueError,
        match=r"^collect_episodes_per_iteration: expected a multiple of num_envs, 3, "
        "got 7; set collect_episodes_per_iteration",
    ):
        reinforce.REINFORCESettings(**{**values, "collect_episodes_per_iteration": 7})


def test_munchausen_names_everything_that_has_to_change():
    values = {"double_q": False, "munchausen": True, "n_step_update": 1}
    dqn.IQNSettings(**values)
    with pytest.raises(
        ValueError,
        match=r"^munchausen: expected {'double_q': False, 'n_step_update': 1} with it, "
        r"got {'double_q': True, 'n_step_update': 3}; set munchausen, or set these",
    ):
        dqn.IQNSettings(munchausen=True)


def test_the_atoms_are_in_order():
    with pytest.raises(ValueError, match=r"^max_q_value: expected more than min_q"):
        dqn.C51Settings(max_q_value=-200.0)


def test_a_server_relabels_no_goals_and_frames_are_stored_in_one_way():
    dqn.DQNSettings(goals_per_step=4)
    with pytest.raises(ValueError, match=r"^goals_per_step: expected 0 .*, got 4"):
        dqn.DQNSettings(goals_per_step=4, replay="service")
    with pytest.raises(ValueError, match=r"^frame_stack: expected 0 with goals"):
        dqn.DQNSettings(goals_per_step=4, frame_stack=2)


def test_r2d2_needs_memory_and_steps_to_learn_from():
    for name in ("lstm_size", "trace_length"):
        with pytest.raises(ValueError, match=f"^{name}: expected an integer in .1"):
            dqn.R2D2Settings(**{name: 0})
    with pytest.raises(ValueError, match=r"^double_q: expected True for R2D2"):
        dqn.R2D2Settings(double_q=False)
