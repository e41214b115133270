"""Names of environments, whatever they hold, belong to a suite or are an error."""

import sys
import warnings

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests import properties
from tfrl.environments import suites

# Parts of names, of which some are whole.
PARTS = st.sampled_from(
    [
        *(
            "CartPole",
            "NoVel",
            "Pendulum",
            "BitFlipping",
            "ToOnes",
            "Pong",
            "-v",
            "-v0",
        ),
        *("-v1", "-v5", "ALE/", "dm_control/", "cartpole-balance", "bsuite/", "catch"),
        *("MiniGrid-", "Empty-5x5", "gymnax/", "brax/", "jumanji/", "pgx/", "/", ":"),
        *("gymnasium:", "ale_py:", "json:", "json.tool", ".", "..", "0", "5", "-", " "),
        *("\0", "é", "\ud800", "'", "?", "*", "[", "(", "\\", "\n", "%s", "{}"),
    ]
)
NAMES = st.lists(PARTS, max_size=5).map("".join)


@example("..json:CartPole-v1")
@given(NAMES)
def test_a_name_is_of_one_suite_or_an_error_that_has_the_name(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Of names without a version.
        told = ""
        try:
            suites.find_action_space(name)
        except (ValueError, ImportError) as error:
            told = str(error)
            is_known = isinstance(error, ValueError) or "pip install" in told
        if told:
            assert is_known
            return
    suite, own = suites.find(name)
    assert name.endswith(own)
    assert suite.matches(own)


@given(st.text("ab/", min_size=1, max_size=4), properties.TEXTS)
def test_names_of_an_added_suite_are_its_own(prefix, rest):
    added = suites._added[:]
    suite = suites.Suite(matches=lambda name: name.startswith(prefix), load=str)
    suites.add(suite)
    try:
        name = prefix + rest.replace(":", "")
        assert suites.find(name) == (suite, name)
        assert suites.find(f"json:{name}") == (suite, name)
    finally:
        suites._added[:] = added


@given(NAMES)
def test_a_file_may_import_only_modules_that_are_known(name):
    module, colon, _ = name.rpartition(":")
    is_known = (
        not colon
        or not module
        or module.partition(".")[0] in suites._KNOWN_MODULES
        or module in sys.modules
    )
    if is_known:
        suites.check_trusted(name, "config.json", "give --trust")
        return
    with pytest.raises(ValueError, match=r"^config.json: .* if you trust it"):
        suites.check_trusted(name, "config.json", "give --trust")
