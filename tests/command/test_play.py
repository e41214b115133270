"""What `tfrl play` prints, and its film."""

import dataclasses
import os
import re
import shutil
import types

import imageio.v2 as imageio
import numpy as np
import pytest
import tensorflow as tf

import tfrl
from tfrl import environments, policies
from tfrl.algorithms import learning
from tfrl.command import play, saved_policy
from tfrl.environments import suites
from tfrl.policies import policy_saver


def test_returns_and_limits_are_printed_and_an_episode_is_filmed(
    tmp_path, monkeypatch, capsys
):
    environment = environments.TFPyEnvironment(
        environments.suite_gym.load("CartPole-v1")
    )
    policy = policies.RandomTFPolicy(
        environment.time_step_spec(), environment.action_spec()
    )
    policy_saver.PolicySaver(policy).save(str(tmp_path / "policy"))
    saved = saved_policy.Saved(tmp_path / "policy", "CartPole-v1", 3, {}, None)
    monkeypatch.setattr(play.saved_policy, "find", lambda *_: saved)
    video = tmp_path / "play.mp4"
    with pytest.warns(RuntimeWarning, match="ended at its limit of 5 steps"):
        play._run(
            types.SimpleNamespace(
                num_episodes=2,
                max_steps=5,
                video=str(video),
                video_episodes=1,
                overwrite=False,
            ),
            None,
        )
    output = capsys.readouterr().out
    assert "episode 2: return 5.0" in output
    assert "2 episodes of CartPole-v1: mean return 5.0" in output
    assert output.endswith(f"Video: {video}\n")
    with imageio.get_reader(video) as reader:
        assert np.std(reader.get_data(0)) > 0
    for content, overwrite, text in (
        (video.read_bytes(), False, "one already; give overwrite=True or --overwrite"),
        (b"mine", True, "something that tfrl did not write, and keeps"),
    ):
        video.write_bytes(content)
        given = types.SimpleNamespace(video=str(video), overwrite=overwrite)
        with pytest.raises(
            ValueError, match=f"^--video: got .*, where there is {text}"
        ):
            play._run(given, None)
        assert video.read_bytes() == content


def test_an_environment_without_pictures_is_played_without_a_video(
    tmp_path, monkeypatch, capsys
):
    """As those of gymnax are; the returns are what was asked for."""
    pole = environments.native.load("CartPole-v1").dynamics
    bare = dataclasses.replace(pole, render=None)
    own = suites.Suite(matches="bare/Pole".__eq__, dynamics=lambda _: bare)
    monkeypatch.setattr(suites, "_added", [own])
    environment = environments.native.NativeEnvironment(bare)
    policy = policies.RandomTFPolicy(
        environment.time_step_spec(), environment.action_spec()
    )
    policy_saver.PolicySaver(policy).save(str(tmp_path / "policy"))
    saved = saved_policy.Saved(tmp_path / "policy", "bare/Pole", 3, {}, None)
    monkeypatch.setattr(play.saved_policy, "find", lambda *_: saved)
    numbers = {"num_episodes": 2, "max_steps": 500, "video_episodes": 1}
    given = types.SimpleNamespace(**numbers, video=None, overwrite=False)
    play._run(given, None)
    output = capsys.readouterr().out
    assert "2 episodes of bare/Pole: mean return" in output
    assert "No video: NativeEnvironment.render: this environment does not" in output
    assert os.listdir(tmp_path) == ["policy"]
    given.video = str(tmp_path / "asked_for.mp4")
    with pytest.raises(NotImplementedError, match="render"):
        play._run(given, None)


@pytest.mark.parametrize(
    ("config", "lack"),
    [(None, "is not there"), ("{}", "names none"), ('{"env": ""}', "names none")],
)
def test_a_run_without_an_environment_is_told_whether_it_has_a_configuration(
    tmp_path, config, lack
):
    (tmp_path / "policy").mkdir()
    (tmp_path / "policy" / "saved_model.pb").touch()
    if config:
        (tmp_path / "config.json").write_text(config)
    given = types.SimpleNamespace(policy=None, env=None, trust=False)
    with pytest.raises(ValueError, match=rf"config\.json {lack}; give --env=NAME"):
        saved_policy.find(given, str(tmp_path))


@pytest.fixture
def saved(tmp_path):
    """The folder of a saved policy."""
    environment = environments.TFPyEnvironment(
        environments.suite_gym.load("CartPole-v1")
    )
    policy = policies.RandomTFPolicy(
        environment.time_step_spec(), environment.action_spec()
    )
    policy_saver.PolicySaver(policy).save(str(tmp_path / "policy"))
    return tmp_path / "policy"


def _loaded(path):
    """Loads a policy whose SavedModel is trusted."""
    return saved_policy.Saved(path, "CartPole-v1", 0, {}, None).load(None)


@pytest.mark.parametrize("is_pipe", [True, False])
def test_a_policy_without_variables_is_told_in_one_line(saved, is_pipe):
    index = saved / "variables" / "variables.index"
    index.unlink()
    if is_pipe:
        os.mkfifo(index)
    reason = "variables.index is no file" if is_pipe else ".+"
    message = rf"^--policy: '{saved}' cannot be loaded \({reason}\); restore it.*$"
    with pytest.raises(ValueError, match=message) as error:
        _loaded(saved)
    assert "\n" not in str(error.value)


