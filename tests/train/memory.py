"""The memory of this process."""

import pathlib
import resource


def resident_megabytes():
    """Returns the memory in use now, unlike `ru_maxrss`, which never falls."""
    pages = int(pathlib.Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 2**20
