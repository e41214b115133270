"""Settings: which values they may have, and how classes declare them."""

import re
import subprocess
import sys

import keras
import pytest

import tfrl
from tests.forks import REPOSITORY
from tfrl.algorithms import algorithm, registry, settings
from tfrl.algorithms.settings import check_layers, field
from tfrl.experiments import actors

CLASSES = {name: registry.find(name) for name in registry.CLASSES}
FIELDS = {
    **{name: kind.setting_fields() for name, kind in CLASSES.items()},
    "actors": actors.ActorSettings.setting_fields(),
    "options": tfrl.LinUCB.run_fields(),
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
    "action_repeat": COUNTS,
    "activation": NO_WORD,
    "actor_fc_layer_params": NO_LAYERS,
    "actor_learning_rate": NEGATIVE,
    "actor_update_period": COUNTS,
    "actor_penalty": NEGATIVE,
    "adam_beta_1": (1.0, *NO_FRACTION),
    "adam_epsilon": NOT_POSITIVE,
    "alpha": NEGATIVE,
    "alpha_learning_rate": NEGATIVE,
    "batch_size": COUNTS,
    "burn_in_length": COUNTS_OR_0,
    "checkpoint_interval": COUNTS,
    "clip_range": NEGATIVE,
    "collect_episodes_per_iteration": COUNTS,
    "collect_steps_per_iteration": COUNTS,
    "collect_update_period": COUNTS,
    "conv_layer_params": (3, (3,), ((32, 8),), ((32, 8, 0),), (("a", 1, 1),), None),
    "bc_alpha": NEGATIVE,
    "cql_alpha": NEGATIVE,
    "critic_penalty": NEGATIVE,
    "critic_fc_layer_params": NO_LAYERS,
    "critic_learning_rate": NEGATIVE,
    "delayed_target_update_period": COUNTS,
    "dropout": (1.0, *NO_FRACTION),
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
    "encoder": ("foo", ""),
    "encoder_learning_rate": NEGATIVE,
    "encoding_dim": COUNTS,
    "encoding_iterations": COUNTS,
    "eta": NEGATIVE,
    "eval_interval": COUNTS,
    "expectile": (0.0, 1.0, *NO_FRACTION),
    "exploration_noise": NEGATIVE,
    "fc_layer_params": NO_LAYERS,
    "final_actor_learning_rate": (-1e-9, NAN, INF, "two"),
    "final_clip_range": (-1e-9, NAN, INF, "two"),
    "final_epsilon": NO_FRACTION,
    "final_importance_exponent": NEGATIVE,
    "final_learning_rate": (-1e-9, NAN, INF, "two"),
    "frame_stack": COUNTS_OR_0,
    "free_nats": NEGATIVE,
    "gamma": NO_FRACTION,
    "goals_per_step": COUNTS_OR_0,
    "gsde_initial_log_std": NOT_FINITE,
    "gsde_sample_freq": COUNTS_OR_0,
    "hidden_size": COUNTS,
    "horizon": COUNTS,
    "image_shift": COUNTS_OR_0,
    "imagination_length": COUNTS,
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
    "max_queue_size": COUNTS,
    "min_probability": (0.5, *NO_FRACTION),
    "minibatch_size": COUNTS_OR_0,
    "n_step_update": COUNTS,
    "noisy_stddev": NEGATIVE,
    "num_acting_quantiles": COUNTS_OR_0,
    "num_action_bins": COUNTS_OR_0,
    "num_atoms": (1, *COUNTS),
    "num_cql_samples": COUNTS,
    "num_critics": COUNTS,
    "num_dropped_quantiles": COUNTS_OR_0,
    "num_search_elites": COUNTS,
    "num_envs": COUNTS,
    "num_epochs": COUNTS,
    "num_eval_episodes": COUNTS,
    "num_iterations": COUNTS,
    "num_min": COUNTS_OR_0,
    "num_quantiles": COUNTS,
    "num_samples": COUNTS,
    "num_search_iterations": COUNTS,
    "num_search_samples": COUNTS,
    "online_share": NO_FRACTION,
    "ou_damping": NO_FRACTION,
    "ou_stddev": NEGATIVE,
    "output_fc_layer_params": NO_LAYERS,
    "policy_learning_rate": NEGATIVE,
    "priority_eta": NO_FRACTION,
    "priority_exponent": NEGATIVE,
    "reconstruction_weight": NEGATIVE,
    "renorm_momentum": NO_FRACTION,
    "renorm_warm_up": COUNTS_OR_0,
    "replay": NO_WORD,
    "replay_capacity": COUNTS,
    "pull_period": COUNTS,
    "push_period": COUNTS,
    "quantile_layer_params": NO_LAYERS,
    "reward_scale": NOT_FINITE,
    "rnd_coefficient": NEGATIVE,
    "rpo_alpha": NEGATIVE,
    "samples_per_insert": NEGATIVE,
    "seed": COUNTS_OR_0,
    "sequence_length": COUNTS,
    "sigma": NEGATIVE,
    "sequences_per_update": COUNTS,
    "stride_length": COUNTS_OR_0,
    "target_entropy_fraction": NO_FRACTION,
    "target_entropy_per_dimension": NOT_FINITE,
    "target_kl": NEGATIVE,
    "target_policy_noise": NEGATIVE,
    "target_policy_noise_clip": NEGATIVE,
    "tikhonov_weight": NEGATIVE,
    "target_update_period": COUNTS,
    "target_update_tau": NO_FRACTION,
    "trace_length": COUNTS_OR_0,
    "train_steps_per_iteration": COUNTS,
    "value_bins": COUNTS_OR_0,
    "value_clip_range": NEGATIVE,
    "value_loss_weight": NEGATIVE,
    "vmax": NOT_FINITE,
    "vmin": NOT_FINITE,
    "warm_up": COUNTS_OR_0,
    "weight_decay": NEGATIVE,
}
# Values at the ends of the ranges, and others that are rare.
ALLOWED = {
    "alpha_learning_rate": (0.0,),
    "conv_layer_params": ((), [[32, 8, 4]]),
    "fc_layer_params": ((), (1,), [64, 64]),
    "gamma": (0, 0.0, 1, 1.0),
    "final_actor_learning_rate": (None, 0.0),
    "final_clip_range": (None, 0.0),
    "final_learning_rate": (None, 0.0),
    "learning_rate": (0.0, 1e10),
    "minibatch_size": (0,),
    "num_atoms": (2,),
    "num_iterations": (1, 10**12),
    "reward_scale": (-1.0, 0.0),
    "seed": (0, 2**32, 2**62),
    "target_update_period": (10**10,),
    "vmin": (-1e6, 0.0),
}


