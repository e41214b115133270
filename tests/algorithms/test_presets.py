import dataclasses
import pathlib
import re

import gymnasium
import numpy as np
import pytest

import tfrl
from tfrl.algorithms import presets, registry, worlds
from tfrl.algorithms import settings as settings_lib
from tfrl.experiments import actors

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    ("algorithm", "environment", "expected"),
    [
        ("ppo", "CartPole-v1", "ppo"),
        ("ppo", "Pendulum-v1", "ppo_pendulum"),
        ("ppo", "Walker2d-v5", "ppo_mujoco"),
        ("ppo", "ALE/Breakout-v5", "ppo_atari"),
        ("ppo", "BreakoutNoFrameskip-v4", "ppo_atari"),
        ("ppo", "MiniGrid-Empty-5x5-v0", "ppo_minigrid"),
        ("ppo", "MyWalker2d-v5", None),
        ("dqn", "CartPole-v1", "dqn"),
        ("ddqn", "CartPole-v1", "ddqn"),
        ("dqn", "ALE/Breakout-v5", "dqn_atari"),
        ("ddqn", "ALE/Breakout-v5", "dqn_atari"),
        ("dqn", "BitFlippingToOnes12-v0", "dqn_bit_flipping_to_ones"),
        ("dqn", "BitFlipping8-v0", "dqn_bit_flipping"),
        ("dqn", "HalfCheetah-v5", None),
        ("pqn", "Acrobot-v1", "pqn_acrobot"),
        ("sac", "MountainCarContinuous-v0", "sac_mountain_car"),
        ("sac", "ALE/Breakout-v5", None),
        ("tqc", "FetchReach-v4", "sac_fetch_reach"),
        ("tqc", "HalfCheetah-v5", "sac_mujoco"),
        ("sac", "FetchReach-v4", None),
        ("ddpg", "MountainCarContinuous-v0", "td3_mountain_car"),
        ("d4pg", "dm_control/cartpole-balance", "d4pg_cartpole"),
        ("c51", "Acrobot-v1", "c51_acrobot"),
        ("qr_dqn", "LunarLander-v3", "qr_dqn_lunar_lander"),
        ("rainbow", "ALE/Pong-v5", "rainbow_atari"),
        ("c51", "ALE/Breakout-v5", "c51_atari"),
        ("qr_dqn", "BreakoutNoFrameskip-v4", "qr_dqn_atari"),
        ("iqn", "ALE/Breakout-v5", "iqn_atari"),
        ("ppo", "gymnax/Asterix-MinAtar", "ppo_minatar"),
        ("pqn", "gymnax/SpaceInvaders-MinAtar", "pqn_minatar"),
        ("ddqn", "gymnax/Freeway-MinAtar", "dqn_minatar"),
    ],
)
def test_an_algorithm_finds_its_settings_for_an_environment(
    algorithm, environment, expected
):
    found = registry.find_preset(registry.find(algorithm), environment)
    assert (found and found.name) == expected


class Pictures(gymnasium.Env):
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, shape=(40, 48, 3), dtype=np.uint8):
        self.observation_space = gymnasium.spaces.Box(0, 255, shape, dtype)
        self.closed = False

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return self.observation_space.sample(), {}


def make_pair():
    return gymnasium.vector.SyncVectorEnv([Pictures, Pictures])


@pytest.mark.parametrize(
    "environment", [Pictures, Pictures(), lambda: Pictures(), make_pair()]
)
def test_pictures_without_a_row_take_the_settings_for_pictures(environment, capsys):
    dqn = tfrl.DQN(environment, batch_size=8)
    expected = dict(presets.named("dqn_pixels").settings, batch_size=8)
    found = dqn.settings
    wrong = [
        name for name, x in expected.items() if found[name] != settings_lib._plain(x)
    ]
    assert wrong in ([], ["initial_collect_steps"])
    assert (
        "for any environment of pictures (rl-zoo3's for Atari's games, with a smaller "
        "replay buffer).\n"
    ) in capsys.readouterr().err


