"""Writes the rules of `tfrl migrate` into migrate.md, from their examples.

    python docs/migration_rules.py

A test compares the page with them.
"""

from __future__ import annotations

import pathlib

from tfrl.migrate.rule import Rule
from tfrl.migrate.rules import RULES

PAGE = pathlib.Path(__file__).with_name("migrate.md")
_START, _END = "<!-- rules -->\n", "<!-- end of rules -->\n"


def page() -> str:
    """Returns the page with the rules as they are."""
    before, _, rest = PAGE.read_text().partition(_START)
    after = rest.partition(_END)[2]
    return "".join([before, _START, *map(_section, RULES), _END, after])


def _section(rule: Rule) -> str:
    what = " ".join((rule.__doc__ or "").partition("Example:")[0].split())
    page, hash_, section = rule.page.partition("#")
    link = f"[The page]({page}.md{hash_}{section}) says more."
    if page == PAGE.stem:
        link = f"[A section]({hash_}{section}) says more."
    return f"\n### {rule.name}\n\n{what} {link}\n\n```diff\n{rule.example}```\n"


if __name__ == "__main__":
    PAGE.write_text(page())