def set_one(name, value):
    """Sets a setting of the first class that has it."""
    kind = next(k for k, fields in FIELDS.items() if name in fields)
    if kind == "actors":
        actors.ActorSettings(**{name: value})
    elif kind == "options":
        tfrl.DQN(**{name: value})
    else:
        CLASSES[kind](settings={name: value})


@pytest.mark.parametrize("name", FIELDS)
def test_every_setting_that_is_a_number_or_numbers_is_checked_and_has_a_text(name):
    for field_name, each in FIELDS[name].items():
        assert each.metadata["text"], field_name
        if not isinstance(each.default, bool | str):
            assert field_name in FORBIDDEN, f"{field_name} of {name} has no range"


@pytest.mark.parametrize("kind", CLASSES.values(), ids=CLASSES)
def test_the_defaults_of_a_class_pass_its_checks(kind):
    assert kind(settings={}).settings == kind.defaults()


def test_every_range_that_is_tested_is_of_a_setting():
    assert set(FORBIDDEN) <= {name for fields in FIELDS.values() for name in fields}


@pytest.mark.parametrize("name", FORBIDDEN)
def test_a_value_out_of_range_is_refused_with_the_name_the_value_and_the_remedy(name):
    for value in FORBIDDEN[name]:
        with pytest.raises((TypeError, ValueError)) as error:
            set_one(name, value)
        message = str(error.value)
        assert message.startswith(f"{name}: expected "), message
        shown = repr(value) if value is None or isinstance(value, str) else value
        assert f"got {shown}" in message, message
        assert f"set {name}" in message


@pytest.mark.parametrize("name", ALLOWED)
def test_a_value_at_the_end_of_a_range_passes(name):
    for value in ALLOWED[name]:
        set_one(name, value)


@pytest.mark.parametrize("value", ["false", "True", 0, 1, None])
def test_a_truth_value_is_true_or_false(value):
    message = f"dueling: expected True or False, got {value!r}; set dueling."
    with pytest.raises(TypeError, match=re.escape(message)):
        tfrl.DQN("CartPole-v1", dueling=value)