class Cameras(Pictures):
    """Shows pictures and a speed."""

    def __init__(self, *sides):
        super().__init__()
        spaces = {
            str(i): gymnasium.spaces.Box(0, 255, (side, side, 1), np.uint8)
            for i, side in enumerate(sides)
        }
        speed = gymnasium.spaces.Tuple([gymnasium.spaces.Box(-1, 1, (1,))])
        self.observation_space = gymnasium.spaces.Dict(speed=speed, **spaces)


def test_ppo_takes_the_settings_for_pictures_also_if_there_is_more(capsys):
    def settings(make):
        return tfrl.PPO(make).settings

    expected = dict(presets.named("ppo_atari").settings)
    found = settings(lambda: Cameras(36, 50))
    assert {name: found[name] for name in expected} == {
        name: settings_lib._plain(x) for name, x in expected.items()
    }
    assert "for any environment of pictures" in capsys.readouterr().err
    for sides in ((), (36, 35)):
        assert settings(lambda sides=sides: Cameras(*sides)) == tfrl.PPO.defaults()
    others = tfrl.DQN(lambda: Cameras(50)).settings
    assert others == tfrl.DQN.defaults()


def test_each_environment_that_a_function_makes_is_used_once():
    made = []

    def make():
        made.append(Pictures())
        return made[-1]

    probe = worlds.Probe(make)
    assert probe.find_kind() == "pictures"
    assert [probe.environment(), probe.environment()] == made
    assert len(made) == 2


@pytest.mark.parametrize(
    ("algorithm", "make"),
    [
        (tfrl.DQN, lambda: Pictures((40, 35, 3))),  # Too small for the convolutions.
        (tfrl.DQN, lambda: Pictures((40, 48))),
        (tfrl.DQN, lambda: Pictures((40, 48, 3), np.float32)),
        (tfrl.C51, Pictures),
        (tfrl.PQN, Pictures),
    ],
)
def test_others_have_the_settings_of_the_class(algorithm, make, capsys):
    assert algorithm(make).settings == algorithm.defaults()
    assert capsys.readouterr().err == (
        f"{algorithm.title} on this environment: default settings, for environments "
        "such as CartPole-v1.\n"
    )


class Robot(gymnasium.Env):
    """Like MuJoCo's: 17 numbers to see and 6 to choose."""

    observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (17,), np.float64)
    action_space = gymnasium.spaces.Box(-1, 1, (6,), np.float32)


class Pole(Robot):
    """As small as classic control."""

    observation_space = gymnasium.spaces.Box(-1, 1, (3,), np.float32)
    action_space = gymnasium.spaces.Box(-1, 1, (1,), np.float32)


@pytest.mark.parametrize(
    ("algorithm", "row"),
    [
        ("sac", "sac_mujoco"),
        ("tqc", "sac_mujoco"),  # As on MuJoCo's.
        ("redq", "sac_mujoco"),
        ("crossq", "crossq_mujoco"),
        ("td3", "td3_mujoco"),
        ("ddpg", "td3_mujoco"),
        ("ppo", "ppo_mujoco"),
        ("iql", "iql_mujoco"),
        ("bc", "bc_mujoco"),
        ("mpo", None),
    ],
)
def test_large_continuous_control_has_the_settings_of_mujocos(algorithm, row, capsys):
    kind = registry.find(algorithm)
    made, told = kind(Robot), capsys.readouterr().err
    if row is None:
        assert made.settings == kind.defaults()
        assert "default settings, for environments such as Pendulum-v1" in told
    else:
        known = registry.find_preset(kind, "Hopper-v5")
        assert made.settings == {**kind(preset=known.name).settings}
        assert made.preset.name == row
        scope = "any environment of continuous control beyond classic size"
        assert f"this environment: settings {row!r}, for {scope} (" in told
    assert kind(Pole).settings == kind.defaults()


def test_a_run_that_is_shorter_than_its_random_steps_says_so(capsys):
    class Stop(Exception):
        pass

    class Sac(tfrl.SAC):
        def make_initialized_agent(self):
            raise Stop

    for steps in (10_000, 10_001):
        with pytest.raises(Stop):
            Sac("Pendulum-v1", initial_collect_steps=10_000).build(steps)
        told = capsys.readouterr().err
        expected = "initial_collect_steps: 10,000, so all 10,000 steps are taken before"
        assert (expected in told) is (steps == 10_000)


