"""Runs the notebooks of `docs/tutorials` and keeps their outputs in them.

    python docs/tools/run_notebooks.py                     # all of them
    python docs/tools/run_notebooks.py compiled_training   # some

It needs `pip install 'tfrl[docs]'`. A notebook runs in an empty folder of its own. Tags
of its cells: `varies` if numbers in the output depend on the machine or the clock, and
`remove-stderr` to show only standard output.
"""

import os
import pathlib
import resource
import sys
import tempfile
import time

import nbclient
import nbformat

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
TUTORIALS = REPOSITORY / "docs" / "tutorials"
# What tests and benchmarks set, and a reader does not.
UNSET = ("MPLBACKEND", "XLA_FLAGS", "TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS")


def run(notebook):
    """Runs the cells of a notebook, and puts their outputs into it.

    Args:
      notebook: The notebook, which is changed.

    Raises:
      nbclient.exceptions.CellExecutionError: A cell has failed.
    """
    environment = {name: x for name, x in os.environ.items() if name not in UNSET}
    environment["PYTHONPATH"] = str(REPOSITORY)
    with tempfile.TemporaryDirectory() as folder:
        client = nbclient.NotebookClient(
            notebook,
            timeout=1800,
            kernel_name="python3",
            record_timing=False,
            coalesce_streams=True,
            resources={"metadata": {"path": folder}},
        )
        client.execute(env=environment)
    for cell in notebook.cells:
        if "remove-stderr" in cell.metadata.get("tags", []):  # MyST-NB's name.
            cell.outputs = [x for x in cell.outputs if x.get("name") != "stderr"]


def normalize(notebook):
    """Leaves out what differs from run to run, or from editor to editor."""
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    notebook.metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    for number, cell in enumerate(notebook.cells, 1):
        cell.id = f"cell-{number}"
        tags = cell.metadata.get("tags")
        cell.metadata = {"tags": tags} if tags else {}


def main():
    """Runs the notebooks that the command line names."""
    names = sys.argv[1:] or sorted(path.stem for path in TUTORIALS.glob("*.ipynb"))
    for name in names:
        path = TUTORIALS / f"{name}.ipynb"
        notebook, start = nbformat.read(path, as_version=4), time.perf_counter()
        run(notebook)
        normalize(notebook)
        nbformat.write(notebook, path)
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds, processors = time.perf_counter() - start, used.ru_utime + used.ru_stime
        print(f"{name}: {seconds:.0f} s, {processors:.0f} s of processors so far")


if __name__ == "__main__":
    main()
