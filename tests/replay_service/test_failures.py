"""Data that survive killed processes; `benchmarks.service_failures` kills them."""

from __future__ import annotations

import pytest

from benchmarks import service_connections
from benchmarks import service_failures as failures


def test_a_writer_killed_in_an_episode_loses_only_what_it_had_not_flushed():
    assert "whole and in order" in failures.killed_writer()


def test_clients_go_on_with_a_killed_server_that_starts_from_its_checkpoint(tmp_path):
    assert "writer and sampler went on" in failures.killed_server(tmp_path)


@pytest.mark.slow
def test_a_checkpoint_that_was_not_finished_is_left_aside_loudly(tmp_path):
    assert "is not used" in failures.killed_while_writing(tmp_path)


@pytest.mark.slow
def test_a_server_does_not_start_from_a_damaged_checkpoint(tmp_path):
    assert "no checkpoint to start from is complete" in failures.damaged_checkpoint(
        tmp_path
    )


@pytest.mark.slow
def test_every_item_goes_in_once_when_connections_break_all_the_time():
    assert service_connections.disturb(10.0).faults() == []
