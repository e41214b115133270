"""What holds for the repository as a whole."""

import ast
import functools
import importlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile

import pytest

import tfrl

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


def product_files():
    """The pages and the code, without the tests."""
    folders = ("benchmarks", "configs", "docs", "examples", "tfrl")
    paths = [path for folder in folders for path in (REPOSITORY / folder).rglob("*")]
    paths += REPOSITORY.glob("*.md")
    return [path for path in paths if path.suffix in (".md", ".py", ".pyi")]


@functools.cache
def parsed(path):
    """The syntax tree of a file, which the tests only read."""
    return ast.parse(path.read_text())


def listings(page):
    """The programs of a page."""
    text = (REPOSITORY / page).read_text()
    return re.findall(r"```python\n(.*?)```", text, re.DOTALL)


def test_the_readmes_program_runs_and_its_policy_is_filmed(tmp_path):
    """The whole program is that of `docs/start.md`, which a slow test runs."""
    (program,) = listings("README.md")
    first, filmed, *_ = listings("docs/runs.md")
    assert first == program
    code = program + filmed
    for whole, shorter in {
        "10_000": "5_000",
        "num_episodes=2": "num_episodes=1",
    }.items():
        assert whole in code
        code = code.replace(whole, shorter)
    result = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env={
            **{name: x for name, x in os.environ.items() if name != "XLA_FLAGS"},
            "PYTHONPATH": str(REPOSITORY),
        },
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr
    assert "0000 00:00:" not in result.stderr  # TensorFlow's start-up messages.
    mean, returns = map(ast.literal_eval, result.stdout.splitlines())
    assert mean >= 80  # Random actions get about 22.
    assert len(returns) == 1
    assert (tmp_path / "film.mp4").stat().st_size > 1_000


@pytest.mark.parametrize(
    ("page", "name"),
    [
        ("README.md", "test"),
        ("BUILD.md", "gate"),
        ("BUILD.md", "jax"),
        ("BUILD.md", "lint"),
        ("BUILD.md", "docs"),
    ],
)
def test_the_workflow_runs_the_pages_commands(page, name):
    workflow = (REPOSITORY / ".github" / "workflows" / "tests.yml").read_text()
    text = (REPOSITORY / page).read_text()
    (command,) = re.findall(rf"<!-- {name} command -->\n```\n(.*)\n```", text)
    command = command.replace(".venv/bin", "${{ matrix.bin }}")
    steps = command.replace("python3 ", "python ").split(" && ")
    assert "\n".join(f"          {step}" for step in steps) in workflow


def test_the_hooks_before_a_commit_are_the_lint_command():
    text = (REPOSITORY / "BUILD.md").read_text()
    (command,) = re.findall(r"<!-- lint command -->\n```\n(.*)\n```", text)
    hooks = (REPOSITORY / ".pre-commit-config.yaml").read_text()
    _, _, *steps = command.split(" && ")
    assert re.findall(r"entry: ([^,}]*)", hooks) == steps


def test_every_workflow_has_a_limit_and_the_least_permissions():
    workflows = sorted((REPOSITORY / ".github" / "workflows").glob("*.yml"))
    names = [path.stem for path in workflows]
    assert names == ["docs", "nightly", "release", "tests"]
    for path in workflows:
        text = path.read_text()
        assert "\npermissions:\n  contents: read\n" in text
        assert text.count("runs-on:") == text.count("timeout-minutes:")


def test_the_lock_names_public_packages_alone():
    text = (REPOSITORY / "uv.lock").read_text()
    hosts = set(re.findall(r"https?://([^/\"]+)", text))
    assert hosts == {"pypi.org", "files.pythonhosted.org"}


def test_the_page_on_the_examples_names_every_script():
    text = (REPOSITORY / "docs" / "examples.md").read_text()
    scripts = [
        path
        for path in (REPOSITORY / "examples").glob("*.py")
        if '__name__ == "__main__"' in path.read_text() and path.stem != "cli"
    ]
    assert len(scripts) == 7
    for path in scripts:
        assert f"[`{path.stem}`](../examples/{path.name})" in text


