"""The example in three languages, `examples/languages`: members, rooms and wallets, each served by a process of another language, which change places
over one store."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from greenroom.testing import Program

ROOT = Path(__file__).parents[3]
EXAMPLE = ROOT / "examples/languages"
TYPESCRIPT = ROOT / "sdk/typescript"
TSC = TYPESCRIPT / "node_modules/.bin/tsc"
REQUIRED = os.environ.get("GREENROOM_LANGUAGES") == "all"
MISSING = [
    what
    for what, found in (
        ("GREENROOM_BIN", os.environ.get("GREENROOM_BIN")),
        ("Go 1.26", shutil.which("go")),
        ("`npm run build` in sdk/typescript", shutil.which("node") and TSC.exists() and (TYPESCRIPT / "dist/src/index.js").exists()),
    )
    if not found
]
LANGUAGES = ["go", "python", "typescript"]
KINDS = ["member", "room", "wallet"]
POSTS = 90
"""While hosts are killed, in each rotation."""
HANG = 120.0
"""Far more than anything here takes."""

pytestmark = pytest.mark.skipif(bool(MISSING) and not REQUIRED, reason=f"no {' and no '.join(MISSING)}")


class Chat:
    """A node with a store and a journal, and a host of each kind."""

    def __init__(self, directory: Path) -> None:
        config = directory / "node.toml"
        at = f"sqlite:{directory}"
        config.write_text(f'table = "{at}/chat.db"\n[reliable]\njournal = "{at}/journal.db"\npartitions = 8\n[hosts]\nlease = 1.0\n')
        self.node = Program("--config", str(config), directory=directory)
        self.commands = {"python": [sys.executable, str(EXAMPLE / "chat.py")], "typescript": _typescript(directory), "go": _go(directory)}
        self.served: dict[str, str] = {}
        self.hosts: dict[str, subprocess.Popen[bytes]] = {}

    def serve(self, kind: str, language: str) -> None:
        self.served[kind] = language
        self.hosts[kind] = subprocess.Popen([*self.commands[language], kind], env=os.environ | {"GREENROOM_HOST": self.node.url})

    def kill(self, kind: str) -> None:
        """`kill -9`; another one of its language comes."""
        self.hosts[kind].kill()
        self.hosts[kind].wait()
        self.serve(kind, self.served[kind])

    def stop_hosts(self) -> None:
        for host in self.hosts.values():
            host.kill()
            host.wait()

    def call(self, path: str, **arguments: Any) -> tuple[int, Any]:
        """The status, and the value or the problem."""
        headers = {"content-type": "application/json", "greenroom-timeout": "20s"}
        request = urllib.request.Request(f"{self.node.http}/{path}", json.dumps(arguments).encode(), headers)
        try:
            with urllib.request.urlopen(request, timeout=HANG) as answer:
                return answer.status, json.loads(answer.read() or b"null")
        except urllib.error.HTTPError as error:
            return error.code, json.loads(error.read())
        except OSError as error:
            return 503, str(error)

    def insist(self, path: str, **arguments: Any) -> Any:
        """The value of a call that is made again until it is answered."""
        until = time.monotonic() + HANG
        while (answer := self.call(path, **arguments))[0] != 200:
            assert answer[0] >= 500 or "unknown-kind" in str(answer), answer
            assert time.monotonic() < until, f"{path} {arguments} is not answered: {answer}"
            time.sleep(0.02)
        return answer[1]

    def error(self, path: str, **arguments: Any) -> Any:
        """The error of a method that fails by its own."""
        status, problem = self.call(path, **arguments)
        assert status == 422, problem
        return problem["error"]

    def replayed(self, room: str) -> list[str]:
        """What comes of a room's stream to the door."""
        headers = {"accept": "text/event-stream", "content-type": "application/json"}
        request = urllib.request.Request(f"{self.node.http}/room/{room}/replay", b"{}", headers)
        with urllib.request.urlopen(request, timeout=HANG) as answer:
            lines = answer.read().decode().splitlines()
        return [json.loads(line[6:])["text"] for line in lines if line.startswith("data: {")]


def _typescript(directory: Path) -> list[str]:
    """The example compiled, where `greenroom` is this package."""
    modules = directory / "node_modules"
    modules.mkdir()
    (modules / "greenroom").symlink_to(TYPESCRIPT)
    (directory / "package.json").write_text('{"type": "module"}')
    shutil.copy(EXAMPLE / "chat.ts", directory)
    flags = "--strict --module nodenext --target es2022 --skipLibCheck --types node --typeRoots".split()
    subprocess.run([TSC, *flags, TYPESCRIPT / "node_modules/@types", "chat.ts"], cwd=directory, check=True)
    return ["node", str(directory / "chat.js")]


def _go(directory: Path) -> list[str]:
    subprocess.run(["go", "-C", str(EXAMPLE), "vet", "."], check=True)
    subprocess.run(["go", "-C", str(EXAMPLE), "build", "-o", str(directory / "chat"), "."], check=True)
    return [str(directory / "chat")]


@pytest.fixture
def chat(tmp_path: Path) -> Iterator[Chat]:
    chat = Chat(tmp_path)
    try:
        yield chat
    finally:
        chat.stop_hosts()
        chat.node.stop()


