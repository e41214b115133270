"""The examples in the packages' docstrings and on the pages of `docs/` run."""

import ast
import doctest
import importlib
import os
import pathlib
import pkgutil
import re
import runpy
import subprocess
import sys

import numpy as np
import pytest

import tfrl

REPOSITORY = pathlib.Path(__file__).resolve().parents[1]
MODULES = pkgutil.walk_packages(tfrl.__path__, "tfrl.")
PACKAGES = ["tfrl", *sorted(module.name for module in MODULES if module.ispkg)]
PAGES = sorted((REPOSITORY / "docs").glob("*.md"))
# Returns on CartPole at the ends of pages that train; an untrained agent gets 10 to 25.
RETURNS = {
    "actor_learner": ["returns['AverageReturn']", "result.last_return"],
    "agents": ["average_return.result()", "info.average_return"],
    "callbacks": ["best", "memory.data[-1]['evaluation_return']"],
    "evaluation": ["results['AverageReturn']"],
    "from_stable_baselines3": ["info.average_return"],
    "from_tf_agents": ["average_return.result()"],
    "gpu": ["info.average_return"],
    "on_policy": ["info.average_return"],
    "own_loop": ["evaluation.mean"],
    "runs": ["result.best_return"],
    "speed": ["info.average_return", "compiled_info.average_return"],
}
# Sections that the fast test of a page leaves out; the package's tests show the same.
LEFT_OUT = {
    "actor_learner": ["## Several replicas"],
    "agents": ["## R2D2", "### Normalised observations and rewards"],
    "callbacks": ["### Early stopping"],
    "comparing": ["## From Python"],
    "from_stable_baselines3": [
        "## Save, load and fine-tune",
        "## VecNormalize",
        "## Recurrent PPO",
    ],
    "speed": ["## Many runs at once"],
    "tuning": ["## In Python"],
}
# What the fast test of a page replaces, so that its programs take seconds.
SHORTER = {
    "algorithms": {
        "seed=0).learn(50_000)": "seed=0, jit_compile=False).learn(2_000)",
        "num_epochs=2, seed=0)": "num_epochs=1, seed=0, jit_compile=False)",
        "learn(20_000, callbacks": "learn(1_000, callbacks",
    },
    "callbacks": {"uniform(-4, -2, size=2)": "uniform(-4, -2, size=1)"},
    "from_acme": {"run(num_episodes=40)": "run(num_episodes=3)"},
    "from_stable_baselines3": {
        'ppo = tfrl.PPO("CartPole-v1", ': (
            'ppo = tfrl.PPO("CartPole-v1", jit_compile=False, num_epochs=1, '
        ),
        "ppo.learn(100_000)": "ppo.learn(1_000)",
        "eval_interval=7)": "eval_interval=1, jit_compile=False, num_epochs=1)",
        "watched.learn(100_000, ": "watched.learn(1, ",
        "Rover, num_envs=4)": "Rover, num_envs=4, jit_compile=False, num_epochs=1)",
        "rover.learn(5_000)": "rover.learn(1)",
        '"Pendulum-v1", seed=0,': '"Pendulum-v1", jit_compile=False, seed=0,',
        "sac.learn(8_000)": "sac.learn(110)",
    },
    "offline": {
        '"Pendulum-v1", seed=0': '"Pendulum-v1", jit_compile=False, seed=0',
        "learn(5_000)": "learn(210)",
        "learn(10_000)": "learn(20)",
        "learn(1_000)": "learn(20)",
    },
    "runs": {
        "seed=0, logdir": "seed=0, jit_compile=False, logdir",
        "learn(10_000)": "learn(1_100)",
        "5_000": "1_000",
    },
    "tuning": {
        "eval_interval=500": "eval_interval=10, jit_compile=False",
        "learn(2_000": "learn(120",
        "n_trials=3": "n_trials=1",
    },
}
# What the programs of such a page reach as they are printed, beside `RETURNS`.
LONG_RETURNS = {
    "algorithms": {"result.mean": 400},
    "agents": {"normalized_info.average_return": 80},
    # Untrained, it gets about -1,300; five seeds, with the noise, got -290 to -170.
    "from_acme": {
        "[env_loop.run_episode()['episode_return'] for _ in range(10)]": -400,
    },
    # Five seeds of another half-trained SAC got -234 to -184.
    "offline": {"iql.evaluate(10).mean": -700},
    "from_stable_baselines3": {
        "info.average_return": 80,
        "sac_return": -250,
        "ppo.evaluate(10).mean": 400,
        "normalized_return": 400,
        "recurrent_return": 300,
        "tuned_return": 400,
    },
    "speed": {"result.returns": 80},
    # Other trials come out by the processor: this says only that one has learned.
    "tuning": {"found.study.best_value": 50, "study.best_value": -1500},
}


@pytest.mark.parametrize("name", PACKAGES)
def test_the_packages_docstring_shows_its_use(name):
    package = importlib.import_module(name)
    test = doctest.DocTestParser().get_doctest(
        package.__doc__, {}, package.__name__, package.__file__, 0
    )
    assert test.examples, f"{name} shows no use"
    output: list[str] = []
    doctest.DocTestRunner().run(test, out=output.append)
    assert not output, "".join(output)


