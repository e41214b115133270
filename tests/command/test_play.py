"""What `tfrl play` prints, and its film."""

import os
import types

import imageio.v2 as imageio
import numpy as np
import pytest
import tensorflow as tf

from tfrl import environments, policies
from tfrl.command import play, saved_policy
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
    saved = saved_policy.Saved(tmp_path / "policy", "CartPole-v1", 3, {})
    monkeypatch.setattr(play.saved_policy, "find", lambda *_: saved)
    video = tmp_path / "play.mp4"
    with pytest.warns(RuntimeWarning, match="ended at its limit of 5 steps"):
        play._run(
            types.SimpleNamespace(
                num_episodes=2, max_steps=5, video=str(video), video_episodes=1
            ),
            None,
        )
    output = capsys.readouterr().out
    assert "episode 2: return 5.0" in output
    assert "2 episodes of CartPole-v1: mean return 5.0" in output
    assert output.endswith(f"Video: {video}\n")
    with imageio.get_reader(video) as reader:
        assert np.std(reader.get_data(0)) > 0


@pytest.mark.parametrize(
    ("config", "lack"), [(None, "is not there"), ("{}", "names none")]
)
def test_a_run_without_an_environment_is_told_whether_it_has_a_configuration(
    tmp_path, config, lack
):
    (tmp_path / "policy").mkdir()
    (tmp_path / "policy" / "saved_model.pb").touch()
    if config:
        (tmp_path / "config.json").write_text(config)
    given = types.SimpleNamespace(policy=None, env=None)
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


@pytest.mark.parametrize("is_pipe", [True, False])
def test_a_policy_without_variables_is_told_in_one_line(saved, is_pipe):
    index = saved / "variables" / "variables.index"
    index.unlink()
    if is_pipe:
        os.mkfifo(index)
    reason = "variables.index is no file" if is_pipe else ".+"
    message = rf"^--policy: '{saved}' cannot be loaded \({reason}\); restore it.*$"
    with pytest.raises(ValueError, match=message) as error:
        saved_policy.load(saved)
    assert "\n" not in str(error.value)


def test_a_damaged_fingerprint_is_of_no_use_and_not_told(saved, caplog):
    (saved / "fingerprint.pb").write_text("text")
    saved_policy.load(saved)
    assert "Fingerprint" not in caplog.text


def test_a_saved_model_that_is_no_policy_is_told(tmp_path):
    tf.saved_model.save(tf.Module(), str(tmp_path))
    with pytest.raises(ValueError, match=r"cannot be loaded \(it is no policy\); re"):
        saved_policy.load(tmp_path)
