"""Scripts for Acme, such as its component page has, run after the page's one rename.

`acme_names.json` lists the modules and public names of Acme 0.4, without JAX's modules
that only define networks and learners.
"""

import importlib
import json
import pathlib
import re
import subprocess

import pytest

SCRIPTS = sorted((pathlib.Path(__file__).parent / "acme").glob("*.py"))
PAGE = pathlib.Path(__file__).parents[2] / "docs/from_acme.md"


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_a_script_for_acme_runs_after_the_rename(script, monkeypatch):
    monkeypatch.setenv("HOME", "")  # Restored afterwards, if the script sets it.
    monkeypatch.setenv("TFRL_ID", "")
    (rename,) = re.findall(r"^sed -i '(.*)' your_script\.py$", PAGE.read_text(), re.M)
    renamed = subprocess.run(
        ["sed", rename, str(script)], capture_output=True, text=True, check=True
    ).stdout
    source = compile(renamed, str(script), "exec")
    exec(source, {"__name__": "__main__"})


NAMES = json.loads((pathlib.Path(__file__).parent / "acme_names.json").read_text())


def why_absent(module, name=None):
    """Returns the error of an import from `tfrl.acme`; None where there is none."""
    path = ".".join(["tfrl.acme", *filter(None, [module])])
    try:
        found = importlib.import_module(path)
        if name is not None:
            getattr(found, name)
    except (ImportError, AttributeError) as error:
        return str(error)
    return None


def test_every_name_of_acme_is_here_or_says_what_to_use_instead():
    errors = []
    for module, names in NAMES.items():
        errors.append(why_absent(module))
        if errors[-1] is None:
            errors += [why_absent(module, name) for name in names]
    assert errors.count(None) >= 400
    told = [error for error in errors if error is not None]
    assert not [error for error in told if "Acme has it, tfrl does not; " not in error]


@pytest.mark.parametrize(
    "statement",
    [
        "from tfrl.acme.agents.tf.dqn import learning",
        "import tfrl.acme.agents.tf.dqn.learning",
        "from tfrl.acme.agents.jax.dqn import DQNBuilder",
        "from tfrl.acme.jax import experiments",
        "from tfrl.acme.tf.networks.recurrence import CriticDeepRNN",
    ],
)
def test_an_import_of_what_is_not_here_says_so(statement):
    with pytest.raises(ImportError, match=r"Acme has it, tfrl does not; instead: ."):
        exec(statement, {})


def test_a_slip_of_the_pen_is_the_usual_error():
    with pytest.raises(ImportError, match="cannot import name 'CritcDeepRNN'"):
        exec("from tfrl.acme.tf.networks.recurrence import CritcDeepRNN", {})
