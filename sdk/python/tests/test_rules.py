"""What keeps a host from acting too long: each trace that the protocol excludes, by its number."""

from __future__ import annotations

import asyncio
import os
import time

import pytest
from actors import ACT, ADD, ASK, Acting, BREAK_OFF, COMPUTE, COUNT, Counter, ENDED, GET, ITEMS, LONG, STEPS, Slow, WATCH
from peer import Peer, hosting

import greenroom as gr
from greenroom import frames
from greenroom.control import Lease, now
from greenroom.frames import frame, varint


async def test_l2_a_host_whose_lease_is_over_begins_nothing_and_its_turns_see_fenced(peer: Peer) -> None:
    ENDED.clear()
    peer.answers = False
    async with hosting(peer, Slow) as host:
        await peer.seat()
        peer.turn(ASK)
        await peer.called()
        session = next(iter(host.sessions.values()))
        session.lease.until = now()
        peer.turn(LONG)
        await asyncio.sleep(0.05)
        assert session.lost
        assert ENDED == ["fenced", "again"]
        assert peer.said.empty()


async def test_l2_an_await_of_the_sdk_looks_at_the_lease_when_it_ends(peer: Peer) -> None:
    ENDED.clear()
    peer.answers = False
    async with hosting(peer, Slow) as host:
        await peer.seat()
        peer.turn(ASK)
        request, *_ = await peer.called()
        session = next(iter(host.sessions.values()))
        session.lease.until = now()
        peer.reply(request, 1)
        await asyncio.sleep(0.05)
        assert ENDED == ["fenced", "again"]


@pytest.mark.parametrize("what", ["call", "send", "timer"])
async def test_l2_what_a_turn_asks_when_the_lease_is_over_does_not_leave(peer: Peer, what: str) -> None:
    STEPS.anew()
    peer.answers = False
    async with hosting(peer, Acting) as host:
        await peer.seat()
        peer.turn(ACT, {"what": what})
        await STEPS.began.acquire()
        (session,) = host.sessions.values()
        session.lease.until = now()
        STEPS.goes.release()
        await asyncio.wait_for(session.over, 10)
        assert ENDED == ["Fenced"]
        assert peer.said.empty()


@pytest.mark.parametrize("within", [False, True])
async def test_l2_a_streams_step_looks_at_the_lease_before_and_after(peer: Peer, within: bool) -> None:
    STEPS.anew()
    peer.answers = False
    async with hosting(peer, Acting) as host:
        await peer.seat()
        _, stream, _ = await peer.call(ITEMS)
        (session,) = host.sessions.values()
        credit = frame(frames.STREAM_CREDIT, varint(stream), varint(1), varint(0))
        if within:
            peer.say(credit)
            await STEPS.began.acquire()
        session.lease.until = now()
        if not within:
            peer.say(credit)
        STEPS.goes.release()
        await asyncio.wait_for(session.over, 10)
        await asyncio.sleep(0.02)
        assert STEPS.began.locked(), "a step has begun"
        assert peer.said.empty()


async def test_l2_who_consumes_a_stream_looks_at_the_lease_at_each_item(peer: Peer) -> None:
    STEPS.anew()
    peer.answers = False
    async with hosting(peer, Acting) as host:
        await peer.seat()
        peer.turn(ACT, {"what": "consume"})
        await STEPS.began.acquire()
        STEPS.goes.release()
        request, *_ = await peer.called()
        peer.reply(request, {"greenroom:stream": "7.0.1.2.3"})
        _, ask = await peer.hear(frames.ASK)
        opened = ask.varint()
        peer.reply(opened)
        peer.say(frame(frames.STREAM_ITEM, varint(opened - 1), varint(0), frames.packed(1)))
        await STEPS.began.acquire()
        (session,) = host.sessions.values()
        session.lease.until = now()
        STEPS.goes.release()
        peer.say(frame(frames.STREAM_ITEM, varint(opened - 1), varint(1), frames.packed(1)))
        await asyncio.wait_for(session.over, 10)
        await asyncio.sleep(0.02)
        assert STEPS.began.locked(), "an item was taken"
        assert len(ENDED) == 1


