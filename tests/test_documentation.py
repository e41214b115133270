"""The examples in the packages' docstrings and on the pages of `docs/` run.

The inputs of the site are checked, too; Sphinx makes it by a command of its own.
"""

import doctest
import importlib
import itertools
import json
import os
import pathlib
import pkgutil
import re
import subprocess
import sys
import types

import gymnasium
import numpy as np
import pytest

import tfrl
from tests import listings
from tfrl.algorithms import registry

REPOSITORY = pathlib.Path(__file__).resolve().parents[1]
MODULES = pkgutil.walk_packages(tfrl.__path__, "tfrl.")
PACKAGES = ["tfrl", *sorted(module.name for module in MODULES if module.ispkg)]
DOCS = REPOSITORY / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
WITH_PROGRAMS = [page for page in PAGES if "```python\n" in page.read_text()]
SMALL_PPO = (
    '"CartPole-v1", seed=0, num_envs=2, collect_steps_per_iteration=64, '
    "minibatch_size=64, jit_compile=False"
)
# What the programs of a page reach. On CartPole random actions get about 22.
LEARNED = {
    "actor_learner": {"returns['AverageReturn']": 80, "result.last_return": 80},
    "agents": {
        "info.average_return": 80,
        "normalized_info.average_return": 80,
    },
    "classes": {"result.mean": 400},
    "callbacks": {"best": 80, "memory.data[-1]['evaluation_return']": 80},
    "evaluation": {"results['AverageReturn']": 80},
    # Untrained, it gets about -1,300; five seeds, with the noise, got -290 to -170.
    "from_acme": {
        "[env_loop.run_episode()['episode_return'] for _ in range(10)]": -400,
    },
    "from_cleanrl": {"cleanrl_return": 80},
    "from_rllib": {"rllib_return": 80},
    "from_stable_baselines3": {
        "info.average_return": 80,
        "sac_return": -250,
        "ppo.evaluate(10).mean": 400,
        "normalized_return": 400,
        "recurrent_return": 300,
        "tuned_return": 400,
    },
    "from_tf_agents": {"average_return.result()": 80},
    "goals": {"flipped": -6},  # About half of ten bits are wrong; a failure has -10.
    "gpu": {"info.average_return": 80},
    "images": {"lamp_return": 8},
    "jax_environments": {"ppo.evaluate(20).mean": 0},  # Of at most about 0.48.
    # Five seeds of another half-trained SAC got -234 to -184.
    "offline": {"iql.evaluate(10).mean": -700},
    "on_policy": {"info.average_return": 80},
    "own_loop": {"evaluation.mean": 80},
    "ppo": {"average_return.result()": 80},
    "runs": {"result.best_return": 80},
    "speed": {
        "info.average_return": 80,
        "compiled_info.average_return": 80,
        "result.returns": 80,
    },
    # Other trials come out by the processor: this says only that one has learned.
    "start": {"dqn.evaluate(10).mean": 200, "total": 200},
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


def name_of(page):
    """A page's path in `docs/`, without its suffix."""
    return page.relative_to(DOCS).with_suffix("").as_posix()


def code_of(page, number=None):
    """The code of a page's first listings as one script, each line at its number there.

    By the numbers AutoGraph finds a function's source.
    """
    text = page.read_text()
    blocks = list(re.finditer(r"```python\n(.*?)```", text, re.DOTALL))[:number]
    lines = [""] * (text.count("\n") + 1)
    for block in blocks:
        start = text.count("\n", 0, block.start(1))
        code = block[1].splitlines()
        lines[start : start + len(code)] = code
    return "\n".join(lines)


@pytest.mark.parametrize("page", WITH_PROGRAMS, ids=name_of)
def test_the_pages_code_has_names_and_arguments_that_exist(page):
    # One page puts a module of its own in the place of this one.
    assert listings.faults(code_of(page), page, without=["jax", "wandb"]) == []


def test_the_first_listings_of_the_classes_run(tmp_path, monkeypatch):
    """For fewer steps; `test_repository.py` runs those of README and of `runs`."""
    monkeypatch.chdir(tmp_path)
    page = DOCS / "classes.md"
    code = code_of(page, 4)
    for old, new in {"50_000": "300", '"CartPole-v1", seed=0': SMALL_PPO}.items():
        assert old in code
        code = code.replace(old, new)
    exec(compile(code, str(page), "exec"), {"__name__": "classes"})


def test_the_first_program_is_the_same_on_every_page():
    pages = (REPOSITORY / "README.md", *(DOCS / f"{x}.md" for x in ("index", "start")))
    first = {re.search(r"```python\n(.*?)```", x.read_text(), re.S)[1] for x in pages}
    assert len(first) == 1


def test_random_actions_get_on_cartpole_what_the_pages_say():
    environment = gymnasium.make("CartPole-v1")
    environment.action_space.seed(0)
    steps = 0
    for episode in range(500):
        environment.reset(seed=episode)
        is_over = False
        while not is_over:
            ended = environment.step(environment.action_space.sample())[2:4]
            steps, is_over = steps + 1, any(ended)
    assert 21 <= steps / 500 <= 23.5
    # Greedy actions of weights that have not learned get from 9 to 360, by the seed.
    pages = "\n".join(path.read_text() for path in (*PAGES, REPOSITORY / "README.md"))
    assert pages.count("andom actions get about 22") >= 8
    assert not re.search(r"untrained agents? gets? 10 to 25", pages, re.IGNORECASE)


def test_a_page_whose_script_is_not_installed_says_that_it_needs_the_clone():
    found = []
    for page in PAGES:
        if page.name == "examples.md":  # About the clone.
            continue
        blocks = page.read_text().split("\n\n")
        for before, block in itertools.pairwise(["", *blocks]):
            uses = re.search(r"python -m\s+examples\.", block)
            if uses and "clone" not in before + block:
                found.append(f"{name_of(page)}: {block}")
    assert found == []


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("page", WITH_PROGRAMS, ids=name_of)
def test_the_pages_programs_run_and_learn(page, tmp_path, monkeypatch):
    code = code_of(page)
    if "import jax" in code:
        pytest.importorskip("jax")
    monkeypatch.chdir(tmp_path)
    names = {"__name__": page.stem}
    exec(compile(code, str(page), "exec"), names)
    for expression, least in LEARNED.get(page.stem, {}).items():
        assert np.mean(eval(expression, names)) >= least, expression


def test_the_page_on_tf_agents_lists_every_refused_override():
    page = (DOCS / "from_tf_agents.md").read_text()
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


@pytest.fixture(scope="module")
def site():
    """The modules that turn the repository's pages into the site's."""
    names = ("api_index", "api_pages", "docstrings", "site_pages")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(DOCS / "tools"))
        yield types.SimpleNamespace(**{x: importlib.import_module(x) for x in names})
        for name in names:
            patch.delitem(sys.modules, name)


