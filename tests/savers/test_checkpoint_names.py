from tfrl.savers import checkpoint_names


def test_checkpoints_are_sorted_by_their_numbers(tmp_path):
    for name in ("ckpt-9.index", "ckpt-10.data-00000-of-00002", "ckpt-x.index"):
        (tmp_path / name).touch()
    found = checkpoint_names.newest_first(tmp_path)
    assert found == [str(tmp_path / "ckpt-10"), str(tmp_path / "ckpt-9")]
