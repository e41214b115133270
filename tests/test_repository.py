"""What holds for the repository as a whole."""

import ast
import pathlib
import re
import subprocess
import sys

REPOSITORY = pathlib.Path(__file__).resolve().parents[1]

# Words and phrases that the code and the pages say in plain English instead.
ARCHAISMS = (
    "amongst",
    "anew",
    "as ever",
    "besides",
    "hitherto",
    "kin",
    "lest",
    "likewise",
    "spoilt",
    "therein",
    "thereof",
    "whence",
    "whilst",
    "are none of",
    "is none of",
    "such as do not",
)
# Made-up names, where the field says fast, fast path, background flusher, wait queues.
COINAGES = ("lean", "short way", "Pacemaker", "ServedTable")


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


def test_constructor_arguments_are_documented_in_the_constructor():
    wrong = []
    for path in sorted((REPOSITORY / "tfrl").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.ClassDef):
                continue
            functions = [n for n in node.body if isinstance(n, ast.FunctionDef)]
            has_constructor = any(f.name == "__init__" for f in functions)
            lines = (ast.get_docstring(node) or "").splitlines()
            if has_constructor and "Args:" in lines:
                wrong.append(f"{path.relative_to(REPOSITORY)}: {node.name}")
    assert not wrong


def test_code_and_pages_use_none_of_the_words_to_avoid():
    words = "|".join(word.replace(" ", r"\s+") for word in ARCHAISMS + COINAGES)
    pattern = re.compile(rf"\b(?:{words})\b", re.IGNORECASE)
    folders = ("benchmarks", "configs", "docs", "examples", "tfrl")
    paths = [path for folder in folders for path in (REPOSITORY / folder).rglob("*")]
    found = []
    for path in (*paths, REPOSITORY / "README.md", REPOSITORY / "BUILD.md"):
        if path.suffix not in (".md", ".py", ".pyi"):
            continue
        text = path.read_text()
        if path.suffix == ".md":
            # Old names in code spans, such as those that a table translates, may stay.
            text = re.sub(r"`[^`\n]*`", "", text)
        for match in pattern.finditer(text):
            line = text.count("\n", 0, match.start()) + 1
            found.append(f"{path.relative_to(REPOSITORY)}:{line}: {match[0]}")
    assert not found
