"""The cases of the suite for all languages about actors that go from node to node: two nodes, with a probe of each language at each."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from test_languages import HANG, IS_THERE, MISSING, REQUIRED, Probes, language, until

numbers = itertools.count()
pytestmark = pytest.mark.skipif(not (REQUIRED or IS_THERE) or "python" not in IS_THERE, reason="no program: set GREENROOM_BIN")
goes = pytest.mark.parametrize("form", ["traveller", "persistent"])


class Nodes:
    """Two nodes of one cluster: hosts come to the first over its socket, in MessagePack, and to the other through its door, in JSON."""

    def __init__(self, directory: Path) -> None:
        first = Probes("unix", "messagepack", directory / "a", "a", directory)
        self.all = [first, Probes("door", "json", directory / "b", "b", directory)]
        for one, node in itertools.product(IS_THERE, "ab"):
            until(lambda one=one, node=node: first.post(f"{one}_traveller/first/move", {"node": node})[0] == 200)
        self.pids = [{one: probes.running[one].pid for one in IS_THERE} for probes in self.all]

    def at(self, language: str, actor: str) -> int:
        """At which of the two an actor is."""
        pid = self.all[0].value(f"{actor}/where")
        return [pids[language] for pids in self.pids].index(pid)

    def move(self, language: str, actor: str) -> int:
        """Lets an actor go to the other node, and waits until it is there."""
        to = 1 - self.at(language, actor)
        self.all[0].value(f"{actor}/move", {"node": "ab"[to]})
        until(lambda: self.at(language, actor) == to)
        return to

    def stop(self) -> None:
        for probes in self.all:
            probes.stop()


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nodes]:
    nodes = Nodes(tmp_path_factory.mktemp("m"))
    yield nodes
    nodes.stop()


@pytest.fixture
def key() -> str:
    """That of an actor that no other case has."""
    return f"m{next(numbers)}"


@pytest.fixture(autouse=True)
def is_there(request: pytest.FixtureRequest) -> None:
    named: dict[str, Any] = request.node.callspec.params if hasattr(request.node, "callspec") else {}
    if (needed := named.get("language")) and needed not in IS_THERE:
        pytest.skip(f"no {needed}: {MISSING[needed]}")


@language
@goes
def test_an_actor_that_moves_holds_what_it_held(nodes: Nodes, language: str, form: str, key: str) -> None:
    actor = f"{language}_{form}/{key}"
    assert nodes.all[0].value(f"{actor}/add", {"n": 5}) == 5
    for moves in range(1, 4):
        nodes.move(language, actor)
        assert nodes.all[moves % 2].value(f"{actor}/add", {"n": 1}) == 5 + moves


@language
def test_no_call_is_lost_or_doubled_while_an_actor_goes_to_and_fro(nodes: Nodes, language: str, key: str) -> None:
    actor = f"{language}_traveller/{key}"
    with ThreadPoolExecutor(4) as pool:
        calls = [pool.submit(nodes.all[n % 2].post, f"{actor}/add", {"n": 1}) for n in range(200)]
        for _ in range(4):
            nodes.move(language, actor)
        assert [call.result()[0] for call in calls] == [200] * 200
    assert nodes.all[0].value(f"{actor}/get") == 200


@language
def test_what_cannot_move_is_told_so_by_name_and_stays(nodes: Nodes, language: str, key: str) -> None:
    refused = [("traveller", "c", "no node called"), ("volatile", "b", "let the kind say `migrate`"), ("reliable", "b", "their partition")]
    for form, node, why in refused:
        actor = f"{language}_{form}/{key}"
        nodes.all[0].value(f"{actor}/add", {"n": 3})
        status, problem = nodes.all[0].post(f"{actor}/move", {"node": node})
        assert status != 200 and why in str(problem), problem
        assert nodes.all[0].value(f"{actor}/get") == 3


def test_what_a_node_that_drains_has_goes_to_the_other(nodes: Nodes) -> None:
    actors = [f"{one}_{form}/d{n}" for one in IS_THERE for form in ("traveller", "persistent") for n in range(8)]
    first, other = nodes.all
    for actor in actors:
        assert first.value(f"{actor}/add", {"n": 7}) == 7
    here, there = (set(pids.values()) for pids in nodes.pids)
    assert any(first.value(f"{actor}/where") in here for actor in actors), "none of them is there"
    with ThreadPoolExecutor(4) as pool:
        first.node.process.terminate()
        calls = [pool.submit(other.post, f"{actor}/add", {"n": 1}) for actor in actors]
        assert [call.result() for call in calls] == [(200, 8)] * len(actors)
    assert first.node.process.wait(HANG) == 0
    assert {other.value(f"{actor}/where") for actor in actors} <= there
