"""The pages say what the code, the files of data and the measurements say."""

import pathlib
import re
import runpy

import pytest

from tfrl import imports
from tfrl.algorithms import registry

REPOSITORY = pathlib.Path(__file__).resolve().parents[1]
SCRIPT = runpy.run_path(str(REPOSITORY / "docs/tools/fill_pages.py"))
TEXTS = {
    page.relative_to(REPOSITORY).as_posix(): page.read_text()
    for page in SCRIPT["PAGES"]
}


@pytest.mark.parametrize("name", TEXTS)
def test_a_page_is_what_the_command_writes(name):
    expected = SCRIPT["filled"](TEXTS[name])
    assert TEXTS[name] == expected, "run python docs/tools/fill_pages.py"


def arguments(kind, separator):
    """What all pages ask for by one kind of block."""
    asked = re.findall(rf"<!-- {kind}: begin (.*?) -->", "".join(TEXTS.values()))
    return [argument for each in asked for argument in each.split(separator)]


def test_each_algorithm_has_one_table_of_settings():
    assert sorted(arguments("settings", " ")) == sorted(registry.CLASSES)


def test_each_agent_of_the_score_table_is_on_a_page():
    measured = {entry.agent for entry, _ in SCRIPT["_measured"]()}
    assert measured == set(arguments("scores", ", "))


def test_the_index_leads_to_every_page():
    folder = REPOSITORY / "docs" / "algorithms"
    linked = set(re.findall(r"\]\((\w+)\.md", (folder / "index.md").read_text()))
    assert linked == {page.stem for page in folder.glob("*.md")} - {"index"}


def test_every_row_of_absent_names_and_every_kind_of_block_is_on_a_page():
    assert sorted(arguments("absent", "\n")) == sorted(
        {row.section for row in imports.absent_rows()}
    )
    for kind in ("changes", "columns", "floors", "rules", "words"):
        assert f"<!-- {kind}: begin -->" in "".join(TEXTS.values())


def test_the_architecture_lists_the_packages_of_the_contract_from_below():
    (floors,) = (text for name, text in TEXTS.items() if name == "tfrl/README.md")
    build = (REPOSITORY / "BUILD.md").read_text()
    table = build.partition("\n| package | contents |\n")[2].partition("\n\n")[0]
    named = [re.findall(r"`(\w+)`", row.split("|")[1]) for row in table.splitlines()]
    in_order = re.findall(r"`(\w+)`", floors.partition("|---|")[2].partition("<")[0])
    assert [name for row in named for name in row] == in_order[::-1]


def test_a_listing_is_the_function_without_its_docstring_and_checks():
    text = SCRIPT["filled"](
        "<!-- code: begin losses/td.py:td_error -->\n<!-- code: end -->"
    )
    listing = text.partition("```py\n")[2].partition("```")[0]
    assert listing.startswith("def td_error(\n    v_tm1: types.TensorLike,\n")
    assert '"""' not in listing
    assert "check_" not in listing
    assert listing.endswith("    return target - v_tm1\n")


def test_a_table_has_as_many_cells_in_each_row():
    for name, text in TEXTS.items():
        for table in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
            rows = table.splitlines()
            counts = {len(re.findall(r"(?<!\\)\|", row)) for row in rows}
            assert len(counts) == 1, (name, rows[0])
