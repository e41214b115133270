"""Checksums of the runs of `tests.portable_runs`, by the versions that made them."""

VERSIONS = {"tensorflow": "2.21.0", "keras": "3.15.1", "gymnasium": "1.4.0"}
CHECKSUMS = {
    "dqn/plain": "",
    "dqn/compiled": "",
    "ppo/plain": "",
    "ppo/compiled": "",
    "sac/plain": "",
    "sac/compiled": "",
    "c51/plain": "",
    "c51/compiled": "",
    "impala/plain": "",
    "impala/compiled": "",
}
