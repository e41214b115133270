import re
import subprocess
import sys
import typing

from tfrl.typing import types

# The aliases that code written for TF-Agents uses.
TF_AGENTS_NAMES = re.findall(
    r"\w+",
    """
    Array ArraySpec Bool BoundedTensorSpec ComparatorFn Distribution DistributionSpecV2
    Float FloatOrReturningFloat GymEnv GymEnvWrapper Int LossFn Nested NestedArray
    NestedArraySpec NestedBoundedTensorSpec NestedDistribution NestedLayer NestedNetwork
    NestedSpec NestedSpecTensorOrArray NestedTensor NestedTensorOrArray NestedTensorSpec
    NestedVariable Network Observer Optimizer PolicyStep PyEnv PyEnvWrapper Seed Shape
    ShapeSequence Spec SpecTensorOrArray Splitter Tensor TensorOrArray TensorSpec
    TimeStep Trajectory
    """,
)


def test_aliases_of_tf_agents_exist():
    assert [name for name in TF_AGENTS_NAMES if not hasattr(types, name)] == []


def test_aliases_work_inside_other_annotations():
    for name in TF_AGENTS_NAMES:
        alias = getattr(types, name)
        assert typing.Optional[alias] is not None  # noqa: UP045
    assert types.Nested[int, "Ints"] is not None


def test_imports_without_tensorflow():
    code = (
        "import sys; from tfrl.typing import types; types.Tensor\n"
        "assert not {'tensorflow', 'keras', 'gymnasium'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
