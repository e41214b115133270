"""Checksums of the runs of `tests.portable_runs`, by the versions that made them.

Plain runs of C51 and SAC are left out: on an emulated Haswell they ended with other
weights than on an AMD EPYC.
"""

import pathlib

VERSIONS = {"tensorflow": "2.21.0", "keras": "3.15.1", "gymnasium": "1.4.0"}
# Of an emulated Haswell; an AMD EPYC with AVX-512 ended with the same weights.
CHECKSUMS = {
    "dqn/plain": "ffdf9a5cb129",
    "dqn/compiled": "6b0f860cb6da",
    "ppo/plain": "63d4dda641bf",
    "ppo/compiled": "eda7050b137c",
    "sac/compiled": "1c171a5a9728",
}
# These multiply larger matrices, whose sums depend on the size of the first cache.
_FIRST_CACHE = pathlib.Path("/sys/devices/system/cpu/cpu0/cache/index0/size")
if _FIRST_CACHE.exists() and _FIRST_CACHE.read_text() == "32K\n":
    CHECKSUMS |= {
        "c51/compiled": "ce7bdc341635",
        "impala/plain": "943bad43743e",
        "impala/compiled": "395d6e495980",
    }
