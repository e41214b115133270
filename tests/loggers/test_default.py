"""The default logger: what it prints and what it writes."""

from tfrl import loggers


def test_it_prints_and_writes_without_nones(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("TFRL_ID", "run")
    printed = []
    logger = loggers.make_default_logger("train_loop", print_fn=printed.append)
    logger.write({"steps": 1, "loss": 0.5, "return": None})
    logger.write({"steps": 2, "loss": 0.25, "return": 7.0})  # Within a second.
    logger.close()
    assert printed == ["[Train Loop] Loss = 0.500 | Steps = 1"]
    path = tmp_path / "tfrl" / "run" / "logs" / "train_loop" / "logs.csv"
    assert path.read_text().splitlines() == ["loss,steps", "0.5,1"]


def test_a_value_that_was_none_at_first_gets_its_column(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("TFRL_ID", "run")
    logger = loggers.make_default_logger("train", time_delta=0, print_fn=str)
    logger.write({"steps": 1, "return": None})
    logger.write({"steps": 2, "return": 7.0})
    path = tmp_path / "tfrl" / "run" / "logs" / "train" / "logs.csv"
    assert path.read_text().splitlines() == ["steps,return", "1,", "2,7.0"]


def test_it_prints_alone_if_nothing_is_to_be_saved(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("HOME", str(tmp_path))
    loggers.make_default_logger("train", save_data=False).write({"a": 1})
    assert capsys.readouterr().out == "[Train] A = 1\n"
    assert list(tmp_path.iterdir()) == []
