"""Scripts written for TF-Agents run after renaming the package.

They say `tf_agents`, run as they are on TF-Agents 0.19, and use its names and arguments
only; the test renames the packages as `docs/from_tf_agents.md` says.
"""

import pathlib

import pytest

SCRIPTS = sorted((pathlib.Path(__file__).parent / "scripts").glob("*.py"))


# Each call of these is in the other scripts, or has tests of its own.
SLOW = {"checkpointing", "ppo_learner", "reinforce", "sac_learner"}


@pytest.mark.parametrize(
    "script",
    [
        pytest.param(
            script, marks=[pytest.mark.slow] * (script.stem in SLOW), id=script.stem
        )
        for script in SCRIPTS
    ],
)
def test_a_script_runs_after_renaming_the_package(script):
    source = script.read_text()
    assert "tfrl" not in source
    renamed = source.replace("tf_agents", "tfrl").replace(
        "\nimport reverb\n", "\nfrom tfrl import replay_service as reverb\n"
    )
    exec(compile(renamed, str(script), "exec"), {"__name__": "__main__"})
