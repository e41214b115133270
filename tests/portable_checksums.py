"""Checksums of the runs of `tests.portable_runs`, by the versions that made them.

Plain runs of C51 and SAC are left out: on an emulated Haswell they ended with other
weights than on an AMD EPYC.
"""

VERSIONS = {"tensorflow": "2.21.0", "keras": "3.15.1", "gymnasium": "1.4.0"}
CHECKSUMS = {
    "dqn/plain": "ffdf9a5cb129",
    "dqn/compiled": "c14b657f315a",
    "ppo/plain": "63d4dda641bf",
    "ppo/compiled": "3ef32bec48d3",
    "sac/compiled": "eb2ab0cdc6a6",
    "c51/compiled": "7cf7e654c30d",
    "impala/plain": "943bad43743e",
    "impala/compiled": "fe72fffbef0e",
}
