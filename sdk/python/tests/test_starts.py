"""Which nodes let a host in, where there are several, against scripted ones."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from actors import Counter, Slow
from peer import Peer

import greenroom as gr
from greenroom.ways import find


@asynccontextmanager
async def peers(tmp_path: Path, *refusals: str) -> AsyncGenerator[list[Peer]]:
    """Nodes, each with its reason to refuse all kinds, if any."""
    found = [Peer(tmp_path / f"{number}.sock") for number in range(len(refusals))]
    for peer, why in zip(found, refusals, strict=True):
        peer.refuses = why
        await peer.listen()
    yield found
    for peer in found:
        await peer.stop()


async def test_a_host_has_started_as_soon_as_one_node_takes_what_it_offers(tmp_path: Path) -> None:
    async with peers(tmp_path, "it is another team's", "") as (refuses, takes):
        takes.waits = asyncio.Event()
        host = gr.Host([Slow], f"{refuses.url},{takes.url}")
        starts = asyncio.create_task(host.start(60))
        while not refuses.left:
            await asyncio.sleep(0.01)
        assert not starts.done(), "one refusal is no end, and no start"
        takes.waits.set()
        await starts
        runs = asyncio.create_task(host.run())
        await takes.seat()
        assert not runs.done()
        await host.close()
        await runs


async def test_a_host_that_all_nodes_refuse_fails_with_each_reason(tmp_path: Path) -> None:
    async with peers(tmp_path, "here not", "nor here") as (one, other):
        host = gr.Host([Slow, Counter], f"{one.url},{other.url}")
        with pytest.raises(gr.NotLetIn) as raised:
            await host.start(60)
        for words in (f"{one.url}: slow is refused: here not; counter is refused: here not", f"{other.url}: slow is refused: nor here"):
            assert words in str(raised.value)


async def test_a_host_that_one_node_refuses_and_none_takes_in_time_names_both(tmp_path: Path) -> None:
    async with peers(tmp_path, "here not") as (one,):
        said, timeout = "", 0.25
        # As long as it takes a busy machine to hear both.
        while not (f"{one.url}: slow is refused: here not" in said and f"unix:{tmp_path}/none.sock: [Errno 2] No such file" in said):
            with pytest.raises(gr.NoNode) as raised:
                await gr.Host([Slow], f"{one.url},unix:{tmp_path}/none.sock").start(timeout)
            said, timeout = str(raised.value), 2 * timeout


@pytest.mark.parametrize(("url", "is_sent"), [
    ("https://db.example.org:7070", True), ("http://127.0.0.1:7070", True), ("http://LOCALHOST:7070", True), ("http://[::1]:7070", True),
    ("unix:/tmp/x.sock", True), ("http://db.example.org:7070", False), ("http://10.0.0.1", False), ("http://127.0.0.1.example.org", False),
])
def test_a_token_goes_over_tls_or_to_this_machine(url: str, is_sent: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GREENROOM_TOKEN", "\ufeffsecret\n")
    if is_sent:
        assert [way.token for way in find(url)] == ["secret"]
    else:
        with pytest.raises(gr.NoNode, match="plain HTTP, where others could read the token"):
            gr.Host([Slow], url)
    monkeypatch.setenv("GREENROOM_TOKEN", "two words")
    with pytest.raises(gr.NoNode, match="no token") as raised:
        find(url)
    assert "two words" not in str(raised.value)
    monkeypatch.delenv("GREENROOM_TOKEN")
    assert [way.token for way in find(url)] == [None]


@pytest.mark.parametrize("url", [",", " , ", "http://localhost:99999", "http://:80", "http://localhost:x", "ftp://x", "unix:"])
def test_what_is_no_way_in_is_refused_before_anybody_is_dialled(url: str) -> None:
    with pytest.raises(gr.NoNode, match="write unix:/PATH, or http://HOST:PORT"):
        gr.Host([Slow], url)
