"""What a test asks of the processor."""

import os

import pytest

# oneDNN can be told to work as on an older processor, TensorFlow cannot: it asks the
# true one whether it multiplies in bfloat16 or float16, and the process dies of the
# kernel that oneDNN then lacks.
multiplies_in_half_precision = pytest.mark.skipif(
    "ONEDNN_MAX_CPU_ISA" in os.environ,
    reason="ONEDNN_MAX_CPU_ISA: TensorFlow's products in half precision would crash",
)