def test_what_a_program_and_a_run_say_goes_before_the_settings_by_size(tmp_path):
    assert tfrl.SAC(Robot, batch_size=7).batch_size == 7
    lander = tfrl.SAC(Robot, preset="sac_lunar_lander")
    assert lander.actor_fc_layer_params == (400, 300)
    run = tfrl.SAC(settings=tfrl.SAC.defaults()).recipe()
    nameless = dataclasses.replace(run, environment="")
    assert nameless.make(Robot).settings == tfrl.SAC.defaults()


@pytest.mark.parametrize(
    ("algorithm", "row"),
    [("dqn", "dqn_pixels"), ("ddqn", "dqn_pixels"), ("ppo", "ppo_atari")],
)
def test_a_registered_environment_is_made_to_learn_its_kind(algorithm, row):
    gymnasium.register("tests/Pictures-v0", entry_point=Pictures)
    kind = registry.find(algorithm)
    found = registry.find_preset(kind, "tests/Pictures-v0")
    assert found is not None
    assert found.name == row
    assert kind("tests/Pictures-v0").fc_layer_params == (512,)
    assert registry.find_preset(kind, "FrozenLake-v1") is None
    assert registry.find_preset(kind, "NoSuchEnvironment-v0") is None


@pytest.mark.parametrize("preset", presets.every(), ids=lambda preset: preset.name)
def test_a_row_names_fields_that_it_changes(preset):
    kind = registry.find(preset.algorithm)
    made, fields = kind(settings=preset.settings).settings, kind.run_fields()
    assert all(made[name] != fields[name].default for name in preset.settings)
    if preset.actors is not None:
        actors.ActorSettings(**preset.actors)
    if preset.family:
        assert re.fullmatch(preset.family, preset.environment)
    assert preset.source


def test_names_are_different_and_a_wrong_one_is_told():
    names = [preset.name for preset in presets.every()]
    assert len(set(names)) == len(names)
    with pytest.raises(
        ValueError, match=r"preset: got 'ppp', expected one of [a-z0-9_]+, "
    ):
        presets.named("ppp")


def test_a_preset_of_another_algorithm_is_refused_and_a_relatives_is_taken():
    with pytest.raises(ValueError, match=r"^preset: got 'ddqn_prioritized', settings"):
        tfrl.PPO(preset="ddqn_prioritized")
    redq = tfrl.REDQ("HalfCheetah-v5")
    assert (redq.batch_size, redq.num_critics) == (tfrl.SAC("Ant-v5").batch_size, 10)
    row = presets.named("sac_bipedal_walker")
    assert row.settings["train_steps_per_iteration"] == 64
    # Twenty updates a step are what REDQ is, so its class declares them.
    assert tfrl.REDQ(preset=row.name).train_steps_per_iteration == 20
    assert tfrl.TQC(preset=row.name).train_steps_per_iteration == 64


@pytest.mark.parametrize("preset", presets.every(), ids=lambda preset: preset.name)
def test_one_page_lists_each_row_with_its_source(preset):
    pages = (REPOSITORY / "docs" / "algorithms").glob("*.md")
    pattern = rf"^\| `{preset.name}` \| ([^|]*) \| ([^|]*) \|"
    found = [re.search(pattern, page.read_text(), re.M) for page in pages]
    (row,) = filter(None, found)
    assert row[1].startswith(preset.environment)
    assert row[2] == preset.source


def test_lines_about_settings_on_pages_are_those_that_are_printed():
    pages = [*(REPOSITORY / "docs").rglob("*.md"), REPOSITORY / "README.md"]
    text = " ".join(" ".join(page.read_text() for page in pages).split())
    found = re.findall(r"settings '(\w+)' \((.*?)(; \.\.\.)?\)", text)
    assert len(found) == 2
    for name, source, more in found:
        whole = presets.named(name).source
        assert whole.startswith(source) if more else whole == source
