"""The counts of programs that are written by hand."""

import pytest

from benchmarks import hlo_counts, hlo_text

# Each iteration runs a dot, a fusion of two operations, a copy, a scalar, a reduction,
# and an inner loop of five additions.
PROGRAM = """\
HloModule counted, is_scheduled=true, entry_computation_layout={(f32[4,3]{1,0})->s32[]}

%fused (param_0: f32[4,2]) -> f32[4,2] {
  %param_0 = f32[4,2]{1,0} parameter(0)
  %tanh.1 = f32[4,2]{1,0} tanh(%param_0), metadata={op_name="a(b)/Tanh"}
  ROOT %multiply.1 = f32[4,2]{1,0} multiply(%tanh.1, %tanh.1)
}

%sum (x: f32[], y: f32[]) -> f32[] {
  %x = f32[] parameter(0)
  %y = f32[] parameter(1)
  ROOT %add.9 = f32[] add(%x, %y)
}

%inner_body (inner: (s32[], f32[8])) -> (s32[], f32[8]) {
  %inner = (s32[], /*index=1*/f32[8]{0}) parameter(0)
  %i = s32[] get-tuple-element(%inner), index=0
  %values = f32[8]{0} get-tuple-element(%inner), index=1
  %add.2 = f32[8]{0} add(%values, %values)
  ROOT %tuple.2 = (s32[], f32[8]{0}) tuple(%i, %add.2)
}

%inner_condition (given: (s32[], f32[8])) -> pred[] {
  %given = (s32[], f32[8]{0}) parameter(0)
  %number = s32[] get-tuple-element(%given), index=0
  ROOT %less = pred[] compare(%number, %number), direction=LT
}

%body (state: (s32[], f32[4,3])) -> (s32[], f32[4,3]) {
  %state = (s32[], f32[4,3]{1,0}) parameter(0)
  %step = s32[] get-tuple-element(%state), index=0
  %matrix = f32[4,3]{1,0} get-tuple-element(%state), index=1
  %weights = f32[3,2]{1,0} constant({...})
  %dot.1 = f32[4,2]{1,0} dot(%matrix, %weights), \
lhs_contracting_dims={1}, rhs_contracting_dims={0}
  %fusion.1 = f32[4,2]{1,0} fusion(%dot.1), kind=kLoop, calls=%fused
  %copy.1 = f32[4,3]{1,0} copy(%matrix)
  %zero = f32[] constant(0)
  %reduce.1 = f32[] reduce(%fusion.1, %zero), dimensions={0,1}, to_apply=%sum
  %vector = f32[8]{0} bitcast(%fusion.1)
  %tuple.3 = (s32[], f32[8]{0}) tuple(%step, %vector)
  %while.1 = (s32[], f32[8]{0}) while(%tuple.3), condition=%inner_condition, \
body=%inner_body, backend_config={"known_trip_count":{"n":"5"}}
  ROOT %tuple.4 = (s32[], f32[4,3]{1,0}) tuple(%step, %copy.1)
}

%condition (old: (s32[], f32[4,3])) -> pred[] {
  %old = (s32[], f32[4,3]{1,0}) parameter(0)
  ROOT %flag = pred[] constant(true)
}

ENTRY %main (first: s32[], second: f32[4,3]) -> (s32[], f32[4,3]) {
  %first = s32[] parameter(0)
  %second = f32[4,3]{1,0} parameter(1)
  %tuple.5 = (s32[], f32[4,3]{1,0}) tuple(%first, %second)
  ROOT %while.2 = (s32[], f32[4,3]{1,0}) while(%tuple.5), condition=%condition, \
body=%body
}
"""


def body_of(instructions):
    """The counts of a body of one input, f32[2,6,6,3], and the given instructions."""
    text = f"""\
%body (state: f32[2,6,6,3]) -> f32[2,6,6,3] {{
  %state = f32[2,6,6,3]{{3,2,1,0}} parameter(0)
{instructions}
}}

%twice (param.1: f32[2,6,6,3]) -> f32[2,6,6,3] {{
  %param.1 = f32[2,6,6,3]{{3,2,1,0}} parameter(0)
  ROOT %add.1 = f32[2,6,6,3]{{3,2,1,0}} add(%param.1, %param.1)
}}

%same (param.2: f32[2,6,6,3]) -> f32[2,6,6,3] {{
  ROOT %param.2 = f32[2,6,6,3]{{3,2,1,0}} parameter(0)
}}

%condition (old: f32[2,6,6,3]) -> pred[] {{
  %old = f32[2,6,6,3]{{3,2,1,0}} parameter(0)
  ROOT %flag = pred[] constant(true)
}}

ENTRY %main (first: f32[2,6,6,3]) -> f32[2,6,6,3] {{
  %first = f32[2,6,6,3]{{3,2,1,0}} parameter(0)
  ROOT %while.1 = f32[2,6,6,3] while(%first), condition=%condition, body=%body
}}
"""
    return hlo_counts.loop_counts(hlo_text.parse(text))


