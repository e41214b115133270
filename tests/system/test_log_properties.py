"""Texts that somebody else wrote give a terminal no commands."""

import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from tfrl.system import log


@given(st.text())
def test_a_plain_text_has_no_controls(text):
    got = log.plain(text)
    for character in got:
        if unicodedata.category(character) == "Cc":
            assert character in "\t\n"
        assert unicodedata.bidirectional(character) not in BIDIRECTIONAL
    assert log.plain(got) == got
    if text.isprintable() and text.isascii():
        assert got == text


# Those that turn the direction of writing.
BIDIRECTIONAL = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}