def test_no_string_of_the_package_cites_a_file_that_is_not_installed():
    missing = re.compile(
        r"(?<![\w./-])(?:docs|examples|configs|benchmarks|tests)/"
        r"|(?<![\w.])examples\.[a-z]|\b(?!(?:compare|report)\b)\w+\.md\b|\b(?:README|BUILD)\b"
    )
    for cited in ("see docs/agents.md", "run python -m examples.train_dqn", "README"):
        assert missing.search(cited)
    assert missing.search("see agents.md and comparing.md")
    assert not missing.search("`compare.md` and report.md, which commands write")
    assert not missing.search("https://example.org/docs/a, of the examples. Then")
    found = [
        f"{path.relative_to(REPOSITORY)}:{node.lineno}: {match[0]}"
        for path in sorted((REPOSITORY / "tfrl").rglob("*.py"))
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        if node.value
        != "README.md"  # The name of a model card, which a command writes.
        for match in missing.finditer(node.value)
    ]
    assert not found


def test_every_place_names_the_same_version():
    version = tfrl.__version__
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    assert project["dynamic"] == ["version"]
    citation = (REPOSITORY / "CITATION.cff").read_text()
    assert f"\nversion: {version}\n" in citation
    changes = (REPOSITORY / "docs" / "changes.md").read_text()
    assert re.findall(r"^## (\d\S*),", changes, re.MULTILINE)[0] == version


def test_pages_and_code_name_the_extras_of_this_package():
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    extras = set(project["optional-dependencies"])
    wrong = []
    for path in product_files():
        for line in path.read_text().splitlines():
            named = re.findall(r"tfrl\[([\w,-]+)\]", line)
            unquoted = re.search(r"pip install tfrl\[", line)
            of_gymnasium = re.search(r"gymnasium\[box2d", line)
            known = extras.issuperset(",".join(named).split(",") if named else ())
            if unquoted or of_gymnasium or not known:
                wrong.append(f"{path.name}: {line}")
    assert wrong == []


def test_importing_tfrl_imports_nothing_heavy():
    code = (
        "import sys, tfrl, tfrl.specs, tfrl.environments, tfrl.agents;"
        "print([m for m in ('tensorflow', 'keras', 'gymnasium') if m in sys.modules])"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], cwd=REPOSITORY, capture_output=True, text=True
    )
    assert result.stdout.strip() == "[]", result.stderr


def test_every_lazy_export_can_be_had(run, tmp_path):
    script = tmp_path / "script.py"
    script.write_text("""
import importlib, pathlib, re
for stub in sorted(pathlib.Path("tfrl").rglob("__init__.pyi")):
    package = importlib.import_module(".".join(stub.parent.parts))
    for name in package.__all__:
        getattr(package, name)
""")
    code, _, errors = run(str(script))
    assert code == 0, errors


def test_every_lazy_export_comes_from_a_module_that_exports_it():
    # Strict type checkers take a name that a module imports for private.
    private = []
    for stub in sorted((REPOSITORY / "tfrl").rglob("__init__.pyi")):
        for node in ast.parse(stub.read_text()).body:
            if isinstance(node, ast.ImportFrom) and node.module:
                path = stub.parent.joinpath(*node.module.split("."))
                hidden = _imported_names(path.with_suffix(".py"))
                private += [f"{stub}: {n.name}" for n in node.names if n.name in hidden]
    assert not private


def _imported_names(module):
    """Returns the names that a module imports, and does not list in `__all__`."""
    if not module.exists():  # A package, whose stub exports what it imports.
        return set()
    source = module.read_text()
    names = {
        name.asname or name.name
        for statement in ast.parse(source).body
        if isinstance(statement, ast.ImportFrom)
        for name in statement.names
        if name.asname != name.name
    }
    exported = re.search(r"^__all__ = (\[.*?\])", source, re.M | re.S)
    return names - set(ast.literal_eval(exported[1]) if exported else ())


def test_an_editable_install_is_a_plain_path(tmp_path):
    # Type checkers and editors do not follow the finders that setuptools makes else.
    pytest.importorskip("setuptools", minversion="77")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(REPOSITORY / name, tmp_path)
    (tmp_path / "tfrl").mkdir()
    (tmp_path / "tfrl" / "__init__.py").touch()
    shutil.copy(REPOSITORY / "tfrl" / "version.py", tmp_path / "tfrl")
    code = "from setuptools import build_meta; print(build_meta.build_editable('.'))"
    result = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True
    )
    assert result.returncode == 0, result.stderr
    wheel = zipfile.ZipFile(tmp_path / result.stdout.split()[-1])
    (path,) = [name for name in wheel.namelist() if name.endswith(".pth")]
    assert wheel.read(path).decode().strip() == str(tmp_path)