def test_the_counts_of_an_iteration_are_those_that_a_reader_finds():
    assert hlo_counts.loop_counts(hlo_text.parse(PROGRAM)) == {
        # dot, fusion, two in it, copy, reduce, while; five times add and compare.
        "instructions": 7 + 5 * 2,
        "kernels": 5 + 5 * 2,
        # The products, the fusion, the copy, the sum; the inner loop's sums and flags.
        "bytes written": 32 + 32 + 48 + 4 + 5 * (32 + 1),
        "copies": 1,
        "bytes copied": 4 * 3 * 4,
        "scalars": 1 + 5,  # The sum, and the inner loop's condition.
        "floating-point operations": 2 * 4 * 2 * 3 + 8 + 8 + 8 + 5 * 8,
    }


def test_the_state_is_what_the_program_takes():
    assert hlo_counts.state_bytes(hlo_text.parse(PROGRAM)) == 4 + 4 * 3 * 4


def test_an_update_in_place_writes_the_part_alone():
    counts = body_of(
        "  %place = s32[] constant(0)\n"
        "  %part = f32[2,1,6,3]{3,2,1,0} constant({...})\n"
        "  %dynamic-update-slice.1 = f32[2,6,6,3]{3,2,1,0} dynamic-update-slice("
        "%state, %part, %place, %place, %place, %place)\n"
        "  %places = s32[5,1]{1,0} constant({...})\n"
        "  %rows = f32[5,6,6,3]{3,2,1,0} constant({...})\n"
        "  %scatter.1 = f32[2,6,6,3]{3,2,1,0} scatter(%state, %places, %rows), "
        "update_window_dims={1,2,3}, to_apply=%twice"
    )
    assert counts["bytes written"] == 4 * (2 * 6 * 3 + 5 * 6 * 6 * 3)


def test_a_convolution_multiplies_each_result_with_the_kernels_of_its_channel():
    counts = body_of(
        "  %kernel = f32[3,3,3,5]{3,2,1,0} constant({...})\n"
        "  %conv = f32[2,4,4,5]{3,2,1,0} convolution(%state, %kernel), "
        "window={size=3x3}, dim_labels=b01f_01io->b01f"
    )
    assert counts["floating-point operations"] == 2 * (2 * 4 * 4 * 5) * (3 * 3 * 3)


def test_a_product_by_a_library_counts_as_a_dot():
    counts = body_of(
        "  %left = f32[4,3]{1,0} constant({...})\n"
        "  %right = f32[3,2]{1,0} constant({...})\n"
        "  %custom-call.1 = f32[4,2]{1,0} custom-call(%left, %right), "
        'custom_call_target="__onednn$matmul"'
    )
    assert counts["floating-point operations"] == 2 * 4 * 2 * 3


def test_of_the_branches_of_a_condition_the_larger_one_counts():
    counts = body_of(
        "  %which = s32[] constant(0)\n"
        "  ROOT %conditional.1 = f32[2,6,6,3]{3,2,1,0} conditional(%which, %state, "
        "%state), branch_computations={%same, %twice}"
    )
    assert counts["floating-point operations"] == 2 * 6 * 6 * 3
    assert counts["instructions"] == 2


def test_a_call_counts_what_it_calls():
    counts = body_of(
        "  ROOT %call.1 = f32[2,6,6,3]{3,2,1,0} call(%state), to_apply=%twice"
    )
    assert counts["kernels"] == 2


def test_integers_are_no_floating_point_operations():
    counts = body_of(
        "  %word = u32[7]{0} constant({...})\n"
        "  %multiply.1 = u32[7]{0} multiply(%word, %word)"
    )
    assert (counts["instructions"], counts["floating-point operations"]) == (1, 0)


def test_a_program_without_a_loop_is_refused():
    text = "ENTRY %main (x: f32[]) -> f32[] {\n  ROOT %x = f32[] parameter(0)\n}\n"
    with pytest.raises(ValueError, match="expected a while loop"):
        hlo_counts.loop_counts(hlo_text.parse(text))