def test_the_remedy_is_the_callers():
    with (
        settings.remedied_by("write --{}, please"),
        pytest.raises(ValueError, match="write --seed, please"),
    ):
        tfrl.DQN(seed=-1)


@pytest.mark.parametrize("name", settings.ACTIVATIONS)
def test_keras_has_every_activation(name):
    assert callable(keras.activations.get(name))


class Base(algorithm.Algorithm):
    name = title = "base"

    units: tuple[int, ...] = field("Units.", check_layers, default=(8,))
    rate: float = settings.rate(default=0.1)


class Child(Base):
    seed: int = 3
    rate: float = 0.2


def test_a_class_inherits_settings_and_changes_defaults_alone():
    made = Child(settings={"units": [4, 5]})
    assert (made.seed, made.units, made.rate) == (3, (4, 5), 0.2)
    assert (Base.defaults()["seed"], Base.defaults()["rate"]) == (0, 0.1)
    assert list(Child.setting_fields())[-2:] == ["units", "rate"]
    assert Child.live_settings() == {"rate"}
    assert Child.search_ranges() == {"rate": settings.RATES}
    assert Child.setting_fields()["rate"].metadata["text"] == "Learning rate of Adam."
    with pytest.raises(ValueError, match=r"^rate: expected a finite number of"):
        Child(rate=-1.0)


def test_a_setting_is_checked_when_it_is_set_and_stays_when_the_parts_are_made():
    made = tfrl.DQN(gamma=0.9, fc_layer_params=(4,))
    made.gamma = 0.8
    with pytest.raises(ValueError, match=r"^gamma: expected a number in \[0, 1\]"):
        made.gamma = 2.0
    assert made.settings["gamma"] == made.gamma == 0.8
    assert made.environment is not None
    with pytest.raises(
        AttributeError,
        match=r"^gamma: the parts of this DQN are made with 0\.8; make another one "
        r"with gamma=0\.9",
    ):
        made.gamma = 0.9


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        (
            "learning_rte",
            3,
            "DQN: got an unknown setting 'learning_rte'; did you mean ",
        ),
        ("n_envs", 4, "DQN: got an unknown setting 'n_envs'; write num_envs=4."),
        ("xyzzy", 1, r"DQN: .* 'xyzzy'; DQN\.defaults\(\) has those that it knows"),
        (
            "network",
            None,
            r"network: an argument .*make another one: DQN\(network=\.\.",
        ),
        ("environment", "CartPole-v1", "environment: an argument of the constructor"),
        ("preset", "dqn", "preset: an argument of the constructor"),
    ],
)
def test_what_is_no_setting_is_not_set_on_an_algorithm(name, value, text):
    made = tfrl.DQN()
    with pytest.raises(AttributeError, match=f"^{text}"):
        setattr(made, name, value)
    assert made.settings == tfrl.DQN().settings
    made._own = value  # Of a subclass.
    assert made._own == value


def test_a_programs_subclass_has_attributes_of_its_own():
    class Own(tfrl.DQN):
        def __init__(self, bonus, **settings):
            super().__init__(**settings)
            self.bonus = bonus

    made = Own(2.0, gamma=0.8)
    assert (made.bonus, made.gamma) == (2.0, 0.8)
    with pytest.raises(AttributeError, match="network: an argument of the constr"):
        made.network = None


@pytest.mark.parametrize(
    ("kind", "values", "line"),
    [
        (
            tfrl.DQN,
            {"importance_exponent": 0.5},
            "DQN: importance_exponent=0.5 does nothing with replay='uniform'; set "
            "replay=prioritized, too, or leave it out.\n",
        ),
        (tfrl.DQN, {"importance_exponent": 0.5, "replay": "prioritized"}, ""),
        (
            tfrl.SAC,
            {"gsde_initial_log_std": -2.0},
            "SAC: gsde_initial_log_std=-2.0 does nothing with gsde_sample_freq=0; set "
            "gsde_sample_freq, too, or leave it out.\n",
        ),
        (tfrl.SAC, {"gsde_initial_log_std": -2.0, "gsde_sample_freq": 4}, ""),
    ],
)
def test_a_given_setting_that_does_nothing_is_named(kind, values, line, capsys):
    kind(preset="", settings={}, **values)
    assert capsys.readouterr().err == line


