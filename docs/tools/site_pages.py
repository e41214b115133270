"""Turns the Markdown of the repository into pages of the site.

In the repository a page is read as it is. On the site a link to a file that is not a
page leads to the project's address, or is the file's name; the lists of links in
`index.md` are the order of the pages; and the index of the API links to the pages of
the API.
"""

from __future__ import annotations

import json
import os
import pathlib
import re

import api_index
import api_pages

_DOCS = pathlib.Path(__file__).resolve().parents[1]
_ROOT = _DOCS.parent
_GITHUB = "https://github.com/"
_OF_THE_SITE = (".md", ".ipynb", ".png", ".svg", ".gif", ".webp")
# A link: its text, which may hold brackets, its target and its anchor.
_LINK = re.compile(r"\[((?:[^\[\]]|\[[^\[\]]*\])*)\]\(([^)\s#]+)(#[^)\s]*)?\)")


def adapted(text: str, path: pathlib.Path, repository: str) -> str:
    """Returns a page as the site shows it.

    Args:
      text: The page's Markdown, or a notebook's JSON.
      path: Its file.
      repository: The project's address, such as "https://github.com/user/tfrl"; "" if
        there is none.
    """
    text = _LINK.sub(lambda link: _of_the_site(link, path.parent, repository), text)
    if path.name == "index.md" and "{toctree}" not in text:
        for caption, pages in contents(path):
            text += _toctree(caption, pages)
    if path.suffix == ".ipynb" and repository.startswith(_GITHUB):
        text = _with_colab(text, path, repository.removeprefix(_GITHUB))
    if path == _DOCS / "api.md":
        text = _linked_to_the_api(text)
        pages = [f"reference/{name}" for name in api_pages.first_pages()]
        text += _toctree("", pages)
    return text


def contents(index: pathlib.Path) -> list[tuple[str, list[str]]]:
    """Returns the parts of a list of pages: a title, and the pages in their order.

    The parts of `docs/index.md` are its sections; its pages are the links with which
    the items of lists begin. The `index.md` of another folder is one part without a
    title, of all pages in the folder that it links to.
    """
    text = index.read_text(encoding="utf-8")
    if index.parent != _DOCS:
        return [("", _pages(re.findall(r"\]\(([^)#]+)", text), index.parent))]
    parts = []
    for section in re.split(r"^## ", text, flags=re.MULTILINE)[1:]:
        items = re.findall(r"^- \[[^\]]*\]\(([^)#]+)\)", section, re.MULTILINE)
        if pages := _pages(items, index.parent):
            parts.append((section.partition("\n")[0], pages))
    return parts


def _pages(targets: list[str], folder: pathlib.Path) -> list[str]:
    """Returns the names of the pages among targets of links, each once."""
    pages = [
        path.relative_to(folder).with_suffix("").as_posix()
        for path in (folder / target for target in targets)
        if path.suffix in (".md", ".ipynb") and path.is_relative_to(folder)
        if path.exists() and ".." not in path.parts
    ]
    return list(dict.fromkeys(pages))


def _with_colab(text: str, path: pathlib.Path, repository: str) -> str:
    """Returns a notebook with a link to run it, below its title."""
    notebook = json.loads(text)
    file = path.relative_to(_ROOT).as_posix()
    address = f"https://colab.research.google.com/github/{repository}/blob/main/{file}"
    title = notebook["cells"][0]
    title["source"] = [*title["source"], f"\n\n[Run it in Colab]({address})"]
    return json.dumps(notebook)


def _toctree(caption: str, pages: list[str]) -> str:
    options = [":hidden:", *([f":caption: {caption}"] if caption else [])]
    head = ["```{toctree}", *options, ""]
    return "\n".join(["", *head, *pages, "```", ""])


def _of_the_site(link: re.Match[str], folder: pathlib.Path, repository: str) -> str:
    """Returns a link, or its replacement if the file is not part of the site."""
    text, target, anchor = link.groups()
    path = pathlib.Path(os.path.normpath(folder / target))
    is_page = path.is_relative_to(_DOCS) and path.suffix in _OF_THE_SITE
    if ":" in target or is_page or not path.exists():
        return link[0]
    name = path.relative_to(_ROOT).as_posix()
    if repository:
        kind = "tree" if path.is_dir() else "blob"
        return f"[{text}]({repository}/{kind}/main/{name}{anchor or ''})"
    if text.strip("`") in name:
        return f"`{name}`"
    return f"{text} (`{name}`)"


def _linked_to_the_api(text: str) -> str:
    """Returns the index of the API with links to the pages of the API."""
    head, *sections = re.split(r"^(?=## )", text, flags=re.MULTILINE)
    stubs = api_index.stubs()
    linked = [_linked_section(*pair) for pair in zip(sections, stubs, strict=True)]
    return "".join([head, *linked])


def _linked_section(text: str, stub: pathlib.Path) -> str:
    """Returns the section of a package in the index, with links."""
    package = api_index.package_of(stub)
    names = [(name, source) for source, name in api_index.exports(stub)[1]]
    for source, inside in api_index.further_modules(stub):
        names += [(name, source) for name in inside]
    links = {
        name: f"{{py:obj}}`{name} <{api_pages.home(source, name)}>`"
        for name, source in names
    }

    def linked(row: str) -> str:
        named, separator, rest = row.partition(" | ")
        named = re.sub(r"`(\w+)`(?!:)", lambda name: links[name[1]], named)
        return named + separator + rest

    title, *rows = text.split("\n")
    rows = [linked(row) if row.startswith("| `") else row for row in rows]
    return "\n".join([title, "", f"{{doc}}`reference/{package}`:", *rows[1:]])
