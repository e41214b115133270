"""Experience of every form is converted to the form that an agent needs."""

import collections

import numpy as np
import pytest
import tensorflow as tf

from tfrl.agents import data_converter
from tfrl.specs import tensor_spec
from tfrl.trajectories import policy_step, trajectory
from tfrl.trajectories import time_step as ts

FIRST, MID, LAST = 0, 1, 2
OBSERVATION = {
    "position": tf.TensorSpec([2], tf.float32),
    "image": tf.TensorSpec([3], tf.uint8),
}
TIME_STEP = ts.time_step_spec(OBSERVATION)
ACTION = tensor_spec.BoundedTensorSpec([], tf.int32, 0, 1)
INFO = {"log": tf.TensorSpec([], tf.float32)}
CONTEXT = data_converter.DataContext(TIME_STEP, ACTION, INFO)
HALF_CONTEXT = data_converter.DataContext(
    TIME_STEP, ACTION, INFO, use_half_transition=True
)


def frames(batch_size=2, num_frames=3):
    """Frames `[B, T]` inside an episode, numbered so that each one differs."""
    numbers = np.arange(batch_size * num_frames).reshape(batch_size, num_frames)
    shape = list(numbers.shape)
    return trajectory.Trajectory(
        step_type=tf.fill(shape, MID),
        observation={
            "position": tf.constant(np.stack([numbers, -numbers], -1), tf.float32),
            "image": tf.constant(np.stack([numbers] * 3, -1), tf.uint8),
        },
        action=tf.constant(numbers % 2, tf.int32),
        policy_info={"log": tf.zeros(shape)},
        next_step_type=tf.fill(shape, MID),
        reward=tf.constant(numbers, tf.float32),
        discount=tf.fill(shape, 0.5),
    )


def with_fields(value, **fields):
    return value._replace(**fields)


def assert_same(some, other):
    tf.nest.assert_same_structure(some, other)
    for a, b in zip(tf.nest.flatten(some), tf.nest.flatten(other), strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a, b)


def sequence_of_transitions():
    """The transitions `[2, 2]` of the frames, made by hand."""
    value = frames()
    now = tf.nest.map_structure(lambda t: t[:, :-1], value)
    later = tf.nest.map_structure(lambda t: t[:, 1:], value)
    return trajectory.Transition(
        ts.TimeStep(
            now.step_type,
            reward=tf.zeros([2, 2]),
            discount=tf.zeros([2, 2]),
            observation=now.observation,
        ),
        policy_step.PolicyStep(now.action, (), now.policy_info),
        ts.TimeStep(
            now.next_step_type,
            reward=now.reward,
            discount=now.discount,
            observation=later.observation,
        ),
    )


def first_transition():
    """The same `[2]`, without the time dimension."""
    return tf.nest.map_structure(lambda t: t[:, 0], sequence_of_transitions())


CONVERTERS = {
    "trajectory": data_converter.AsTrajectory(CONTEXT, sequence_length=3),
    "transition": data_converter.AsTransition(CONTEXT),
    "half": data_converter.AsHalfTransition(HALF_CONTEXT),
    "n_step": data_converter.AsNStepTransition(CONTEXT, gamma=0.5, n=2),
}


# --- The data context.


def test_context_describes_trajectories_and_transitions():
    state = tf.TensorSpec([4], tf.float32)
    context = data_converter.DataContext(TIME_STEP, ACTION, INFO, state)
    assert context.trajectory_spec == trajectory.Trajectory(
        step_type=TIME_STEP.step_type,
        observation=OBSERVATION,
        action=ACTION,
        policy_info=INFO,
        next_step_type=TIME_STEP.step_type,
        reward=TIME_STEP.reward,
        discount=TIME_STEP.discount,
    )
    assert context.transition_spec == trajectory.Transition(
        TIME_STEP, policy_step.PolicyStep(ACTION, state, INFO), TIME_STEP
    )
    assert type(context.trajectory_spec.observation) is dict