def test_constructor_arguments_are_documented_in_the_constructor():
    wrong = []
    for path in sorted((REPOSITORY / "tfrl").rglob("*.py")):
        for node in ast.walk(parsed(path)):
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
    found = []
    for path in product_files():
        text = path.read_text()
        if path.suffix == ".md":
            # Old names in code spans, such as those that a table translates, may stay.
            text = re.sub(r"`[^`\n]*`", "", text)
        for match in pattern.finditer(text):
            line = text.count("\n", 0, match.start()) + 1
            found.append(f"{path.relative_to(REPOSITORY)}:{line}: {match[0]}")
    assert not found


# Modules that pickle: they talk with processes that this one has started, over pipes.
PICKLES_FOR_OWN_PROCESSES = {
    "tfrl/environments/gymnasium/envpool_vector_env.py",
    "tfrl/environments/parallel_py_environment.py",
    "tfrl/environments/process_py_environment.py",
    "tfrl/environments/process_worker.py",
    "tfrl/system/child_errors.py",
    "tfrl/system/child_main.py",
    "tfrl/system/child_process.py",
    "tfrl/system/state_savers.py",
    "tfrl/system/system_multiprocessing.py",
}
PICKLING_MODULES = {
    "_pickle",
    "cloudpickle",
    "dill",
    "joblib",
    "marshal",
    "pickle",
    "shelve",
}


def uses_of_pickle(tree):
    """Yields the names of modules and arguments by which a source may unpickle."""
    for node in ast.walk(tree):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [node.module or ""]
        elif isinstance(node, ast.Call) and node.args:
            # importlib.import_module("pickle") and __import__("pickle")
            called = ast.unparse(node.func).rpartition(".")[2]
            if called in ("import_module", "__import__"):
                names = [getattr(node.args[0], "value", "")]
        elif isinstance(node, ast.Attribute):
            # pandas.read_pickle and the like
            names = [node.attr.removeprefix("read_")]
        elif isinstance(node, ast.keyword) and node.arg == "allow_pickle":
            is_off = getattr(node.value, "value", None) is False
            names = [] if is_off else ["pickle"]
        yield from (n for n in names if str(n).partition(".")[0] in PICKLING_MODULES)


@pytest.mark.parametrize(
    "source",
    [
        "import pickle",
        "import os, cloudpickle as c",
        "from pickle import loads",
        "def f():\n  import dill",
        "importlib.import_module('marshal')",
        "numpy.load(path, allow_pickle=True)",
        "numpy.load(path, allow_pickle=trusted)",
        "pandas.read_pickle(path)",
    ],
)
def test_the_search_for_pickles_finds(source):
    assert list(uses_of_pickle(ast.parse(source)))
    assert not list(uses_of_pickle(ast.parse("numpy.load(path, allow_pickle=False)")))


def test_nothing_that_a_file_holds_is_unpickled():
    found = {
        str(path.relative_to(REPOSITORY))
        for folder in ("benchmarks", "configs", "examples", "tfrl")
        for path in (REPOSITORY / folder).rglob("*.py")
        if list(uses_of_pickle(parsed(path)))
    }
    assert found == PICKLES_FOR_OWN_PROCESSES


def test_the_drawing_of_the_packages_has_the_order_of_their_imports(monkeypatch):
    monkeypatch.syspath_prepend(REPOSITORY / "docs" / "tools")
    pictures = importlib.import_module("pictures")
    drawn = [package for *_, packages in pictures.FLOORS for package in packages]
    settings = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())
    layers, *_ = settings["tool"]["importlinter"]["contracts"]
    ordered = " ".join(layers["layers"]).replace("tfrl.", "").replace("|", " ").split()
    # They stand beside the floors, or hold no code that runs, or are single modules.
    beside = {"acme", "replay_service", "testing", "experimental", "typing"}
    beside |= {path.stem for path in (REPOSITORY / "tfrl").glob("*.py")}
    assert drawn == [package for package in ordered if package not in beside]
