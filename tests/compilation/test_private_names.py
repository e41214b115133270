"""Private names of TensorFlow, Keras and Gymnasium stand in `internals` alone."""

import ast
import importlib
import inspect
import pathlib
import pkgutil
import re
import warnings

import pytest

import tfrl
from tfrl.compilation import internals

ROOT = pathlib.Path(tfrl.__file__).parent
FILES = [
    path
    for path in sorted(ROOT.rglob("*.py"))
    if path.relative_to(ROOT).as_posix() != "compilation/internals.py"
]
FOREIGN = "tensorflow", "keras", "gymnasium", "ale_py"
PRIVATE_MODULES = re.compile(
    r"\b(tensorflow\.(python|compiler|core)|keras\.src|tf\.__internal__)\b"
)
# Names that used to be used, and other ways to take a private path.
KNOWN = {
    *internals.NAMES,
    internals.XLA_FFI_API,
    internals.SLICE_ASSIGN,
    "_frameskip",
    "_setattr_tracking",
} - {"wrap"}
# What Python's own classes call so, though it is public.
PUBLIC = {"_asdict", "_current_frames", "_exit", "_fields", "_make", "_replace"}
# Methods that these public, abstract classes ask their subclasses for.
ASKED_FOR = {
    ("BoundedTensorSpec", "_serialize"),  # tf.TypeSpec
    ("PatternDataset", "_inputs"),  # tf.data.Dataset
    ("SamplingDataset", "_inputs"),
}


def is_private(name):
    return name.startswith("_") and not name.startswith("__") and name != "_"


@pytest.fixture(scope="module")
def nodes():
    """Each node of each file's syntax tree, with the file."""
    return [
        (path, node) for path in FILES for node in ast.walk(ast.parse(path.read_text()))
    ]


def is_self(node):
    return isinstance(node.value, ast.Name) and node.value.id == "self"


def own_names(nodes):
    """All private names that the package gives to something itself."""
    names = set()
    for _, node in nodes:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            names.add(node.attr)
        elif isinstance(node, ast.Call):  # object.__setattr__(x, "_name", value)
            names.update(a.value for a in node.args if isinstance(a, ast.Constant))
    return names


def test_no_private_module_is_named():
    found = [
        f"{path.relative_to(ROOT)}: {match[0]}"
        for path in FILES
        for match in PRIVATE_MODULES.finditer(path.read_text())
        # What programs import, which the command migrate replaces.
        if path.relative_to(ROOT).as_posix() != "migrate/names.py"
    ]
    assert not found


def test_no_private_attribute_of_others_is_used(nodes):
    own = own_names(nodes) | PUBLIC
    found = [
        f"{path.relative_to(ROOT)}:{node.lineno}: {node.attr}"
        for path, node in nodes
        if isinstance(node, ast.Attribute)
        and is_private(node.attr)
        and (node.attr not in own or (node.attr in KNOWN and not is_self(node)))
    ]
    assert not found


def test_no_known_private_name_is_named(nodes):
    found = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path, node in nodes
        if (isinstance(node, ast.FunctionDef) and node.name in KNOWN)
        or (isinstance(node, ast.Constant) and node.value in KNOWN)
    ]
    assert not found


def test_no_class_is_changed_elsewhere(nodes):
    found = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path, node in nodes
        if (
            isinstance(node, ast.Attribute)
            and isinstance(node.ctx, ast.Store)
            and node.attr == "__class__"
        )
        or (
            isinstance(node, ast.Call)
            and any(
                isinstance(a, ast.Constant) and a.value == "__class__"
                for a in node.args
            )
        )
    ]
    assert not found


def test_no_private_method_of_others_is_overridden():
    found = set()
    for module in pkgutil.walk_packages(tfrl.__path__, "tfrl."):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                loaded = importlib.import_module(module.name)
            except ImportError:  # An extra is not installed.
                continue
        for kind in vars(loaded).values():
            if inspect.isclass(kind) and kind.__module__ == module.name:
                found |= overridden(kind)
    found = {x for x in found if not x[0].startswith("internals.")}
    assert found == ASKED_FOR


def is_defined_in(method, kind):
    return callable(method) and getattr(method, "__module__", None) == kind.__module__


def overridden(kind):
    if kind.__module__ == internals.__name__:
        return set()
    return {
        (kind.__name__, name)
        for base in kind.__mro__[1:]
        if base.__module__.partition(".")[0] in FOREIGN
        for name in set(vars(kind)) & set(vars(base))
        # TensorFlow Probability adds methods of its own to subclasses.
        if is_private(name) and is_defined_in(vars(kind)[name], kind)
    }
