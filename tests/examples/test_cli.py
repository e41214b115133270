"""What `--help` and wrong flags of the examples show, without TensorFlow."""

import importlib.util
import os
import re
import subprocess
import sys

import pytest

from tests.forks import REPOSITORY, Forks

CONFIGS = {
    "play": None,
    "sweep_dqn": "sweep_dqn",
    "train_dqn": "dqn",
    "train_dqn_service": "dqn",
    "train_reinforce": "reinforce",
    "train_reinforce_service": "reinforce",
}
# Runs an example and then prints whether it has imported TensorFlow.
RUN = """
import runpy, sys
module = sys.argv.pop(1)
try:
    runpy.run_module(f"examples.{module}", run_name="__main__", alter_sys=True)
finally:
    print("tensorflow" in sys.modules, "keras" in sys.modules)
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Gives the status, output and errors of an example that needs no TensorFlow."""
    folder = tmp_path_factory.mktemp("forks")
    script = folder / "script.py"
    script.write_text(RUN)
    forks = Forks(folder, "import ml_collections, numpy\n")

    def run_example(module, *arguments):
        code, printed, errors = forks.run(str(script), module, *arguments)
        output, _, imported = printed.rstrip().rpartition("\n")
        assert imported == "False False"
        return code, output, errors

    yield run_example
    forks.close()


def get_config(name):
    path = REPOSITORY / "configs" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.get_config()


@pytest.mark.parametrize("module", CONFIGS)
def test_help_lists_every_flag_and_field_with_default_and_meaning(run, module):
    code, output, errors = run(module, "--help")
    assert (code, errors) == (0, "")
    _, listed = output.split("\nFlags:\n")
    rows = dict(re.findall(r"^  (--\S+(?: [^ ]+)?)  +(\S.*)$", listed, re.MULTILINE))
    expected = {"--env", "--seed", "--logdir", "--traceback"}
    if CONFIGS[module]:
        config = get_config(CONFIGS[module])
        expected |= {f"--config.{name}={value}" for name, value in config.items()}
        expected |= {"--num_iterations", f"--config=configs/{CONFIGS[module]}.py"}
    if module.startswith("train_"):
        expected |= {"--replay", "--overwrite", "--num_environment_steps"}
        expected |= {"--film", "--evaluate_untrained", "--initial_run"}
    if module == "play":
        expected |= {"--policy", "--num_episodes=20", "--max_steps=100000"}
        expected |= {"--video", "--video_episodes=1"}
    if module == "sweep_dqn":
        expected |= {"--num_seeds=8", "--learning_rates=1e-3", "--overwrite"}
        expected.add(f"--processes={os.cpu_count()}")
    assert set(rows) == expected
    assert max(map(len, output.splitlines())) <= 88


READ = """
import os, sys
from absl import flags
from examples import cli, train_dqn
flags.FLAGS(sys.argv)
cli.read_config(train_dqn.CONFIG)
print(os.environ["TF_ENABLE_ONEDNN_OPTS"])
"""


@pytest.mark.parametrize(
    ("config", "given", "expected"),
    [
        ("dqn", {}, "0"),
        ("dqn_atari", {}, "1"),
        ("dqn_atari", {"TF_ENABLE_ONEDNN_OPTS": "0"}, "0"),
    ],
)
def test_convolutions_take_onednns_kernels(config, given, expected):
    environment = {**os.environ}
    environment.pop("TF_ENABLE_ONEDNN_OPTS", None)
    result = subprocess.run(
        [sys.executable, "-c", READ, f"--config=configs/{config}.py"],
        cwd=REPOSITORY,
        env=environment | given,
        capture_output=True,
        check=True,
        text=True,
    )
    assert result.stdout == f"{expected}\n"


@pytest.mark.parametrize("name", ["d4pg", "mpo", "sac", "td3"])
def test_settings_for_other_environments_have_the_fields_of_the_main_file(name):
    fields = set(get_config(name))
    for path in (REPOSITORY / "configs").glob(f"*{name}*.py"):
        if not path.stem.startswith("distributed"):
            assert set(get_config(path.stem)) == fields, path


def test_every_example_that_trains_has_a_precision():
    paths = [*(REPOSITORY / "configs").glob("*.py")]
    assert {get_config(path.stem).dtype for path in paths} == {"float32"}


def test_a_reader_may_close_the_pipe_before_the_help_has_ended():
    reading, writing = os.pipe()
    os.close(reading)
    try:
        process = subprocess.run(
            [sys.executable, "-m", "examples.train_dqn", "--help"],
            cwd=REPOSITORY,
            stdout=writing,
            stderr=subprocess.PIPE,
            text=True,
        )
    finally:
        os.close(writing)
    assert (process.returncode, process.stderr) == (0, "")


def test_help_begins_with_the_scripts_docstring_and_fields_are_in_the_files_order(run):
    _, output, _ = run("train_dqn", "-h")
    assert output.startswith("Trains DQN, C51, QR-DQN, IQN, Rainbow or R2D2 on an")
    fields = re.findall(r"--config\.(\w+)=", output.partition("\nFields of")[2])
    source = (REPOSITORY / "configs" / "dqn.py").read_text()
    assert fields == re.findall(r"^    config\.(\w+) = ", source, re.MULTILINE)


