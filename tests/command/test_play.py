"""What `tfrl play` prints, and its film."""

import types

import imageio.v2 as imageio
import numpy as np
import pytest

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
    monkeypatch.setattr(play.saved_policy, "find", lambda _: saved)
    video = tmp_path / "play.mp4"
    with pytest.warns(RuntimeWarning, match="ended at its limit of 5 steps"):
        play._run(
            types.SimpleNamespace(
                num_episodes=2, max_steps=5, video=str(video), video_episodes=1
            )
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
    tmp_path, monkeypatch, config, lack
):
    (tmp_path / "policy").mkdir()
    (tmp_path / "policy" / "saved_model.pb").touch()
    if config:
        (tmp_path / "config.json").write_text(config)
    given = types.SimpleNamespace(policy=None, logdir=str(tmp_path), env=None)
    monkeypatch.setattr(saved_policy.flags, "FLAGS", given)
    with pytest.raises(ValueError, match=rf"config\.json {lack}; give --env=NAME"):
        saved_policy.find()
