"""What `--help` and wrong flags of the examples show, without TensorFlow."""

import importlib.util
import json
import os
import re
import subprocess
import sys
import types

import pytest

from tests.forks import REPOSITORY, Forks
from tfrl.algorithms import registry
from tfrl.command import cli
from tfrl.environments import extras
from tfrl.train.runs import run_result

CONFIGS = {
    "play": None,
    "sweep_dqn": "sweep_dqn",
    "train_dqn": "dqn",
    "train_dqn_service": "dqn",
    "train_reinforce": "reinforce",
    "train_reinforce_service": "reinforce",
}
NEEDS_DM_CONTROL = pytest.mark.skipif(
    not extras.is_installed("dm_control"), reason="needs tfrl[dm-control]"
)
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
    # What every example imports.
    forks = Forks(folder, "import ml_collections\nfrom tfrl.command import cli\n")

    def run_example(module, *arguments, imports="False False"):
        code, printed, errors = forks.run(str(script), module, *arguments)
        output, _, imported = printed.rstrip().rpartition("\n")
        assert imported == imports
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
        expected |= {"--num_iterations", "--config", "--preset"}
    if module.startswith("train_"):
        expected |= {"--replay", "--overwrite", "--num_environment_steps"}
        expected |= {"--film", "--evaluate_untrained", "--initial_run", "--quiet"}
        expected.add("--report")
        expected |= {"--continue", "--track"}
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
from examples import train_dqn
from tfrl.command import cli
flags.FLAGS(sys.argv)
cli.read_config(train_dqn.CONFIG)
print(os.environ["TF_ENABLE_ONEDNN_OPTS"])
"""


@pytest.mark.parametrize(
    ("config", "given", "expected"),
    [
        ("dqn_atari", {}, "1"),
        pytest.param("dqn", {}, "0", marks=pytest.mark.slow),
        pytest.param(
            "dqn_atari", {"TF_ENABLE_ONEDNN_OPTS": "0"}, "0", marks=pytest.mark.slow
        ),
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


READ_RATES = """
import sys
from absl import flags
from examples import train_dqn
from tfrl.command import cli
flags.FLAGS(sys.argv)
config = cli.read_config(train_dqn.CONFIG)
print(config.learning_rate, config.final_learning_rate)
"""


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        pytest.param(
            ["--env=Acrobot-v1", "--config.learning_rate=1e-3"],
            (1e-3, 1e-3),
            marks=pytest.mark.slow,
        ),
        (["--config=configs/dqn.py", "--config.learning_rate=1e-3"], (1e-3, 5e-6)),
        pytest.param(
            ["--config.learning_rate=1e-3", "--config.final_learning_rate=1e-4"],
            (1e-3, 1e-4),
            marks=pytest.mark.slow,
        ),
    ],
)
def test_a_rate_changes_the_last_one_by_the_same_factor(words, expected):
    result = subprocess.run(
        [sys.executable, "-c", READ_RATES, *words],
        cwd=REPOSITORY,
        capture_output=True,
        check=True,
        text=True,
    )
    assert tuple(map(float, result.stdout.split())) == pytest.approx(expected)


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


def test_help_begins_with_the_scripts_docstring_and_explains_each_field(run):
    _, output, _ = run("train_dqn", "-h")
    assert output.startswith("Trains DQN, C51, QR-DQN, IQN, Rainbow or R2D2 on an")
    rows = output.partition("\nFields of the settings, dqn for its usual env")[2]
    fields = re.findall(r"^  --config\.(\w+)=.*?  +\S", rows, re.MULTILINE)
    assert fields == ["env", "agent", *registry.find("dqn").Settings.texts()]


def test_help_shows_the_settings_of_the_agent_and_the_environment(run):
    _, output, errors = run("train_dqn", "-h", "--config.agent=c51", "--env=Acrobot-v1")
    rows = output.partition("\nFields of the settings, c51 for Acrobot-v1:\n")[2]
    assert re.search(r"--config.env=Acrobot-v1 +Gymnasium environment\.", rows)
    assert re.search(r"--config.num_atoms=101 +Atoms of the distribution\.", rows)
    assert "--replay=" in output or "--replay " in output
    assert errors == ""


SAY_PROCESSES = """
import sys
from absl import flags
from examples import train_distributed
from tfrl.command import cli
def leave():
    print("tensorflow" in sys.modules)
    sys.exit()