def test_half_transition_context_has_a_scalar_next_observation():
    spec = HALF_CONTEXT.transition_spec.next_time_step.observation
    assert (spec.shape.as_list(), spec.dtype) == ([], tf.float32)


# --- Trajectories.


def test_trajectory_passes_unchanged():
    assert_same(CONVERTERS["trajectory"](frames()), frames())


def test_trajectory_of_one_outer_dimension():
    step = tf.nest.map_structure(lambda t: t[:, 0], frames())
    convert = data_converter.AsTrajectory(CONTEXT, num_outer_dims=1)
    assert_same(convert(step), step)


def test_transitions_become_frames():
    result = data_converter.AsTrajectory(CONTEXT, sequence_length=2)(
        sequence_of_transitions()
    )
    assert_same(result, tf.nest.map_structure(lambda t: t[:, :2], frames()))


# --- Transitions.


def test_frames_become_transitions():
    assert_same(CONVERTERS["transition"](frames()), sequence_of_transitions())


def test_two_frames_become_one_transition_without_time():
    convert = data_converter.AsTransition(CONTEXT, squeeze_time_dim=True)
    assert_same(convert(frames(2, 2)).time_step.reward, tf.zeros([2]))
    result = convert(tf.nest.map_structure(lambda t: t[:, :2], frames()))
    assert_same(result, first_transition())
    assert_same(convert(first_transition()), first_transition())


def test_transitions_at_boundaries_and_cuts_are_marked():
    value = with_fields(
        frames(2, 4),
        step_type=tf.constant([[MID, LAST, FIRST, MID], [MID, FIRST, MID, MID]]),
        next_step_type=tf.constant([[LAST, FIRST, MID, MID], [MID, MID, MID, MID]]),
    )
    result = data_converter.AsTransition(CONTEXT)(value)
    np.testing.assert_array_equal(
        result.time_step.is_last(), [[False, True, False], [True, False, False]]
    )


def test_first_observation_can_be_put_before_the_next_ones():
    convert = data_converter.AsTransition(CONTEXT, prepend_t0_to_next_time_step=True)
    result = convert(frames())
    assert_same(result.next_time_step.observation, frames().observation)
    np.testing.assert_array_equal(
        result.time_step.observation["position"],
        frames().observation["position"][:, :2],
    )


@pytest.mark.parametrize("squeeze", [False, True])
def test_half_transition_has_zeros_for_the_next_observation(squeeze):
    value = frames(2, 1)
    convert = data_converter.AsHalfTransition(HALF_CONTEXT, squeeze_time_dim=squeeze)
    expected = tf.nest.map_structure(lambda t: t[:, 0], value) if squeeze else value
    result = convert(value)
    assert_same(result.next_time_step.observation, tf.zeros_like(expected.discount))
    assert_same(result.time_step.observation, expected.observation)
    assert_same(result.next_time_step.reward, expected.reward)
    assert_same(result.next_time_step.discount, expected.discount)
    assert_same(result.action_step.action, expected.action)
    assert_same(convert(result), result)


def test_n_step_transition_by_hand():
    # Rewards 0, 1, 2 and 3, 4, 5; gamma and the environment's discount are 0.5.
    result = CONVERTERS["n_step"](frames())
    np.testing.assert_array_equal(
        result.next_time_step.reward, [0 + 0.25, 3 + 0.25 * 4]
    )
    np.testing.assert_array_equal(result.next_time_step.discount, [0.5**3] * 2)
    np.testing.assert_array_equal(
        result.next_time_step.observation["position"],
        frames().observation["position"][:, 2],
    )
    np.testing.assert_array_equal(result.action_step.action, frames().action[:, 0])


@pytest.mark.parametrize("num_frames", [2, 5])
def test_n_step_transition_of_any_length(num_frames):
    convert = data_converter.AsNStepTransition(CONTEXT, gamma=1.0)
    reward = convert(frames(1, num_frames)).next_time_step.reward
    expected = sum(0.5**t * t for t in range(num_frames - 1))
    np.testing.assert_allclose(reward, [expected], rtol=1e-6)