def test_help_shows_what_the_fields_of_a_base_file_mean(run):
    _, output, _ = run("train_dqn", "-h", "--config=configs/c51_acrobot.py")
    rows = output.partition("\nFields of configs/c51_acrobot.py:\n")[2]
    assert re.search(r"--config.env=Acrobot-v1 +Gymnasium environment\.", rows)
    assert re.search(r"--config.num_atoms=101 +Atoms of C51\.", rows)
    assert "--replay=" in output or "--replay " in output


def test_help_shows_the_fields_of_the_file_that_is_given(run, tmp_path):
    mine = tmp_path / "mine.py"
    mine.write_text(
        "import runpy\n"
        "def get_config():\n"
        "    path = 'configs/dqn.py'\n"
        "    config = runpy.run_path(path)['get_config']()\n"
        "    config.gamma = 0.5  # Half.\n"
        "    config.tau = 'a # b'  # A new one.\n"
        "    return config\n"
    )
    _, output, _ = run("train_dqn", "--help", f"--config={mine}", "--seed=x")
    listed = output.partition(f"\nFields of {mine}:\n")[2]
    assert re.match(
        r"  --config.gamma=0.5  +Half.\n  --config.tau=a # b  +A new", listed
    )
    assert "--config.batch_size=64\n" in listed


def test_help_explains_what_a_file_elsewhere_takes_from_a_configuration(run, tmp_path):
    mine = tmp_path / "mine.py"
    mine.write_text(
        "from configs import dqn\n"
        "def get_config():\n"
        "    config = dqn.get_config()\n"
        "    config.num_iterations = 5\n"
        "    return config\n"
    )
    code, output, errors = run("train_dqn", "--help", f"--config={mine}")
    assert (code, errors) == (0, "")
    assert re.search(r"--config.batch_size=64  +Frames in an update\.\n", output)
    assert "--config.num_iterations=5\n" in output  # dqn.py's comment counts its steps.


@pytest.mark.parametrize(
    ("module", "argument", "message"),
    [
        ("train_dqn", "--sed=3", "--sed: unknown flag; did you mean --seed?"),
        (
            "train_dqn",
            "--overwite",
            "--overwite: unknown flag; did you mean --overwrite?",
        ),
        ("sweep_dqn", "--num_seds=3", "did you mean --num_seeds?"),
        ("play", "--num_episode=3", "did you mean --num_episodes?"),
        ("play", "--overwrite", "--overwrite: unknown flag\n"),
        ("train_dqn", "--gamma=1", "did you mean --config.gamma?"),
        ("train_dqn", "--config.gama=1", "did you mean --config.gamma?"),
        (
            "train_reinforce",
            "--config.use_baselin",
            "did you mean --config.use_baseline?",
        ),
        (
            "train_dqn",
            "--config.num_iteration=1",
            "did you mean --config.num_iterations?",
        ),
        ("train_dqn", "--xyzzyx=1", "error: --xyzzyx: unknown flag\n"),
        ("train_dqn", "--seed=three", "--seed: expected an integer, got 'three'; wri"),
        ("train_dqn", "--config.gamma=None", "--config.gamma: expected a number, got"),
        ("train_dqn", "--film=7", "--film: expected true or false, got '7'; write --f"),
        ("train_dqn", "--config.final_epsilon=2.5", "final_epsilon: expected a number"),
        ("train_dqn_service", "--config.batch_size=50001", "at most replay_capacity"),
        (
            "train_reinforce_service",
            "--config.collect_episodes_per_iteration=2001",
            "collect_episodes_per_iteration: expected at most replay_capacity, 2000",
        ),
        ("sweep_dqn", "--num_seeds=0", "--num_seeds: expected a positive integer"),
        ("train_dqn", "--config=nowhere.py", "nowhere.py"),
        (
            "train_dqn",
            "seed=3",
            "got 'seed=3', expected flags only; write --name=value",
        ),
        ("train_dqn", "--seed=-1", "seed: expected an integer in [0, 46116860184273"),
        ("play", "--logdir=/nowhere", "saved_model.pb"),
    ],
)
def test_a_wrong_flag_is_told_at_once_with_the_near_one(run, module, argument, message):
    code, output, errors = run(module, argument)
    assert (code, output) == (2, "")
    assert message in errors
    assert errors.startswith("error: ")
    assert errors.splitlines()[-1].endswith("--help lists the flags)")


def test_a_length_in_steps_and_no_environment_is_about_the_environments(run):
    _, _, errors = run("train_dqn", "--num_environment_steps=9", "--config.num_envs=0")
    assert errors.startswith("error: num_envs: expected an integer in [1, ")


def test_an_unknown_field_of_a_given_file_gets_that_files_near_field(run):
    _, _, errors = run(
        "train_dqn", "--config=configs/reinforce.py", "--config.use_base=1"
    )
    assert "did you mean --config.use_baseline?" in errors
