"""What holds for the repository as a whole."""

import pathlib
import re
import subprocess
import sys

REPOSITORY = pathlib.Path(__file__).resolve().parents[1]


def test_the_readmes_listings_run():
    text = (REPOSITORY / "README.md").read_text()
    listings = "".join(re.findall(r"```python\n(.*?)```", text, re.DOTALL))
    result = subprocess.run(
        [sys.executable, "-c", listings], cwd=REPOSITORY, capture_output=True, text=True
    )
    assert result.returncode == 0, result.stderr
    assert "IterationInfo(iteration=1000" in result.stdout
    assert result.stdout.endswith("(64, 2, 4)\n")


def test_importing_tfrl_imports_nothing_heavy():
    code = (
        "import sys, tfrl, tfrl.specs, tfrl.environments, tfrl.agents;"
        "print([m for m in ('tensorflow', 'keras', 'gymnasium') if m in sys.modules])"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], cwd=REPOSITORY, capture_output=True, text=True
    )
    assert result.stdout.strip() == "[]", result.stderr


def test_every_lazy_export_can_be_had():
    code = """
import importlib, pathlib, re
for stub in sorted(pathlib.Path("tfrl").rglob("__init__.pyi")):
    package = importlib.import_module(".".join(stub.parent.parts))
    for name in package.__all__:
        getattr(package, name)
"""
    result = subprocess.run(
        [sys.executable, "-c", code], cwd=REPOSITORY, capture_output=True, text=True
    )
    assert result.returncode == 0, result.stderr
