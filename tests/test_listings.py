"""What a program names that does not exist is found without running it."""

import pytest

from tests import listings

WHOLE = """
import tfrl
from tfrl.agents import DqnAgent
from tfrl import agents

def make(spec, **rest):
    return agents.DqnAgent(spec, spec, None, gamma=0.9, optimizer=None, **rest)

print(make, tfrl.networks.QNetwork, DqnAgent.policy, unknown_here.anything)
unknown_here = tfrl.__version__
"""


def test_a_program_whose_names_exist_has_no_fault():
    assert listings.faults(WHOLE, "whole.py") == []


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("print(nowhere)", "nowhere"),
        ("tfrl.networks.QNetwrk()", "tfrl.networks.QNetwrk"),
        ("DqnAgent.polici", "DqnAgent.polici"),
        (
            "tfrl.networks.QNetwork(None, None, layers=3)",
            "tfrl.networks.QNetwork: got an unexpected keyword argument 'layers'",
        ),
        (
            "class Own(DqnAgent): act = lambda self: self.loss(1, 2, 3, 4, 5, 6)",
            "self.loss: too many positional arguments",
        ),
    ],
)
def test_a_name_or_an_argument_that_does_not_exist_is_found(line, fault):
    found = listings.faults(WHOLE + line, "wrong.py")
    assert found == [f"wrong.py:{len(WHOLE.splitlines()) + 1}: {fault}"]


@pytest.mark.parametrize("line", ["print(", "from tfrl import nothing"])
def test_what_does_not_compile_or_import_raises(line):
    with pytest.raises((SyntaxError, ImportError)):
        listings.faults(line, "wrong.py")
