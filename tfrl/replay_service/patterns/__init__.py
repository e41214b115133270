"""Rules of a structured writer: patterns of items, and conditions on steps.

>>> from tfrl.replay_service import structured_writer as sw
>>> pattern = sw.pattern_from_transform(
...     {"reward": None}, lambda step: {"last_two": step["reward"][-2:]}
... )
>>> config = sw.create_config(pattern, "table", [sw.Condition.step_index() % 2 == 0])
>>> config.table, len(config.conditions)
('table', 1)
"""
