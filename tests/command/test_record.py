"""Where `tfrl record` writes, and what stays there."""

import types

import pytest

import tfrl
from tfrl import environments, policies
from tfrl.algorithms import worlds
from tfrl.algorithms.recipe import Recipe
from tfrl.command import record, saved_policy
from tfrl.policies import policy_saver


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """The random policy of a run on CartPole."""
    folder = tmp_path_factory.mktemp("logs") / "dqn_CartPole-v1_3" / "policy"
    environment = environments.TFPyEnvironment(
        environments.suite_gym.load("CartPole-v1")
    )
    policy = policies.RandomTFPolicy(
        environment.time_step_spec(), environment.action_spec()
    )
    policy_saver.PolicySaver(policy).save(str(folder))
    return saved_policy.Saved(folder, "CartPole-v1", 3, {}, None)


@pytest.fixture
def run(saved, tmp_path, monkeypatch, capsys):
    def run(**given):
        flags = {"replay": False, "num_episodes": 1, "output": None, "format": "tfrl"}
        values = types.SimpleNamespace(**flags | {"overwrite": False} | given)
        record._run(values, None)
        return capsys.readouterr().out

    monkeypatch.setattr(record.saved_policy, "find", lambda *_: saved)
    monkeypatch.chdir(tmp_path)
    return run


PLACE = "logs/recordings/CartPole-v1/dqn_CartPole-v1_3.tfrecord"


def test_each_run_and_environment_has_a_file_which_only_overwrite_replaces(
    run, tmp_path
):
    assert run().startswith(f"{PLACE}: ")
    before = (tmp_path / PLACE).read_bytes()
    with pytest.raises(ValueError, match=rf"^--output: got '{PLACE}', where .* --over"):
        run(num_episodes=2)
    assert (tmp_path / PLACE).read_bytes() == before
    assert "2 whole episodes" in run(num_episodes=2, overwrite=True)
    assert (tmp_path / PLACE).read_bytes() != before
    # Nothing else is left.
    files = sorted(path.name for path in (tmp_path / PLACE).parent.iterdir())
    assert files == ["dqn_CartPole-v1_3.tfrecord", "dqn_CartPole-v1_3.tfrecord.spec"]


def test_a_minari_dataset_has_an_id_and_only_overwrite_replaces_it(
    run, tmp_path, monkeypatch
):
    minari = pytest.importorskip("minari")
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "sets"))
    name = "CartPole-v1/dqn_CartPole-v1_3-v0"
    assert run(format="minari").startswith(f"{tmp_path / 'sets' / name}: ")
    assert minari.load_dataset(name).total_episodes == 1
    with pytest.raises(
        ValueError, match=rf"^--output: got '{name}', where there is a dataset .* --ov"
    ):
        run(format="minari")
    assert "2 whole" in run(format="minari", num_episodes=2, overwrite=True)
    assert minari.load_dataset(name).total_episodes == 2
    assert list(minari.list_local_datasets()) == [name]
    # Nothing else is left.
    assert len(list((tmp_path / "sets" / "CartPole-v1").glob("[!n]*"))) == 1
    for wrong in ("data", "../data-v0", "data.tfrecord"):
        with pytest.raises(
            ValueError, match=r"^--output: got '.*', expected the id of"
        ):
            run(format="minari", output=wrong)


@pytest.mark.parametrize(
    ("given", "environment", "expected"),
    [
        (
            {"replay": True, "folder": "logs/sac_0/"},
            "Pendulum-v1",
            "logs/recordings/Pendulum-v1/sac_0_replay.tfrecord",
        ),
        (
            {"folder": "logs/sac_0"},
            "ALE/Pong-v5",
            "logs/recordings/ALE-Pong-v5/sac_0.tfrecord",
        ),
        ({"output": "here.tfrecord"}, "Pendulum-v1", "here.tfrecord"),
    ],
)
def test_the_file_is_named_for_the_run_and_its_environment(
    given, environment, expected, monkeypatch, tmp_path
):
    monkeypatch.chdir(tmp_path)
    flags = {"replay": False, "output": None, "overwrite": False, "format": "tfrl"}
    run = tmp_path / given.pop("folder", "run")
    values = types.SimpleNamespace(**flags | given)
    assert record._output(values, run, environment) == expected


def test_a_policy_for_other_observations_is_told_in_one_line(run, saved, monkeypatch):
    other = saved._replace(env="Acrobot-v1")
    monkeypatch.setattr(record.saved_policy, "find", lambda *_: other)
    expected = r"^policy: it was saved for observations float32\[4\], got .*\[6\]; .*$"
    with pytest.raises(ValueError, match=expected):
        run()


@pytest.mark.parametrize(
    "recipe",
    [
        None,
        Recipe.of(tfrl.SAC, "Pendulum-v1").changed(num_envs=2),
        # Its buffer holds the episodes of one update.
        Recipe.of(tfrl.REINFORCE, "CartPole-v1").changed(num_envs=1),
    ],
    ids=["none", "two", "reinforce"],
)
def test_a_run_without_a_replay_buffer_has_no_frames_to_copy(recipe, tmp_path):
    name = recipe.environment if recipe else "CartPole-v1"
    environment = worlds.make_environment(name, 1, 0)
    with pytest.raises(ValueError, match=r"--replay: got .*, expected one with a"):
        record._replayed(environment, tmp_path, recipe)
