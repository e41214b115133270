"""The configurations of runs in folders, as commands read them."""

import json
import warnings

import pytest

import tfrl
from tfrl import train
from tfrl.algorithms import presets, registry, run_folders


def write(folder, config):
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config))
    return folder


def test_every_preset_has_values_of_the_types_of_its_settings(tmp_path):
    for name in registry.CLASSES:
        for row in [*presets.of_kinds(name).values(), None]:
            values = row.settings if row else {}
            fields = registry.find(name)(settings=values).recipe().to_json()
            folder = write(tmp_path, fields)
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                assert run_folders.read(folder) == json.loads(json.dumps(fields))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"num_iterations": "gone"}, "num_iterations: expected the length of the run"),
        ({"gamma": "high"}, "gamma: expected a number"),
        ({"algorithm": ["dqn"]}, "algorithm: got ''"),
        ({"batch_size": None}, "batch_size: expected an integer"),
    ],
)
def test_a_run_with_wrong_settings_is_named_when_it_is_loaded(
    tmp_path, changes, message
):
    config = tfrl.DQN().recipe().to_json()
    fields = {k: x for k, x in {**config, **changes}.items() if x != "gone"}
    folder = write(tmp_path / "run", fields)
    with pytest.raises(train.RunDirectoryError) as error:
        tfrl.load(folder)
    assert str(error.value).startswith(f"{folder / 'config.json'}: {message}")


def make_network(observation_spec, action_spec):
    raise NotImplementedError("It is not made before the parts are compared.")


@pytest.mark.parametrize(
    ("begun", "given", "message"),
    [
        (make_network, None, "has parts .* own, network=make_network, got none; give"),
        (make_network, len, "own, network=make_network, got network=len; give the"),
        (None, make_network, "has no parts .*, got network=make_network; leave them"),
    ],
)
def test_a_run_is_loaded_with_its_own_parts_alone(tmp_path, begun, given, message):
    tfrl.DQN("CartPole-v1", network=begun, logdir=tmp_path).open_folder()
    with pytest.raises(train.RunDirectoryError, match=message):
        tfrl.load(tmp_path, network=given)


def test_a_run_without_checkpoints_is_not_loaded_and_not_to_be_overwritten(tmp_path):
    tfrl.DQN("CartPole-v1", logdir=tmp_path).open_folder()
    (tmp_path / "policy").mkdir()
    message = "holds a policy but no checkpoint, .*evaluate, play and export use its"
    with pytest.raises(train.RunDirectoryError, match=message) as error:
        tfrl.load(tmp_path)
    assert "overwrite" not in str(error.value)


def test_a_run_resumes_from_another_working_directory(tmp_path, monkeypatch):
    def open_folder(initial_run):
        made = tfrl.DQN("CartPole-v1", initial_run=initial_run, logdir=tmp_path / "run")
        made.open_folder()

    (tmp_path / "first").mkdir()
    monkeypatch.chdir(tmp_path)
    open_folder("first")
    config = tmp_path / "run" / "config.json"
    fields = json.loads(config.read_text())
    assert fields["initial_run"] == str(tmp_path / "first")
    monkeypatch.chdir(tmp_path / "first")
    open_folder("../first")
    with pytest.raises(train.RunDirectoryError, match=r"initial_run: was .*first', is"):
        open_folder("../other")


@pytest.mark.parametrize("name", ["dqn", "ppo", "iql", "lin_ucb"])
@pytest.mark.parametrize("program", [{}, {"program": "sweep", "swept": ["seed"]}])
def test_a_run_of_an_earlier_version_lacks_settings_and_goes_on(
    tmp_path, name, program
):
    kind = registry.find(name)
    first = {"algorithm": name, "env": kind.environment_name, **program}
    settings = {key: each.default for key, each in kind.setting_fields().items()}
    run_folders.open_fields(tmp_path, first)
    run_folders.open_fields(tmp_path, {**first, **settings})
    changed = {**first, **settings, "log_interval": settings["log_interval"] + 1}
    with pytest.raises(train.RunDirectoryError, match="log_interval: was"):
        run_folders.open_fields(tmp_path, changed)