async def test_l1_a_lane_is_said_to_be_dropped_when_its_seats_are(peer: Peer) -> None:
    """The lane is one that this side has not seen break."""
    ENDED.clear()
    async with hosting(peer, Slow) as host:
        await peer.seat()
        peer.turn(ASK)
        await peer.called()
        (session,) = host.sessions.values()
        (lane,) = session.lanes.values()
        peer.say_control(frame(frames.LANE_LOST, varint(0)))
        while frames.LANE_DROPPED not in [kind for kind, _ in peer.control]:
            await asyncio.sleep(0.001)
        assert lane.dead and not lane.seats and not lane.turns
        await asyncio.sleep(0.02)
        assert ENDED == ["fenced", "again"]


async def test_l4_the_state_leaves_with_the_reply_in_one_frame_if_it_has_changed(peer: Peer) -> None:
    async with hosting(peer, Counter):
        await peer.seat(state=b"\x01\x01" + frames.packed({"count": 5})[2:])
        assert await peer.call(ADD, {"by": 2}) == (0, 7, frames.packed({"count": 7}))
        assert await peer.call(ADD, {"by": 0}) == (0, 7, b"")
        assert await peer.call(GET) == (0, 7, b"")


async def test_l5_before_a_hello_turns_are_abandoned_and_seats_dropped(peer: Peer) -> None:
    ENDED.clear()
    async with hosting(peer, Slow) as host:
        await peer.seat()
        peer.turn(ASK)
        await peer.called()
        first = next(iter(host.sessions.values()))
        (lane,) = first.lanes.values()
        peer.joined.clear()
        assert peer.control_writer is not None
        peer.control_writer.close()
        await asyncio.wait_for(peer.joined.wait(), 5)
        assert lane.dead and not lane.seats and not lane.turns
        assert ENDED == ["fenced", "again"]
        assert peer.hellos[1]["ended"] == {"session": 1, "secret": bytes(range(16))}
        assert "ended" not in peer.hellos[0]
        await peer.seat(1)
        assert (await peer.call(COMPUTE, {"seconds": 0}))[0] == 0


async def test_l5_what_waits_for_something_else_is_cancelled_with_its_session(peer: Peer) -> None:
    STEPS.anew()
    async with hosting(peer, Acting) as host:
        await peer.seat()
        _, stream, _ = await peer.call(ITEMS)
        peer.say(frame(frames.STREAM_CREDIT, varint(stream), varint(1), varint(0)))
        await STEPS.began.acquire()
        peer.turn(ACT, {"what": "nothing"})
        await STEPS.began.acquire()
        await asyncio.sleep(0.02)
        (session,) = host.sessions.values()
        session.lose("a test")
        await asyncio.sleep(0.02)
        assert ENDED == ["CancelledError", "CancelledError"]


async def test_l5_an_activation_that_goes_on_asks_nothing_once_its_session_is_lost(peer: Peer) -> None:
    STEPS.anew()
    async with hosting(peer, Acting) as host:
        peer.activate(key="waits")
        await STEPS.began.acquire()
        (session,) = host.sessions.values()
        session.lose("a test")
        STEPS.goes.release()
        await asyncio.sleep(0.02)
        assert ENDED == ["Fenced"]


async def test_l6_the_first_lease_counts_from_the_hello(peer: Peer) -> None:
    peer.answers = False
    async with hosting(peer, Slow) as host:
        (session,) = host.sessions.values()
        assert session.lease.until <= peer.greeted + peer.lease_ms * 990_000


async def test_l6_the_lease_counts_from_when_it_was_asked_for() -> None:
    time_now = 1_000_000_000
    lease = Lease(lambda: time_now)
    lease.begin(time_now, 5000)
    lease.ask()
    time_now += 4_000_000_000
    lease.granted(1, 5000)
    assert lease.until == 1_000_000_000 + 4_950_000_000
    lease.granted(1, 60_000)
    lease.granted(7, 60_000)
    assert lease.until == 1_000_000_000 + 4_950_000_000, "an answer counts once, and only to what was asked"
    time_now += 949_999_999
    assert not lease.is_over()
    time_now += 1
    assert lease.is_over()


async def test_l10_the_lease_goes_by_a_clock_that_a_suspended_machine_does_not_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    clocks = {time.CLOCK_BOOTTIME: 10**9}
    monkeypatch.setattr(time, "clock_gettime_ns", lambda clock: clocks.get(clock, 1))  # pyright: ignore[reportUnknownArgumentType, reportUnknownLambdaType]
    monkeypatch.setattr(time, "monotonic_ns", lambda: 1)
    lease = Lease()
    lease.begin(now(), 5000)
    assert not lease.is_over()
    clocks[time.CLOCK_BOOTTIME] += 5 * 10**9
    assert lease.is_over()


