"""The examples in the packages' docstrings and on the pages of `docs/` run."""

import doctest
import importlib
import pathlib
import pkgutil
import re
import runpy

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
    "agents": [
        "average_return.result()",
        "info.average_return",
        "normalized_info.average_return",
    ],
    "callbacks": ["best", "memory.data[-1]['evaluation_return']"],
    "evaluation": ["results['AverageReturn']"],
    "from_stable_baselines3": ["info.average_return"],
    "from_tf_agents": ["average_return.result()"],
    "gpu": ["info.average_return"],
    "on_policy": ["info.average_return"],
    "own_loop": ["evaluation.mean"],
    "runs": ["result.best_return"],
    "speed": ["info.average_return", "compiled_info.average_return", "result.returns"],
}
# What a page runs, and what its test runs in its place, since the former takes minutes.
SHORTER = {"from_acme": ("run(num_episodes=40)", "run(num_episodes=3)")}


def code_of(page):
    """The blocks of code, with the page's line numbers.

    By these AutoGraph finds a function's source.
    """
    text = page.read_text()
    return [
        "\n" * text.count("\n", 0, block.start(1)) + block[1]
        for block in re.finditer(r"```python\n(.*?)```", text, re.DOTALL)
    ]


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


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_pages_code_runs_and_learns(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = code_of(page)
    assert blocks
    names = {"__name__": page.stem}
    long, short = SHORTER.get(page.stem, ("", ""))
    assert any(long in block for block in blocks)
    for block in blocks:
        exec(compile(block.replace(long, short), str(page), "exec"), names)
    for expression in RETURNS.get(page.stem, []):
        assert np.mean(eval(expression, names)) >= 80, expression


@pytest.mark.slow
def test_acmes_quickstart_learns():
    page = REPOSITORY / "docs" / "from_acme.md"
    names = {"__name__": page.stem}
    exec(compile(code_of(page)[0], str(page), "exec"), names)
    returns = [names["env_loop"].run_episode()["episode_return"] for _ in range(10)]
    # Untrained, it gets about -1,300; five seeds, with the noise, got -290 to -170.
    assert np.mean(returns) > -400


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


def anchors(page):
    """The anchors that a page's headings get."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {
        re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        for heading in headings
    }


def test_links_between_pages_lead_to_a_file_and_a_heading():
    broken = []
    for page in (*PAGES, REPOSITORY / "README.md", REPOSITORY / "BUILD.md"):
        text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
        for link in re.findall(r"\]\(([^)\s]+)\)", text):
            if link.startswith("http"):
                continue
            target, _, anchor = link.partition("#")
            path = (page.parent / target) if target else page
            if not path.exists() or (anchor and anchor not in anchors(path)):
                broken.append(f"{page.name}: {link}")
    assert broken == []