def test_settings_need_others_of_the_same_algorithm():
    for kind in CLASSES.values():
        for name, each in kind.setting_fields().items():
            if each.metadata["needs"] is not None:
                other, wanted = each.metadata["needs"]
                assert other in kind.setting_fields(), (kind, name)
                assert wanted is True or wanted != kind.defaults().get(name)


def test_an_unknown_setting_is_named_with_the_nearest():
    with pytest.raises(TypeError, match=r"DQN: got an unknown setting 'gama'; did you"):
        tfrl.DQN(gama=0.9)


TYPED = """
import tfrl
tfrl.SAC("Pendulum-v1", gamma=0.9, batch_size=32, seed=1, logdir="logs/x")
tfrl.SAC("Pendulum-v1", gamme=0.9)
tfrl.SAC("Pendulum-v1", batch_size="many")
class Mine(tfrl.SAC):
    gamma: float = 0.9
    def f(self) -> float:
        return self.gama
Mine().gamma.imag
"""


@pytest.mark.slow
def test_type_checkers_know_the_settings(tmp_path):
    pytest.importorskip("mypy")
    path = tmp_path / "typed.py"
    path.write_text(TYPED)
    found = subprocess.run(
        [sys.executable, "-m", "mypy", "--cache-dir", str(tmp_path), str(path)],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
    ).stdout
    lines = [line.partition(": error: ")[2] for line in found.splitlines()]
    assert [line.partition("  [")[2] for line in lines if line] == [
        "call-arg]",
        "arg-type]",
        "attr-defined]",
    ], found


def test_a_buffer_has_room_for_a_window_of_each_environment():
    values = {"num_envs": 5, "n_step_update": 3, "replay_capacity": 20}
    tfrl.SAC(settings=values)
    with pytest.raises(
        ValueError,
        match=r"^replay_capacity: expected at least 20, 4 frames of each environment "
        r"\(num_envs, n_step_update\), got 19; set replay_capacity",
    ):
        tfrl.SAC(settings={**values, "replay_capacity": 19})
    values = {"num_envs": 2, "lstm_size": 4, "lstm_sequence_length": 20}
    tfrl.TD3(replay_capacity=42, **values)
    with pytest.raises(
        ValueError,
        match=r"^replay_capacity: expected at least 42, 21 frames of each environment "
        r"\(num_envs, the length of sequences\), got 41; set replay_capacity",
    ):
        tfrl.TD3(replay_capacity=41, **values)


@pytest.mark.parametrize(
    ("kind", "name"),
    [(tfrl.SAC, "critic_fc_layer_params"), (tfrl.TD3, "fc_layer_params")],
)
@pytest.mark.parametrize("sizes", [(), (8, 16)])
def test_residual_blocks_have_one_size(kind, name, sizes):
    kind(encoder="simba", **{name: (8, 8)})
    kind(**{name: sizes})
    with pytest.raises(
        ValueError,
        match=rf"^{name}: expected the same number .* with encoder='simba', got "
        rf"{re.escape(str(sizes))}; set {name}",
    ):
        kind(encoder="simba", **{name: sizes})


def test_bins_divide_a_range():
    tfrl.SAC(value_bins=2, vmin=0.0, vmax=1.0)
    tfrl.SAC(vmin=200.0)  # Without bins there is no range.
    expected = r"^vmin: expected a number below vmax, 100.0, got 200.0; set vmin"
    with pytest.raises(ValueError, match=expected):
        tfrl.SAC(value_bins=2, vmin=200.0)
    expected = r"^value_bins: expected 0 or at least 2 bins, got 1; set value_bins"
    with pytest.raises(ValueError, match=expected):
        tfrl.TD3(value_bins=1)


def test_updates_of_recorded_and_new_frames_have_some_of_both():
    values = {"batch_size": 8, "train_steps_per_iteration": 2, "replay_capacity": 2}
    tfrl.IQL(online_share=1 / 16, **values)
    with pytest.raises(
        ValueError,
        match=r"^online_share: expected 0, or at least 1 of the 16 frames of an "
        r"iteration's updates \(batch_size, train_steps_per_iteration\), which is "
        "0.0625, got 0.06, with which none is new; set online_share",
    ):
        tfrl.IQL(online_share=0.06, **values)
    with pytest.raises(
        ValueError,
        match=r"^replay_capacity: expected at least 2 new frames with online_share, "
        "got 1; set replay_capacity",
    ):
        tfrl.IQL(online_share=0.5, **{**values, "replay_capacity": 1})


