# SPDX-License-Identifier: Apache-2.0
"""The page that compares networks of today with onnxruntime's int8."""

import pytest

from bench.accuracy import peers
from bench.networks import report
from bench.networks.beside import PEER, Beside, cells, document
from bench.networks.catalogue import NETWORKS


def given(ours, *theirs):
    settings = peers.PEERS[PEER].settings
    assert len(settings) == len(theirs)
    return Beside(
        name="deit_tiny", ours=ours, theirs=dict(zip(settings, theirs, strict=True))
    )


def test_the_best_of_its_settings_counts_and_failures_are_told():
    one = given(30.0, 20.0, "no memory", 25.5, 24.0)
    assert cells(one) == ["deit_tiny", "30.0", "20.0", "failed", "25.5", "24.0", "+4.5"]
    text = document("as it was typed", [one])
    assert "as it was typed" in text
    assert "- deit_tiny, Percentile 99.99: no memory." in text


@pytest.mark.parametrize(("ours", "status"), [(25.1, 0), (24.9, 1)])
def test_being_behind_by_more_than_half_a_decibel_fails(
    ours, status, monkeypatch, tmp_path
):
    one = given(ours, 25.5, 25.0, 25.0, 25.0)
    monkeypatch.setattr(report.beside, "beside", lambda _name: one)
    page = tmp_path / "peers.md"
    assert report.compared(["deit_tiny"], page) == status
    assert "--beside --only deit_tiny --write" in page.read_text()


def test_its_networks_are_in_the_catalogue():
    assert set(report.beside.NETWORKS) <= set(NETWORKS)