def test_transition_is_an_n_step_transition_already():
    assert_same(CONVERTERS["n_step"](first_transition()), first_transition())


# --- What every converter does.


@pytest.mark.parametrize("name", CONVERTERS)
def test_further_keys_are_dropped(name):
    value = frames()
    more = with_fields(
        value,
        observation={**value.observation, "extra": tf.zeros([2, 3, 9])},
        policy_info={**value.policy_info, "extra": tf.zeros([2, 3])},
    )
    assert_same(CONVERTERS[name](more), CONVERTERS[name](value))


def test_further_keys_of_transitions_are_dropped():
    value = first_transition()
    observation = {**value.time_step.observation, "extra": tf.zeros([2, 9])}
    more = value._replace(time_step=value.time_step._replace(observation=observation))
    assert_same(CONVERTERS["n_step"](more), value)


@pytest.mark.parametrize("name", CONVERTERS)
def test_arrays_become_tensors(name):
    arrays = tf.nest.map_structure(lambda t: t.numpy(), frames())
    result = CONVERTERS[name](arrays)
    assert all(tf.is_tensor(t) for t in tf.nest.flatten(result))
    assert_same(result, CONVERTERS[name](frames()))


@pytest.mark.parametrize("name", CONVERTERS)
def test_named_tuple_with_the_same_fields_is_as_good(name):
    look_alike = collections.namedtuple("Other", trajectory.Trajectory._fields)
    assert_same(CONVERTERS[name](look_alike(*frames())), CONVERTERS[name](frames()))


@pytest.mark.parametrize("name", CONVERTERS)
def test_batch_size_may_be_unknown(name):
    signature = tf.nest.map_structure(
        lambda t: tf.TensorSpec([None, *t.shape[1:]], t.dtype), frames()
    )
    traced = tf.function(CONVERTERS[name], input_signature=[signature])
    assert_same(traced(frames()), CONVERTERS[name](frames()))


def test_state_of_the_policy_has_no_time_dimension():
    context = data_converter.DataContext(
        TIME_STEP, ACTION, INFO, tf.TensorSpec([4], tf.float32)
    )
    value = sequence_of_transitions()
    value = value._replace(
        action_step=value.action_step._replace(state=tf.ones([2, 4]))
    )
    result = data_converter.AsTransition(context)(value)
    assert_same(result, value)


# --- Errors.


@pytest.mark.parametrize("name", CONVERTERS)
@pytest.mark.parametrize("value", [{"reward": 1}, (1, 2), None, 3.0])
def test_other_types(name, value):
    with pytest.raises(
        TypeError,
        match=r"experience: expected a Trajectory or a Transition, got .*; build one",
    ):
        CONVERTERS[name](value)


@pytest.mark.parametrize("name", ["trajectory", "n_step"])
@pytest.mark.parametrize("num_frames", [2, 4])
def test_wrong_length(name, num_frames):
    with pytest.raises(
        ValueError,
        match=rf"experience.step_type: expected the time dimension T = 3 .*"
        rf"got shape \(2, {num_frames}\); sample with num_steps=3",
    ):
        CONVERTERS[name](frames(2, num_frames))


@pytest.mark.parametrize("num_frames", [1, 3])
def test_squeezing_needs_two_frames(num_frames):
    convert = data_converter.AsTransition(CONTEXT, squeeze_time_dim=True)
    with pytest.raises(ValueError, match="expected the time dimension T = 2"):
        convert(frames(2, num_frames))


@pytest.mark.parametrize("name", CONVERTERS)
@pytest.mark.parametrize("index", [lambda t: t[0], lambda t: t[tf.newaxis]])
def test_wrong_number_of_outer_dimensions(name, index):
    value = tf.nest.map_structure(index, frames())
    with pytest.raises(
        ValueError,
        match=r"expected 2 outer dimension\(s\), every tensor of shape \[B, T\] \+ s",
    ):
        CONVERTERS[name](value)