def test_a_damaged_fingerprint_is_of_no_use_and_not_told(saved, caplog):
    (saved / "fingerprint.pb").write_text("text")
    _loaded(saved)
    assert "Fingerprint" not in caplog.text


def test_a_saved_model_that_is_no_policy_is_told(tmp_path):
    tf.saved_model.save(tf.Module(), str(tmp_path))
    with pytest.raises(ValueError, match=r"cannot be loaded \(it is no policy\); re"):
        _loaded(tmp_path)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """The folder of a run of DQN that was not trained."""
    folder = tmp_path_factory.mktemp("run")
    dqn = tfrl.DQN("CartPole-v1", jit_compile=False, replay_capacity=100)
    dqn.build()
    dqn.save(folder)
    return folder, dqn


@pytest.fixture
def copied(run, tmp_path):
    return shutil.copytree(run[0], tmp_path / "run")


def _given(**given):
    return types.SimpleNamespace(
        **{"policy": None, "env": None, "seed": None, "trust": False} | given
    )


def test_a_policy_is_built_by_its_settings_and_its_graph_is_not_read(run, copied):
    for name in ("saved_model.pb", "fingerprint.pb", "distributions.json"):
        (copied / "policy" / name).write_bytes(b"x")
    saved = saved_policy.find(_given(), str(copied))
    environment = saved.make_environment(3)
    policy, own = saved.load(environment), run[1].policy
    time_step = environment.reset()
    np.testing.assert_array_equal(
        policy.action(time_step).action, own.action(time_step).action
    )
    for loaded, variable in zip(policy.variables(), own.variables(), strict=True):
        np.testing.assert_array_equal(loaded, variable)


def test_a_run_in_an_environment_without_a_name_is_played_in_one_with_a_name(copied):
    config = copied / "config.json"
    config.write_text(config.read_text().replace('"CartPole-v1"', '""'))
    saved = saved_policy.find(_given(env="CartPole-v1"), str(copied))
    environment = saved.make_environment(2)
    saved.load(environment).action(environment.reset())


def test_an_error_names_the_environment_that_is_played_in(copied):
    saved = saved_policy.find(_given(env="Pendulum-v1"), str(copied))
    environment = saved.make_environment(1)
    with pytest.raises(ValueError, match="Pendulum-v1") as error:
        saved.load(environment)
    assert "CartPole-v1" not in str(error.value)


def test_weights_that_do_not_fit_another_environment_name_both(copied):
    environment = saved_policy.find(
        _given(env="MountainCar-v0"), str(copied)
    ).make_environment(1)
    text = (
        r"got 'MountainCar-v0', expected 'CartPole-v1', in which the run trained.*"
        r"saved float32 \[4, 100\], the recipe's float32 \[2, 100\]"
    )
    for load in (
        lambda: saved_policy.find(_given(env="MountainCar-v0"), str(copied)).load(
            environment
        ),
        lambda: learning.load_best(copied, "MountainCar-v0"),
    ):
        with pytest.raises(ValueError, match=text) as error:
            load()
        assert "from a copy" not in str(error.value)


def test_weights_of_another_policy_are_told_in_one_line(copied):
    config = copied / "config.json"
    config.write_text(config.read_text().replace("100,\n    100", "100,\n    50"))
    saved = saved_policy.find(_given(), str(copied))
    message = r"^--policy: path: .*saved float32 \[100, 100\], the recipe's .*100, 50"
    with pytest.raises(ValueError, match=message) as error:
        saved.load(saved.make_environment(1))
    assert "\n" not in str(error.value)


def test_a_graph_runs_only_if_the_user_trusts_it(copied):
    config = copied / "config.json"
    config.write_text(config.read_text().replace('parts": ""', 'parts": "agent=Own"'))
    message = r"own, agent=Own, .*policy/saved_model\.pb would run, .*give --trust"
    with pytest.raises(ValueError, match=message):
        saved_policy.find(_given(), str(copied))
    saved = saved_policy.find(_given(trust=True), str(copied))
    assert hasattr(saved.load(saved.make_environment(1)), "get_train_step")


def test_a_module_that_a_configuration_names_runs_only_if_the_user_trusts_it(
    copied, tmp_path, monkeypatch
):
    (tmp_path / "strangers.py").write_text("import os\nos.mkdir('was_here')\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    config = copied / "config.json"
    config.write_text(config.read_text().replace('"Cart', '"strangers:Cart'))
    where = re.escape(str(config))
    message = f"^{where}: .*run the module 'strangers'; .*, or give "
    with pytest.raises(ValueError, match=message + "--trust"):
        saved_policy.find(_given(), str(copied))
    with pytest.raises(ValueError, match=message + "trust=True"):
        tfrl.load(copied)
    assert not (tmp_path / "was_here").exists()
    assert tfrl.load(copied, "CartPole-v1").world.name == "CartPole-v1"
    saved_policy.find(_given(trust=True), str(copied))
    assert (tmp_path / "was_here").exists()
