"""Programs are read from lines that XLA writes."""

import pytest

from benchmarks import hlo_text

TEXT = """\
%twice (value: (f32[2], s32[])) -> f32[2] {
  %value = (f32[2]{0}, /*index=1*/s32[]) parameter(0)
  %part = f32[2]{0} get-tuple-element(%value), index=0
  ROOT %sum.1 = f32[2]{0} add(%part, %part), metadata={op_name="a(b)/Add"}
}

ENTRY %main (x: f32[2]) -> f32[2] {
  %x = f32[2]{0} parameter(0)
  %pair = (f32[2]{0}, s32[]) tuple(%x, %x)
  ROOT %which.1 = f32[2]{0} conditional(%x, %pair, %pair), \
branch_computations={%twice, %twice}
}
"""


def test_a_program_has_the_instructions_of_its_computations():
    program = hlo_text.parse(TEXT)
    assert program.entry == "main"
    value, _, total = program.computations["twice"]
    assert value[:4] == ("value", "(f32[2]{0}, /*index=1*/s32[])", "parameter", ())
    assert total[:4] == ("sum.1", "f32[2]{0}", "add", ("part", "part"))
    assert hlo_text.called(total) == {}
    which = program.computations["main"][-1]
    assert hlo_text.called(which) == {"branch_computations": ["twice", "twice"]}


def test_another_text_is_refused():
    with pytest.raises(ValueError, match="got 'nothing', expected the text of a prog"):
        hlo_text.parse("nothing")