cli.quiet.quieten_tensorflow = leave
sys.argv[1:] = ["--num_actors=3", "--num_shards=2", "--evaluator"]
cli.start(train_distributed.main)
"""


def test_a_distributed_run_says_what_it_starts_before_tensorflow_is_imported(tmp_path):
    result = subprocess.run(
        [sys.executable, "-c", SAY_PROCESSES],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        capture_output=True,
        check=True,
        text=True,
    )
    assert result.stdout == "False\n"
    assert result.stderr == (
        "Starting 3 actors, 2 replay servers, 1 learner, 1 evaluator: processes on "
        "this host.\n"
    )


def test_warnings_are_lines_without_the_source(tmp_path):
    script = tmp_path / "warns.py"
    script.write_text(
        "import gymnasium, warnings\n"
        "from tfrl.command import cli\n"
        "def main():\n"
        "    warnings.warn('a:\\nb')\n"
        "    gymnasium.logger.warn('coloured')\n"
        "cli.start(main)\n"
    )
    result = subprocess.run(
        [sys.executable, str(script)],
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        capture_output=True,
        check=True,
        text=True,
    )
    assert result.stderr == "warning: a: b\nwarning: coloured\n"


def test_settings_made_for_the_environment_are_named(run):
    _, _, errors = run("train_sac", "--env=FetchReach-v4", "--seed=-1")
    assert errors.startswith(
        "TQC on FetchReach-v4: settings 'sac_fetch_reach' (rl-zoo3, without "
        "normalized rewards).\n"
    )


def test_quiet_names_no_settings(run):
    _, _, errors = run("train_sac", "--env=FetchReach-v4", "--quiet", "--seed=-1")
    assert errors.startswith("error: seed: ")


def test_a_row_of_settings_is_taken_by_its_name(run):
    _, output, _ = run("train_dqn", "-h", "--preset=dqn_prioritized")
    assert "--config.replay=prioritized " in output
    _, _, errors = run("train_dqn", "--preset=dqn_prio")
    assert errors.startswith("error: preset: got 'dqn_prio', expected one of ")


def test_a_file_of_json_holds_a_row_of_settings(run, tmp_path):
    row = {
        "name": "tuned",
        "algorithm": "dqn",
        "environment": "Acrobot-v1",
        "source": "here",
        "settings": {"gamma": 0.5, "batch_size": 7},
    }
    path = tmp_path / "best.json"
    path.write_text(json.dumps(row))
    _, output, _ = run("train_dqn", f"--config={path}", "--help")
    for shown in ("gamma=0.5", "batch_size=7", "env=Acrobot-v1", "learning_rate=0.002"):
        assert f"--config.{shown} " in output
    assert f"Fields of the settings, {path}:" in output
    _, _, errors = run("train_dqn", f"--config={tmp_path / 'none.json'}")
    assert errors.startswith(f"error: --config: got '{tmp_path / 'none.json'}', where")


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
    code, output, _ = run("train_dqn", "--help", f"--config={mine}", "--seed=x")
    assert code == 0
    listed = output.partition(f"\nFields of the settings, {mine}:\n")[2]
    assert re.search(r"  --config.gamma=0.5  +Half.\n", listed)
    assert re.search(r"  --config.tau=a # b  +A new one\.$", listed)
    assert re.search(r"  --config.batch_size=64  +Frames in each update.\n", listed)


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
        *(
            ("train_ppo", f"--{theirs}=1", f"unknown flag; did you mean --{ours}?")
            for theirs, ours in (
                ("total_timesteps", "num_environment_steps"),
                ("total-timesteps", "num_environment_steps"),
                ("learning-rate", "config.learning_rate"),
                ("learning_rate", "config.learning_rate"),
                ("enviroment", "env"),
                ("env-id", "env"),
                ("gym-id", "env"),
                ("num-envs", "config.num_envs"),
                ("n-steps", "config.collect_steps_per_iteration"),
                ("gae-lambda", "config.gae_lambda"),
                ("config.lr", "config.learning_rate"),
            )
        ),
        ("train_pqn", "--gae-lambda=1", "did you mean --config.lambda_value?"),
        ("play", "--total_timesteps=1", "error: --total_timesteps: unknown flag\n"),
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
        ("train_pqn", "--env=ALE/Pongg-v5", "got 'ALE/Pongg-v5', expected a name that"),
        ("train_dqn", "--env=Pongg-v4", "got 'Pongg-v4', expected a name that is"),
        ("sweep_dqn", "--num_seeds=0", "--num_seeds: expected a positive integer"),
        ("train_dqn", "--config=nowhere.py", "got 'nowhere.py', where there is no"),
        ("train_dqn", "--config=configs/pp.py", "did you mean configs/ppo.py?"),
        ("train_dqn", "--env=CartPol-v1", "did you mean CartPole-v1 or "),
        ("train_dqn", "--env=nowhere:Foo-v0", "No module named 'nowhere'"),
        ("train_dqn", "--env=Pendulum-v1", "whose actions are continuous, but DQN"),
        ("train_sac", "--env=FrozenLake-v1", "whose actions are discrete, but SAC"),
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


@NEEDS_DM_CONTROL
@pytest.mark.parametrize(
    ("task", "message"),
    [
        (
            "cartpole-balanse",
            "task_name: got ('cartpole', 'balanse'), expected a task of the suite; ",
        ),
        ("cartpol-balance", "domain_name: got ('cartpol'"),
    ],
)
def test_a_wrong_task_is_told_after_tensorflow_is_imported(run, task, message):
    # TensorFlow comes before dm_control, which knows the tasks.
    code, output, errors = run(
        "train_sac", f"--env=dm_control/{task}", imports="True True"
    )
    assert (code, output) == (2, "")
    assert errors.startswith(f"error: {message}")


@pytest.mark.parametrize(
    ("module", "flag"),
    [
        ("train_offline", "num_environment_steps"),
        ("train_distributed", "num_environment_steps"),
        ("train_distributed", "initial_run"),
    ],
)
def test_help_lists_no_flag_that_the_command_refuses(run, module, flag):
    _, output, _ = run(module, "--help")
    assert f"--{flag}" not in output
    assert "--num_iterations" in output
    _, _, errors = run(module, f"--{flag}=7")
    assert errors.startswith(f"error: --{flag}: unknown flag")
    if flag == "num_environment_steps":
        assert "did you mean --num_iterations?" in errors


def test_a_file_that_names_no_agent_is_of_the_scripts_own(run, tmp_path):
    """As the files of earlier versions that trained one agent."""
    mine = tmp_path / "mine.py"
    mine.write_text(
        "from ml_collections import ConfigDict\n"
        "def get_config():\n"
        "    return ConfigDict({'env': 'CartPole-v1', 'lambda_value': 2.0})\n"
    )
    code, _, errors = run("train_pqn", f"--config={mine}")
    assert code == 2
    assert errors.startswith("error: lambda_value: expected a number in [0, 1], got 2")


def test_a_length_in_steps_and_no_environment_is_about_the_environments(run):
    _, _, errors = run("train_dqn", "--num_environment_steps=9", "--config.num_envs=0")
    assert errors.startswith("error: num_envs: expected an integer in [1, ")


def test_an_unknown_field_of_a_given_file_gets_that_files_near_field(run):
    _, _, errors = run(
        "train_dqn", "--config=configs/reinforce.py", "--config.use_base=1"
    )
    assert "did you mean --config.use_baseline?" in errors


def test_the_end_of_a_run_without_updates_is_printed(tmp_path, capsys):
    directory = types.SimpleNamespace(path=tmp_path)
    untrained = run_result.RunResult(0, True, None, None, 9.25, 0.0)
    cli.report(untrained, directory)
    assert capsys.readouterr().out.startswith(
        "Finished 0 iterations. Mean return of the last evaluation: 9.2.\n"
    )
    trained = run_result.RunResult(
        1_000, True, None, 30.0, 20.0, 10.0, environment_steps_per_second=50.0
    )
    cli.report(trained, directory)
    assert capsys.readouterr().out.startswith(
        "Finished 1,000 iterations, 50 steps a second. Mean return of the last "
        "evaluation: 20.0, of the best: 30.0.\n"
    )
