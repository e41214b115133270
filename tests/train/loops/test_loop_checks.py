"""Errors of graphs are as short on an accelerator as on the CPU."""

import pytest
import tensorflow as tf

from tfrl.train.loops import loop_checks

TEXT = "EpisodicLoop: an episode is longer than 9 steps; use a TimeLimit."
NAN = "experience: the loss is not finite; lower the rate : Tensor had NaN values"
NODE = "\n\t [[{{node while/body/_1/while/Assert}}]]"
ON_TWO_DEVICES = """Graph execution error:

Detected at node 'while/body/_1/while/Assert' defined at (most recent call last):
2 root error(s) found.
  (0) INVALID_ARGUMENT:  {text}{node}
\t [[while/loop_body_control/_114/_85]]
  (1) INVALID_ARGUMENT:  {text}{node}
0 successful operations.
0 derived errors ignored. [Op:__inference__iterations_84872]"""


@pytest.mark.parametrize("form", ["{text}{node}", ON_TWO_DEVICES])
@pytest.mark.parametrize(
    ("written", "said"), [(f"assertion failed: [{TEXT}]", TEXT), (NAN, NAN)]
)
def test_a_failed_assertion_is_its_own_text(form, written, said):
    message = form.format(text=written, node=NODE)
    with (
        pytest.raises(tf.errors.InvalidArgumentError) as caught,
        loop_checks.short_assertions(),
    ):
        raise tf.errors.InvalidArgumentError(None, None, message)
    assert caught.value.message == said


def test_other_errors_stay_as_they_are():
    with (
        pytest.raises(tf.errors.InvalidArgumentError, match=r"^indices out of range$"),
        loop_checks.short_assertions(),
    ):
        raise tf.errors.InvalidArgumentError(None, None, "indices out of range")