def test_the_index_of_the_api_is_that_of_the_package(site):
    page = (DOCS / "api.md").read_text()
    assert page == site.api_index.index(), "run python docs/tools/api_index.py"
    for name in ("default_preprocessing", "OffPolicyLoop", "`suite_gym`: `load`"):
        assert name in page


def test_every_page_is_in_the_list_of_one_part_of_the_site(site):
    listed = [DOCS / "index.md"]
    for index in DOCS.rglob("index.md"):
        for _, pages in site.site_pages.contents(index):
            listed += [next(index.parent.glob(f"{page}.[mi]*")) for page in pages]
    every = [*PAGES, *DOCS.rglob("*.ipynb")]
    assert sorted(listed) == sorted(every), "link to it from the list of an index.md"


def test_every_public_name_has_one_place_in_the_pages_of_the_api(site, tmp_path):
    site.api_pages.write(tmp_path)
    described = [
        f"{page.stem}.{name}"
        for page in tmp_path.glob("*.rst")
        for name in re.findall(
            r"^\.\. (?:autoclass|autofunction|py:data):: (.*)$", page.read_text(), re.M
        )
    ]
    assert len(described) == len(set(described)) > 1_000
    for stub in site.api_index.stubs():
        for source, name in site.api_index.exports(stub)[1]:
            assert site.api_pages.home(source, name) in described
    assert "tfrl.agents.dqn.DqnAgent" in described
    assert "tfrl.PPO" in described
    agents = (tmp_path / "tfrl.agents.rst").read_text()
    assert ":py:obj:`DqnAgent <tfrl.agents.dqn.DqnAgent>`" in agents
    assert "   tfrl.agents.dqn\n" in agents