async def test_l9_a_forked_child_closes_what_is_its_parents(peer: Peer) -> None:
    async with hosting(peer, Counter) as host:
        await peer.seat()
        session = next(iter(host.sessions.values()))
        (lane,) = session.lanes.values()
        assert lane.socket is not None
        number = lane.socket.fileno()
        assert not os.get_inheritable(number)
        child = os.fork()
        if child == 0:
            try:
                os.fstat(number)
            except OSError:
                os._exit(0 if session.lost and lane.dead else 2)
            os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert await peer.call(GET) == (0, 0, b"")


async def test_l9_a_forked_child_that_lives_keeps_no_connection_of_its_parents_open(peer: Peer) -> None:
    async with hosting(peer, Counter) as host:
        (session,) = host.sessions.values()
        waits, end = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(end)
            os.read(waits, 1)
            os._exit(0)
        session.lose("a test")
        try:
            async with asyncio.timeout(5):
                while peer.left < 2:
                    await asyncio.sleep(0.001)
        finally:
            os.close(end)
            os.close(waits)
            os.waitpid(child, 0)


async def test_l11_what_a_dead_turn_asks_fails_before_the_seat_is_said_to_be_released(peer: Peer) -> None:
    ENDED.clear()
    async with hosting(peer, Slow):
        await peer.seat()
        peer.turn(ASK)
        await peer.called()
        peer.say(frame(frames.DEACTIVATE, varint(1), b"\1", b"\2"))
        kinds: list[int] = []
        while frames.RELEASED not in kinds:
            kind, _ = await peer.hear(frames.RELEASED, frames.CANCEL_CALL)
            kinds.append(kind)
        await asyncio.sleep(0.02)
        assert ENDED == ["fenced", "again"]
        assert peer.said.empty()


async def test_l21_a_failed_handlers_half_changed_memory_is_not_saved(peer: Peer) -> None:
    async with hosting(peer, Counter):
        await peer.seat(state=frames.packed({"count": 5}))
        assert (await peer.call(BREAK_OFF))[0] == 5
        assert await peer.call(ADD, {"by": 1}) == (0, 6, frames.packed({"count": 6}))


async def test_l21_a_failed_handlers_half_changed_memory_is_not_committed(peer: Peer) -> None:
    async with hosting(peer, Ledger):
        await peer.seat()
        assert await peer.call(0, {"by": 5}) == (0, 5, frames.packed(5))
        assert (await peer.call(1))[0] == 5
        assert await peer.call(2) == (0, 5, b"")


class Ledger(gr.Actor, reliable=True):
    count: int = 0

    async def add(self, by: int) -> int:  # 0
        self.count += by
        return self.count

    async def break_off(self) -> None:  # 1
        self.count += 1000
        raise RuntimeError("in the middle")

    @gr.read
    async def get(self) -> int:  # 2
        return self.count


async def test_l24_a_step_that_waits_for_room_does_not_begin_in_a_turn_that_has_begun_meanwhile(peer: Peer) -> None:
    STEPS.anew()
    peer.window = 1
    async with hosting(peer, Acting):
        await peer.seat()
        _, stream, _ = await peer.call(COUNT)
        peer.say(frame(frames.STREAM_CREDIT, varint(stream), varint(2), varint(0)))
        await peer.hear(frames.STREAM_ITEM)
        turn = peer.turn(ACT, {"what": "nothing"})
        await STEPS.began.acquire()
        peer.say(frame(frames.CREDIT, varint(1000)))
        await asyncio.sleep(0.02)
        STEPS.goes.release()
        assert (await peer.end(turn))[0] == 0
        _, body = await peer.hear(frames.STREAM_ITEM)
        assert (body.varint(), body.varint(), body.rest()) == (stream, 1, frames.packed(2))


async def test_l24_a_streams_step_begins_between_exclusive_turns(peer: Peer) -> None:
    async with hosting(peer, Slow):
        await peer.seat()
        _, stream, _ = await peer.call(WATCH)
        turn = peer.turn(LONG)
        peer.say(frame(frames.STREAM_CREDIT, varint(stream), varint(1), varint(0)))
        assert (await peer.end(turn))[0] == 0
        _, body = await peer.hear(frames.STREAM_ITEM)
        assert (body.varint(), body.varint(), body.rest()) == (stream, 0, frames.packed(2))
