"""Which values the fields of the configurations may have."""

import pathlib
import runpy

import keras
import pytest

from examples import checks

CONFIGS = sorted((pathlib.Path(__file__).resolve().parents[2] / "configs").glob("*.py"))
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
    "initial_log_stddev": NOT_FINITE,
    "inverse_temperature": NEGATIVE,
    "lambda_value": NO_FRACTION,
    "learning_rate": NEGATIVE,
    "log_interval": COUNTS,
    "loss": NO_WORD,
    "lstm_size": COUNTS_OR_0,
    "max_abs_reward": NEGATIVE,
    "max_gradient_norm": NEGATIVE,
    "max_q_value": NOT_FINITE,
    "max_queue_size": COUNTS,
    "min_q_value": NOT_FINITE,
    "minibatch_size": COUNTS_OR_0,
    "n_step_update": COUNTS,
    "noisy_stddev": NEGATIVE,
    "num_action_bins": COUNTS_OR_0,
    "num_atoms": (1, *COUNTS),
    "num_cql_samples": COUNTS,
    "num_critics": COUNTS,
    "num_dropped_quantiles": COUNTS_OR_0,
    "num_environment_steps": COUNTS,
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


def get_config(path):
    return runpy.run_path(str(path))["get_config"]()


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_every_field_that_is_a_number_or_numbers_is_checked_and_passes(path):
    config = get_config(path)
    for name, value in config.items():
        if not isinstance(value, bool | str):
            assert name in FORBIDDEN, f"{name} of {path.name} has no range"
    checks.check(config)


def test_every_check_is_of_a_field_and_tested():
    fields = {name for path in CONFIGS for name in get_config(path)}
    assert set(checks.CHECKS) == set(FORBIDDEN)
    assert set(FORBIDDEN) - {"num_environment_steps"} <= fields


@pytest.mark.parametrize("name", FORBIDDEN)
def test_a_value_out_of_range_is_refused_with_the_field_the_value_and_its_flag(name):
    for value in FORBIDDEN[name]:
        with pytest.raises((TypeError, ValueError)) as error:
            checks.check({name: value})
        message = str(error.value)
        assert message.startswith(f"{name}: expected "), message
        shown = repr(value) if value is None or isinstance(value, str) else value
        assert f"got {shown}" in message, message
        assert f"set --config.{name}, or edit the configuration file." in message


@pytest.mark.parametrize("name", ALLOWED)
def test_a_value_at_the_end_of_a_range_passes(name):
    for value in ALLOWED[name]:
        checks.check({name: value})


def test_a_field_with_a_flag_of_its_own_names_it():
    with pytest.raises(ValueError, match="set --seed, or edit"):
        checks.check({"seed": -1}, ["seed"])


@pytest.mark.parametrize("name", checks.ACTIVATIONS)
def test_keras_has_every_activation(name):
    assert callable(keras.activations.get(name))


def test_a_buffer_has_room_for_a_window_of_each_environment():
    config = {"num_envs": 5, "n_step_update": 3, "replay_capacity": 20}
    checks.check(config)
    with pytest.raises(
        ValueError,
        match=r"^replay_capacity: expected at least 20, 4 frames of each environment "
        r"\(num_envs, n_step_update\), got 19; set --config.replay_capacity",
    ):
        checks.check({**config, "replay_capacity": 19})


def test_each_environment_gives_the_same_number_of_episodes():
    config = {"num_envs": 3, "collect_episodes_per_iteration": 6}
    checks.check(config)
    with pytest.raises(
        ValueError,
        match=r"^collect_episodes_per_iteration: expected a multiple of num_envs, 3, "
        "got 7; set --config.collect_episodes_per_iteration or --config.num_envs",
    ):
        checks.check({**config, "collect_episodes_per_iteration": 7})


def test_a_field_above_another_one_names_both():
    checks.check_at_most({"a": 2, "b": 2}, "a", "b")
    with pytest.raises(
        ValueError,
        match=r"^a: expected at most b, 2, got 3; lower --config.a, or raise "
        r"--config.b",
    ):
        checks.check_at_most({"a": 3, "b": 2}, "a", "b")


def test_munchausen_names_everything_that_has_to_change():
    config = {
        "agent": "iqn",
        "double_q": False,
        "max_q_value": 1.0,
        "min_q_value": 0.0,
        "munchausen": True,
        "n_step_update": 1,
    }
    checks.check(config)
    with pytest.raises(
        ValueError,
        match=r"^munchausen: expected {'double_q': False, 'n_step_update': 1} with it, "
        r"got {'double_q': True, 'n_step_update': 3}; "
        r"set --config.double_q=False --config.n_step_update=1, or --config.munch",
    ):
        checks.check({**config, "double_q": True, "n_step_update": 3})
    with pytest.raises(ValueError, match=r"^munchausen: expected agent to be .* 'c51'"):
        checks.check({**config, "agent": "c51"})


def test_a_server_relabels_no_goals():
    config = {"goals_per_step": 4, "replay": "uniform"}
    checks.check(config)
    with pytest.raises(ValueError, match=r"^goals_per_step: expected 0 .*, got 4"):
        checks.check({**config, "replay": "service"})


def test_r2d2_needs_memory_and_steps_to_learn_from():
    config = {
        "agent": "r2d2",
        "double_q": True,
        "lstm_size": 8,
        "munchausen": False,
        "trace_length": 5,
    }
    checks.check(config)
    for name in ("lstm_size", "trace_length"):
        with pytest.raises(ValueError, match=f"^{name}: expected a positive number"):
            checks.check({**config, name: 0})
    with pytest.raises(ValueError, match=r"^double_q: expected True for R2D2"):
        checks.check({**config, "double_q": False})


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["a"], "different numbers, with commas, got 'a'; set --learning_rates="),
        ([], "different numbers, with commas, got ''; set --learning_rates="),
        (["1", "2", "1.0"], "different numbers, with commas, got '1,2,1.0'; set"),
        (["1e-3", "-1"], "a finite number of at least 0, got -1.0; set --learn"),
        (["nan"], "a finite number of at least 0, got nan; set --learning_rates"),
    ],
)
def test_wrong_learning_rates_are_refused(words, message):
    with pytest.raises(ValueError, match=f"^learning_rates: expected {message}"):
        checks.learning_rates(words)