def test_each_environment_gives_the_same_number_of_episodes():
    values = {"num_envs": 3, "collect_episodes_per_iteration": 6}
    tfrl.REINFORCE(**values)
    with pytest.raises(
        ValueError,
        match=r"^collect_episodes_per_iteration: expected a multiple of num_envs, 3, "
        "got 7; set collect_episodes_per_iteration",
    ):
        tfrl.REINFORCE(**{**values, "collect_episodes_per_iteration": 7})


def test_munchausen_names_everything_that_has_to_change():
    tfrl.IQN(double_q=False, munchausen=True, n_step_update=1)
    with pytest.raises(
        ValueError,
        match=r"^munchausen: expected {'double_q': False, 'n_step_update': 1} with it, "
        r"got {'double_q': True, 'n_step_update': 3}; set munchausen, or set these",
    ):
        tfrl.IQN(munchausen=True)


def test_the_atoms_are_in_order():
    for kind in (tfrl.C51, tfrl.Rainbow, tfrl.D4PG, tfrl.DMPO):
        high = kind.defaults()["vmax"]
        with pytest.raises(
            ValueError, match=rf"^vmin: .* below vmax, {high}, got 300.0; set vmin"
        ):
            kind(vmin=300.0)


def test_frames_are_stored_in_one_way():
    tfrl.DQN(goals_per_step=4)
    with pytest.raises(ValueError, match=r"^frame_stack: expected 0 with goals"):
        tfrl.DQN(goals_per_step=4, frame_stack=2)


def test_r2d2_needs_memory_and_steps_to_learn_from():
    for name in ("lstm_size", "trace_length"):
        with pytest.raises(ValueError, match=f"^{name}: expected an integer in .1"):
            tfrl.R2D2(**{name: 0})


def test_a_learning_rate_ends_at_its_last_value_or_stays():
    for name, last in (("dqn", 1e-5), ("c51", None), ("ppo", 0.0), ("sac", None)):
        assert registry.find(name).defaults()["final_learning_rate"] == last
    assert isinstance(
        tfrl.DQN().agent_arguments()["optimizer"]._learning_rate,
        keras.optimizers.schedules.PolynomialDecay,
    )
    # An environment without a preset, which may have another rate.
    recipe = tfrl.DQN("CliffWalking-v1", final_learning_rate=None)
    constant = recipe.agent_arguments()["optimizer"]
    assert float(constant.learning_rate) == pytest.approx(2e-3)


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (tfrl.DQN, "learning_rate"),
        (tfrl.PPO, "learning_rate"),
        (tfrl.SAC, "critic_learning_rate"),
    ],
)
def test_a_schedule_is_a_rate_without_a_last_one_and_without_a_folder(
    kind, name, tmp_path
):
    schedule = keras.optimizers.schedules.ExponentialDecay(1e-3, 100, 0.9)
    message = rf"^final_learning_rate: expected None with {name}, a schedule .*, got 0"
    with pytest.raises(ValueError, match=message):
        kind(final_learning_rate=0.0, **{name: schedule})
    made = kind(final_learning_rate=None, logdir=tmp_path, **{name: schedule})
    with pytest.raises(
        ValueError, match=rf"^{name}: got a schedule, Exp.* holds no schedules"
    ):
        made.open_folder()
    assert not list(tmp_path.iterdir())


def test_a_changed_default_keeps_the_declaration_of_every_base():
    class First(settings.Settings):
        pass

    class Second(settings.Settings):
        low: float = field("The least value.", settings.FINITE, default=0.0)

    class Both(First, Second):
        low: float = -1.0

    assert Both.setting_fields()["low"].metadata["text"] == "The least value."
    with pytest.raises(ValueError, match=r"^low: "):
        Both.check_setting("low", INF)


def test_networks_of_rnd_need_a_hidden_layer():
    made = tfrl.PPO(rnd_coefficient=1.0, fc_layer_params=())
    with pytest.raises(ValueError, match=r"^fc_layer_params: .*rnd_coefficient, got"):
        made.make_rnd()