def test_transition_with_time_where_none_is_wanted():
    with pytest.raises(ValueError, match=r"expected 1 outer dimension\(s\)"):
        CONVERTERS["n_step"](sequence_of_transitions())


@pytest.mark.parametrize("name", CONVERTERS)
@pytest.mark.parametrize("shape", [[1, 3], [4, 3]])
def test_batch_size_that_one_field_has_alone(name, shape):
    with pytest.raises(
        ValueError,
        match=r"experience.reward: got outer dimensions .*, expected \(2, 3\) as "
        r"experience.step_type has; every tensor",
    ):
        CONVERTERS[name](with_fields(frames(), reward=tf.zeros(shape)))


def test_batch_size_that_one_part_of_a_transition_has_alone():
    value = first_transition()
    step = value.action_step._replace(action=tf.zeros([1], tf.int32))
    with pytest.raises(ValueError, match=r"experience.action_step/action: got outer"):
        CONVERTERS["n_step"](value._replace(action_step=step))


@pytest.mark.parametrize("name", CONVERTERS)
def test_wrong_dtype(name):
    with pytest.raises(
        TypeError,
        match=r"experience: Tensor dtypes do not match spec dtypes:(.|\n)*"
        r"reward: float64 \(2, 3\) vs. float32 \(\)(.|\n)*Cast the tensors",
    ):
        CONVERTERS[name](with_fields(frames(), reward=tf.zeros([2, 3], tf.float64)))


@pytest.mark.parametrize("name", CONVERTERS)
def test_missing_key(name):
    value = with_fields(
        frames(), observation={"position": frames().observation["position"]}
    )
    with pytest.raises(
        ValueError, match=r"experience: .*structures(.|\n)*observation/image"
    ):
        CONVERTERS[name](value)


@pytest.mark.parametrize("name", CONVERTERS)
def test_wrong_inner_shape(name):
    value = with_fields(
        frames(),
        observation={**frames().observation, "position": tf.zeros([2, 3, 5])},
    )
    with pytest.raises(ValueError, match=r"experience: (.|\n)*observation/position"):
        CONVERTERS[name](value)


def test_wrong_policy_state():
    context = data_converter.DataContext(
        TIME_STEP, ACTION, INFO, tf.TensorSpec([4], tf.float32)
    )
    value = sequence_of_transitions()
    value = value._replace(
        action_step=value.action_step._replace(state=tf.ones([2, 2, 4]))
    )
    with pytest.raises(ValueError, match=r"expected 1 outer dimension"):
        data_converter.AsTransition(context)(value)


def test_specs_of_a_context_cannot_be_exchanged():
    context = data_converter.DataContext(
        ts.time_step_spec(tf.TensorSpec([2])), tf.TensorSpec([]), (), {"h": ACTION}
    )
    assert context.policy_state_spec == {"h": ACTION}
    with pytest.raises(AttributeError):
        context.action_spec = ACTION


@pytest.mark.parametrize(
    ("kind", "num_frames", "shape"),
    [
        (lambda c: data_converter.AsTrajectory(c), 3, [2, 3]),
        (lambda c: data_converter.AsTransition(c), 3, [2, 2]),
        (lambda c: data_converter.AsTransition(c, squeeze_time_dim=True), 2, [2]),
        (lambda c: data_converter.AsNStepTransition(c, gamma=0.5, n=1), 2, [2]),
        (lambda c: data_converter.AsNStepTransition(c, gamma=0.5, n=2), 3, [2]),
    ],
)
def test_a_step_type_without_a_spec_stays_empty(kind, num_frames, shape):
    context = data_converter.DataContext(TIME_STEP._replace(step_type=()), ACTION, INFO)
    given = frames(num_frames=num_frames)._replace(step_type=(), next_step_type=())
    converted = kind(context)(given)
    if isinstance(converted, trajectory.Trajectory):
        types, rewards = converted[0], converted.reward
    else:
        types, rewards = converted.time_step[0], converted.next_time_step.reward
    assert types == ()
    assert rewards.shape == shape
