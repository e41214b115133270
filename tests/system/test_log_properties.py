"""Texts that somebody else wrote give a terminal no commands."""

import unicodedata

from hypothesis import example, given
from hypothesis import strategies as st

from tfrl.system import log

# Commands of terminals among other characters.
CHARACTERS = st.characters() | st.sampled_from("\x1b\x9b\x7f\r\t\u202e\u2066\u2069")


@example("\x1b \x9b \x7f \u202a \u202e \u2066 \u2069")
@given(st.text(CHARACTERS))
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
