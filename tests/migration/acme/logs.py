"""Loggers that are made and written to as in Acme's examples."""

import contextlib
import io
import tempfile

from acme.utils import loggers

lines = io.StringIO()
with contextlib.redirect_stdout(lines):
    terminal = loggers.TerminalLogger(label="EVALUATION", time_delta=10)
    terminal.write({"episodes": 0, "return": 0.0})
assert lines.getvalue() == "[Evaluation] Episodes = 0 | Return = 0.000\n"

folder = tempfile.mkdtemp()
table = loggers.CSVLogger(logdir=folder, label="evaluation")
table.write({"return": 0.0, "episodes": 0})
table.close()
assert table.file_path.startswith(folder)
assert table.file_path.endswith("logs/evaluation/logs.csv")
with open(table.file_path) as file:
    assert file.read().split() == ["episodes,return", "0,0.0"]
