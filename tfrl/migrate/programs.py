"""Moves whole programs: which files belong to one, and what becomes of them."""

from __future__ import annotations

import ast
import dataclasses
import difflib
import pathlib
import re
from collections.abc import Iterable, Iterator

from tfrl.migrate import files, names, notebooks, scopes
from tfrl.migrate.rule import File, UnreadableError, scopes_in
from tfrl.migrate.rules import RULES
from tfrl.migrate.rules.library_names import new_place
from tfrl.system import log

# Libraries with their own use of gym: their programs are left alone.
_OTHERS = {"stable_baselines", "stable_baselines3", "ray", "baselines", "rl", "spinup"}
_GYM = {"gym", "gymnasium"}
_ENTRY_POINT = re.compile(r"([A-Za-z_][\w.]*):\w[\w.-]*")
_GIN_MODULE = re.compile(r"\btf_agents(?:\.[a-z_]\w*)+\b")
_GIN_CLASS = re.compile(r"\btf_agents\.(?=[A-Z])")
_GIN_USED = re.compile(r"^(?:[\w.]+/)?(?:[\w]+\.)*([A-Z]\w*)\.\w+\s*=", re.MULTILINE)
_BASE = re.compile(
    r"gymnasium\.(core\.|envs\.[\w.]+\.|wrappers\.)?\w*(Env|Wrapper)|"
    r"tfrl\.environments\.atari_(preprocessing|wrappers)\.\w+"
)


@dataclasses.dataclass
class Result:
    """What became of a file.

    Attributes:
      source: The file; None if it was not read.
      path: Its path.
      text: Its new text.
      changes: The places that each rule has changed, by its name.
      notes: Places, rules, and what a person must decide.
      reason: Why the file was left alone, or "".
    """

    path: pathlib.Path
    source: files.Source | None = None
    text: str = ""
    changes: dict[str, list[str]] = dataclasses.field(default_factory=dict)
    notes: list[tuple[str, str, str]] = dataclasses.field(default_factory=list)
    reason: str = ""

    @property
    def is_changed(self) -> bool:
        """Whether the file gets another text."""
        return self.source is not None and self.text != self.source.text

    @property
    def diff(self) -> str:
        """The changes as a unified diff, of a notebook's code for a notebook."""
        if self.source is None:
            return ""
        texts = [self.source.text, self.text]
        if self.path.suffix == ".ipynb":
            texts = [notebooks.Notebook(text).shown for text in texts]
        old, new = (text.splitlines(keepends=True) for text in texts)
        lines = difflib.unified_diff(old, new, f"a/{self.path}", f"b/{self.path}")
        ends = "\\ No newline at end of file\n"
        return "".join(x if x.endswith("\n") else f"{x}\n{ends}" for x in lines)


class _Module:
    """A file of Python, and what the choice of a program's files goes by."""

    def __init__(self, result: Result, root: pathlib.Path) -> None:
        assert result.source is not None
        self.result = result
        self.notebook: notebooks.Notebook | None = None
        self.code = result.source.text
        if result.path.suffix == ".ipynb":
            self.notebook = notebooks.Notebook(self.code)
            self.code = self.notebook.code
        self.scopes = scopes_in(self.code)
        self.imports = set(_imports(self.scopes.module.node))
        self.roots = {name.partition(".")[0] for name in self.imports}
        self.folder = result.path.parent
        self.top = root if root.is_dir() else self.folder
        parts = result.path.relative_to(self.top).with_suffix("").parts
        self.name = ".".join(["", self.top.absolute().name, *parts])
        self.name = self.name.removesuffix(".__init__")
        # What hides libraries of the same names.
        self.own = {
            name
            for name in (*names.LIBRARIES, *_GYM, "sonnet", "keras", "numpy")
            for folder in (self.folder, self.top)
            if (folder / f"{name}.py").is_file()
            or (folder / name / "__init__.py").is_file()
        }

    def is_imported_by(self, other: _Module) -> bool:
        """Whether another module names this one in an import."""
        return any(
            self.name.endswith(f".{part}")
            for name in other.imports
            for part in (name.strip("."), name.strip(".").rpartition(".")[0])
            if part
        )


def _imports(tree: ast.Module) -> Iterator[str]:
    """Yields the names that a module imports, also in the strings of registrations."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = "." * node.level + (node.module or "")
            yield from (f"{module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Constant):
            found = _ENTRY_POINT.fullmatch(str(node.value))
            yield from [f"{found[1]}.x"] if found else []


def migrate(paths: Iterable[pathlib.Path]) -> list[Result]:
    """Returns what becomes of the files at some paths; writes nothing.

    Args:
      paths: Files and folders. Those of a program belong into one call.
    """
    results: dict[pathlib.Path, Result] = {}
    modules: list[_Module] = []
    for root in paths:
        for path in files.found(root):
            if path not in results:
                results[path], module = _read(path, root)
                modules += [module] if module else []
    chosen = _chosen(modules)
    for module, environments in _environments(chosen).items():
        _move(module, environments)
    return list(results.values())


def _read(path: pathlib.Path, root: pathlib.Path) -> tuple[Result, _Module | None]:
    """Reads a file; one of gin is moved at once."""
    result = Result(path)
    try:
        result.source = files.read(path)
        result.text = result.source.text
        if path.suffix != ".gin":
            return result, _Module(result, root)
        if (root / "tf_agents" / "__init__.py").is_file():
            return result, None  # It belongs to a copy of TF-Agents.
        result.text, result.notes = _gin(result.text)
        result.changes = {"gin": []} if result.is_changed else {}
    except (files.SkippedError, UnreadableError) as error:
        result.reason = str(error)
    return result, None


def _gin(text: str) -> tuple[str, list[tuple[str, str, str]]]:
    """Returns the text of a file of gin with tfrl's names, and what is left to do."""
    changed = _GIN_MODULE.sub(lambda found: new_place(found[0]), text)
    changed = _GIN_CLASS.sub("", changed)
    used = sorted(set(_GIN_USED.findall(changed)))
    if changed == text or not used:
        return changed, []
    note = (
        f"tfrl registers no class with gin: call gin.external_configurable for "
        f"{', '.join(used)} before the file is read."
    )
    return changed, [("1", "gin", note)]