@pytest.mark.parametrize(
    ("repository", "script", "folder"),
    [
        ("", "`examples/train_dqn.py`", "the files (`configs`)"),
        (
            "https://example.org/tfrl",
            "[`train_dqn`](https://example.org/tfrl/blob/main/examples/train_dqn.py)",
            "[the files](https://example.org/tfrl/tree/main/configs)",
        ),
    ],
    ids=["without an address", "with one"],
)
def test_links_to_files_lead_to_the_projects_address(site, repository, script, folder):
    page = (
        "[`train_dqn`](../examples/train_dqn.py), [the files](../configs), "
        "[a page](speed.md#x), ![a picture](pictures/flow.svg), [elsewhere](https://example.org)"
    )
    adapted = site.site_pages.adapted(page, DOCS / "runs.md", repository)
    link = "[`train_dqn`](../examples/train_dqn.py)"
    expected = page.replace(link, script).replace("[the files](../configs)", folder)
    assert adapted == expected


def test_a_notebook_has_a_link_to_colab_where_the_project_has_an_address(site):
    notebook = '{"cells": [{"cell_type": "markdown", "source": ["# A title"]}]}'
    path = DOCS / "tutorials" / "first.ipynb"
    assert site.site_pages.adapted(notebook, path, "") == notebook
    adapted = site.site_pages.adapted(notebook, path, "https://github.com/user/tfrl")
    assert json.loads(adapted)["cells"][0]["source"] == [
        "# A title",
        "\n\n[Run it in Colab](https://colab.research.google.com/github/user/tfrl/"
        "blob/main/docs/tutorials/first.ipynb)",
    ]


def test_docstrings_become_what_sphinx_reads(site):
    markdown = [
        "Returns `x` of `[B, T]`s, with `Tensor`s and lambda_.",
        "- an item",
        "",
        "    y = r + g",
        "",
        "```python",
        "f()",
        "```",
    ]
    places = {"Tensor": "tfrl.Tensor"}
    assert [x for x in site.docstrings.as_rst(markdown, places) if x] == [
        "Returns `x` of ``[B, T]``\\ s, with `Tensor <tfrl.Tensor>`\\ s and lambda\\_.",
        "- an item",
        ".. code-block:: none",
        "        y = r + g",
        ".. code-block:: python",
        "    f()",
    ]
    example = [">>> f.__name__ + g_", "'f'"]
    assert site.docstrings.as_rst([*example, "", "lambda_"], {}) == [
        *example,
        "",
        "lambda\\_",
    ]


def test_every_algorithm_has_a_row_in_the_readme():
    rows = (REPOSITORY / "README.md").read_text().splitlines()
    for name, (_, class_name) in registry.CLASSES.items():
        ends = f"| `tfrl.{class_name}` | `tfrl train {name}` |"
        assert sum(row.endswith(ends) for row in rows) == 1, name


MISTAKES = """
import tfrl

tfrl.PPO("CartPole-v1", clip_range=0.1, num_envs=4, fc_layer_params=[8])
tfrl.DQN("CartPole-v1", replay_buffer=None).learn(10).batch_size.real
tfrl.PPO("CartPole-v1", clip_ranges=0.1)
tfrl.PPO("CartPole-v1", num_envs="four")
tfrl.SAC("Pendulum-v1").clip_range
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
        "user.py:8 SAC",
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
                broken.append(f"{page.relative_to(REPOSITORY)}: {link}")
    assert broken == []