def without(text, heading):
    """Empties a section and those below it; all others keep their line numbers."""
    kept, is_left_out, is_code = [], False, False
    for line in text.splitlines():
        is_code ^= line.startswith("```")
        if not is_code and re.match(rf"#{{1,{heading.index(' ')}}} ", line):
            is_left_out = line == heading
        kept.append("" if is_left_out else line)
    assert kept != text.splitlines(), heading
    return "\n".join(kept) + "\n"


def run_code(page, text):
    """Runs the code of a page as one script, and returns its names."""
    blocks = list(re.finditer(r"```python\n(.*?)```", text, re.DOTALL))
    assert blocks
    names = {"__name__": page.stem}
    for block in blocks:
        # With the page's line numbers, by which AutoGraph finds a function's source.
        before = "\n" * text.count("\n", 0, block.start(1))
        exec(compile(before + block[1], str(page), "exec"), names)
    return names


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_pages_code_runs_and_learns(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = page.read_text()
    for printed, shorter in SHORTER.get(page.stem, {}).items():
        assert printed in text
        text = text.replace(printed, shorter)
    for heading in LEFT_OUT.get(page.stem, []):
        text = without(text, heading)
    names = run_code(page, text)
    for expression in RETURNS.get(page.stem, []):
        assert np.mean(eval(expression, names)) >= 80, expression


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", sorted({*SHORTER, *LEFT_OUT}))
def test_the_pages_long_programs_learn_as_they_are_printed(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = REPOSITORY / "docs" / f"{name}.md"
    names = run_code(page, page.read_text())
    returns = dict.fromkeys(RETURNS.get(name, []), 80) | LONG_RETURNS.get(name, {})
    for expression, least in returns.items():
        assert np.mean(eval(expression, names)) >= least, expression


def test_the_page_on_tf_agents_lists_every_refused_override():
    page = (REPOSITORY / "docs" / "from_tf_agents.md").read_text()
    classes = (
        tfrl.agents.TFAgent,
        tfrl.agents.DqnAgent,
        tfrl.agents.PPOAgent,
        tfrl.policies.tf_policy.TFPolicy,
        tfrl.policies.py_policy.PyPolicy,
        tfrl.environments.py_environment.PyEnvironment,
    )
    for owner in classes:
        for name in vars(owner)["_refused_overrides"]:
            assert f"`{name}`" in page, (owner, name)


def test_the_index_of_the_api_is_that_of_the_package():
    index = runpy.run_path(str(REPOSITORY / "docs" / "api_index.py"))["index"]()
    page = (REPOSITORY / "docs" / "api.md").read_text()
    assert page == index, "run python docs/api_index.py"
    for name in ("default_preprocessing", "OffPolicyLoop", "`suite_gym`: `load`"):
        assert name in page


def test_the_stub_of_the_algorithms_has_the_settings_as_keywords():
    script = runpy.run_path(str(REPOSITORY / "docs" / "algorithms_stub.py"))
    stub = (REPOSITORY / "tfrl" / "algorithms" / "__init__.pyi").read_text()
    assert stub == script["stub"](), "run python docs/algorithms_stub.py"
    (ppo,) = [
        node
        for node in ast.parse(stub).body
        if isinstance(node, ast.ClassDef) and node.name == "PPO"
    ]
    (constructor,) = [x for x in ppo.body if isinstance(x, ast.FunctionDef)]
    keywords = [argument.arg for argument in constructor.args.kwonlyargs]
    settings = list(tfrl.PPO.Settings.texts())
    assert keywords[-len(settings) :] == settings
    assert constructor.args.kwarg is None


MISTAKES = """
import tfrl

tfrl.PPO("CartPole-v1", clip_range=0.1, num_envs=4, fc_layer_params=[8])
tfrl.DQN("CartPole-v1", replay_buffer=None).learn(10).settings.batch_size.real
tfrl.PPO("CartPole-v1", clip_ranges=0.1)
tfrl.PPO("CartPole-v1", num_envs="four")
tfrl.SAC("Pendulum-v1").settings.clip_range
"""


@pytest.mark.slow
def test_mypy_finds_a_wrong_setting(tmp_path):
    pytest.importorskip("mypy")
    (tmp_path / "user.py").write_text(MISTAKES)
    result = subprocess.run(
        [sys.executable, "-m", "mypy", "user.py", "--follow-imports=silent"],
        cwd=tmp_path,
        env={**os.environ, "MYPYPATH": str(REPOSITORY)},
        capture_output=True,
        text=True,
    )
    found = [line for line in result.stdout.splitlines() if ": error:" in line]
    assert [re.sub(r": error: .*?\"(\w+)\".*", r" \1", line) for line in found] == [
        "user.py:6 clip_ranges",
        "user.py:7 num_envs",
        "user.py:8 SACSettings",
    ]


def anchors(page):
    """The anchors that a page's headings get."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {
        re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        for heading in headings
    }


def test_links_between_pages_lead_to_a_file_and_a_heading():
    broken = []
    for page in (*PAGES, *REPOSITORY.glob("*.md")):
        text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
        for link in re.findall(r"\]\(([^)\s]+)\)", text):
            if link.startswith("http"):
                continue
            target, _, anchor = link.partition("#")
            path = (page.parent / target) if target else page
            if not path.exists() or (anchor and anchor not in anchors(path)):
                broken.append(f"{page.name}: {link}")
    assert broken == []