def _chosen(modules: list[_Module]) -> list[_Module]:
    """Returns the files of programs that use the libraries."""
    chosen = [x for x in modules if x.roots & set(names.LIBRARIES) - x.own]
    folders = {module.folder for module in chosen}
    waiting = [x for x in modules if x not in chosen]
    near = [
        x for x in waiting if x.roots & _GYM and folders & {x.folder, *x.folder.parents}
    ]
    chosen += [x for x in near if not x.roots & _OTHERS]
    for module in chosen:  # It grows.
        for each in [x for x in waiting if x not in chosen]:
            # Environments of gym lead to the files that step them.
            uses = module.roots & _GYM and module.is_imported_by(each)
            if uses and each.roots & _OTHERS:
                each.result.reason = f"not moved, unlike {module.result.path}"
            elif uses or each.is_imported_by(module):
                chosen.append(each)
    return chosen


def _environments(modules: list[_Module]) -> dict[_Module, set[str]]:
    """Returns the classes that are environments of gym, as each module knows them."""
    defined = {
        module: {
            node.name: list(map(scopes.dotted, node.bases))
            for node in module.scopes.of
            if isinstance(node, ast.ClassDef)
        }
        for module in modules
    }
    known: dict[_Module, set[str]] = {module: set() for module in modules}
    everywhere: set[str] = set()

    def is_one(module: _Module, base: str) -> bool:
        if _BASE.fullmatch(names.canonical(module.scopes.module.qualified(base))):
            return True
        # A plain name is that of the module's own class, if it has one.
        return base.rpartition(".")[2] in (everywhere if "." in base else known[module])

    def means(other: _Module, name: str, module: _Module) -> bool:
        """Whether a class of a module is what another module means by a name."""
        if name in defined[other]:
            return other is module
        place, _, _ = other.scopes.module.qualified(name).strip(".").rpartition(".")
        found = [x for x in modules if place and x.name.endswith(f".{place}")]
        found = [x for x in found if name in defined[x]]
        return module in found or not found

    while new := [
        (module, name)
        for module, classes in defined.items()
        for name, bases in classes.items()
        if name not in known[module] and any(is_one(module, base) for base in bases)
    ]:
        for module, name in new:
            everywhere.add(name)
            for other in modules:
                if means(other, name, module):
                    known[other].add(name)
    return known


def _move(module: _Module, environments: set[str]) -> None:
    """Applies the rules to a file."""
    result = module.result
    file = File(module.code, module.scopes, environments, module.own)
    try:
        code = file.apply(RULES)
        scopes_in(code)  # No edit may break the syntax.
        if module.notebook is None:
            result.text = code
        elif code != module.code:
            result.text = module.notebook.with_code(code)
    except (files.SkippedError, UnreadableError) as error:
        result.reason = str(error)
        return
    except Exception as error:  # The other files go on.
        result.reason = f"a rule fails, which is a fault of tfrl: {error!r}"
        return
    place = module.notebook.place if module.notebook else str
    result.changes = {
        rule: list(dict.fromkeys(map(place, sorted(lines))))
        for rule, lines in file.changes.items()
    }
    result.notes = [
        (place(line), rule, text) for line, rule, text in sorted(file.notes)
    ]
    if module.notebook:
        for number, reason in module.notebook.unread.items():
            result.notes.append((f"cell {number}", "unread", reason))
        for line in module.notebook.switches:
            result.notes.append(("1", "legacy-keras", f"delete the line {line}"))


def report(results: Iterable[Result]) -> Iterator[str]:
    """Yields the lines of the list: the changes by rules, what is left, and skipped."""
    used: set[str] = set()
    for each in results:
        if each.is_changed:
            used |= each.changes.keys()
            told = [
                " ".join([rule, ",".join(places)]).strip()
                for rule, places in each.changes.items()
            ]
            yield f"changes  {each.path}: {'; '.join(told)}"
    for each in results:
        for place, rule, text in each.notes:
            yield f"decide   {each.path}:{place}: {rule}: {text}"
        if each.reason:
            yield f"skipped  {each.path}: {each.reason}"
    for known in RULES:
        if known.name in used:
            page, _, section = known.page.partition("#")
            place = f", {section.replace('-', ' ')}" if section else ""
            yield f"rule     {known.name}: see the guide's page {page}{place}"


def write(changed: Iterable[Result]) -> int:
    """Writes the new texts, prints where copies are, and returns how many failed."""
    copies = files.copies_folder()
    failed = 0
    for each in changed:
        assert each.source is not None
        try:
            if copy := files.replace(each.source, each.text, copies):
                log.info(f"{each.path}: the file as it was is {copy}")
        except files.SkippedError as error:
            failed += 1
            log.info(f"{each.path}: {error}")
    return failed