def until(holds: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + HANG
    while not holds():
        assert time.monotonic() < end, what
        time.sleep(0.02)


def test_members_rooms_and_wallets_of_three_languages_change_places_and_each_post_is_paid_once(chat: Chat) -> None:
    posted: list[str] = []
    for rotation in range(len(LANGUAGES)):
        if rotation:
            chat.stop_hosts()
            chat.node.stop()
            chat.node.restart()
        for place, kind in enumerate(KINDS):
            chat.serve(kind, LANGUAGES[(place + rotation) % len(LANGUAGES)])
        talk(chat, rotation, posted)
        are_killed(chat, rotation)


def talk(chat: Chat, rotation: int, posted: list[str]) -> None:
    """Goes on with the lobby, where `posted` was said, and with the wallet of ada, who got 20 coins at first."""
    # A list is a list in all of them, and empty at first.
    assert chat.insist("member/new/inbox") == chat.insist("room/new/history") == []

    # What an order was answered is known to the next language, and nothing is done twice.
    assert chat.insist("wallet/ada/deposit", order="gift", amount=20) == 20
    assert chat.insist("wallet/ada/balance") == 20 - len(posted)
    assert chat.insist("wallet/lobby/balance") == len(posted)
    assert [message["text"] for message in chat.insist("room/lobby/history")] == posted
    for number, text in enumerate(posted, 1):
        assert chat.insist("room/lobby/post", order=text, user="ada", text=text) == number

    # Who joins reads the room's stream, and hears its topic from then on.
    assert chat.insist("member/bob/join", room="lobby") == len(posted)
    text = f"post {rotation}"
    for _ in range(2):
        assert chat.insist("room/lobby/post", order=text, user="ada", text=text) == len(posted) + 1
    posted.append(text)
    # A payment whose post was lost is not paid again by the post.
    text = f"half {rotation}"
    left = chat.insist("wallet/ada/pay", order=f"lobby/{text}", to="lobby", amount=1)
    assert chat.insist("room/lobby/post", order=text, user="ada", text=text) == len(posted) + 1
    posted.append(text)
    assert chat.insist("wallet/ada/balance") == left == 20 - len(posted)
    until(lambda: [message["text"] for message in chat.insist("member/bob/inbox")] == posted, "bob hears nothing")
    assert chat.replayed("lobby") == posted

    # Errors have their names, through all three languages.
    assert chat.error("wallet/poor/pay", order="x", to="lobby", amount=1) == {"Empty": {"balance": 0}}
    assert chat.error("member/poor/say", room="lobby", text="hello") == {"NotMember": {"user": "poor"}}
    assert chat.error("wallet/ada/pay", order="x", to="lobby", amount=-1) == {"Empty": {"balance": left}}

    # What a member says is paid by its wallet, and numbered by its room.
    hall = f"hall {rotation}".replace(" ", "-")
    chat.insist("wallet/cy/deposit", order=hall, amount=1)
    assert chat.insist("member/cy/say", room=hall, text="hello") == 1
    assert [(message["user"], message["text"]) for message in chat.insist(f"room/{hall}/history")] == [("cy", "hello")]
    assert chat.insist("wallet/cy/balance") == 0
    until(lambda: chat.insist(f"wallet/{hall}/balance") == 1, "the coin does not arrive")
    until(lambda: chat.insist("wallet/lobby/balance") == len(posted), "coins do not arrive")

    # The room's host is lost with the post: nobody knows whether it is posted, and the member says it once more.
    chat.insist("wallet/dee/deposit", order=hall, amount=1)
    chat.hosts["room"].send_signal(signal.SIGSTOP)
    with ThreadPoolExecutor(1) as pool:
        said = pool.submit(chat.call, "member/dee/say", room=hall, text="still here")
        time.sleep(0.3)
        chat.kill("room")
        assert said.result() == (200, 2)
    assert [message["text"] for message in chat.insist(f"room/{hall}/history")] == ["hello", "still here"]
    assert chat.insist("wallet/dee/balance") == 0


def are_killed(chat: Chat, rotation: int) -> None:
    """The hosts of the wallets, and of the rooms, are killed in the middle of payments: of each payer to each room."""
    rooms, payers = ([f"{what}-{rotation}-{number}" for number in range(3)] for what in ("yard", "payer"))
    pairs = [(room, payer) for room in rooms for payer in payers]
    for payer in payers:
        assert chat.insist(f"wallet/{payer}/deposit", order="gift", amount=POSTS) == POSTS
    answered: dict[tuple[str, str], int] = {}
    more = threading.Condition()

    def post(number: int) -> None:
        (room, payer), text = pairs[number % len(pairs)], f"text {number}"
        found = chat.insist(f"room/{room}/post", order=text, user=payer, text=text)
        with more:
            answered[room, text] = found
            more.notify_all()

    with ThreadPoolExecutor(len(pairs)) as pool:
        posts = [pool.submit(post, number) for number in range(POSTS)]
        for killed, count in (("wallet", POSTS // 4), ("room", POSTS // 2), ("wallet", POSTS * 3 // 4)):
            with more:
                assert more.wait_for(lambda count=count: len(answered) >= count, HANG)
            chat.kill(killed)
        for one in posts:
            one.result()
    found = {room: chat.insist(f"room/{room}/history") for room in rooms}
    assert {(room, message["text"]): message["number"] for room in rooms for message in found[room]} == answered
    said = POSTS // len(rooms)
    assert [[message["number"] for message in found[room]] for room in rooms] == [list(range(1, said + 1))] * len(rooms)
    assert [chat.insist(f"wallet/{payer}/balance") for payer in payers] == [POSTS - POSTS // len(payers)] * len(payers)
    until(lambda: [chat.insist(f"wallet/{room}/balance") for room in rooms] == [said] * len(rooms), "coins do not arrive")
