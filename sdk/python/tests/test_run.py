"""`greenroom run`, as a new user types it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from greenroom.testing import free_port
from real_node import IS_THERE
from real_node import pytestmark as pytestmark

EXAMPLE = Path(__file__).parents[3] / "examples/languages/chat.py"


def post(port: int, path: str, arguments: Any) -> tuple[int, Any]:
    """A call by HTTP, when the door is open."""
    request = urllib.request.Request(f"http://127.0.0.1:{port}/{path}", json.dumps(arguments).encode())
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return answer.status, json.loads(answer.read() or b"null")
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read())
    except OSError:
        return 0, None


def said(messages: list[dict[str, Any]]) -> list[str]:
    return [message["text"] for message in messages]


def answered(port: int, path: str, arguments: Any) -> Any:
    until = time.monotonic() + 30
    while (found := post(port, path, arguments))[0] != 200:
        assert time.monotonic() < until, found
        time.sleep(0.02)
    return found[1]


@pytest.mark.skipif(not IS_THERE, reason="no program: set GREENROOM_BIN")
def test_the_example_runs_and_starts_again_when_its_file_changes(tmp_path: Path) -> None:
    program = tmp_path / "chat.py"
    program.write_text(EXAMPLE.read_text())
    port = free_port()
    command = [os.environ.get("GREENROOM_BIN", "greenroom"), "run", "--http", f"127.0.0.1:{port}", "--journal", "memory:", "--watch"]
    running = subprocess.Popen([*command, sys.executable, str(program)])
    try:
        assert answered(port, "wallet/ada/deposit", {"order": "gift", "amount": 2}) == 2
        assert answered(port, "room/lobby/history", {}) == []
        assert answered(port, "member/bob/join", {"room": "lobby"}) == 0
        assert answered(port, "member/ada/say", {"room": "lobby", "text": "hello"}) == 1
        assert said(answered(port, "room/lobby/history", {})) == ["hello"]
        status, problem = post(port, "member/bob/say", {"room": "lobby", "text": "hello"})
        assert status >= 400 and problem["error"] == {"NotMember": {"user": "bob"}}
        program.write_text(EXAMPLE.read_text().replace("order, user, text)\n", "order, user, text.upper())\n"))
        # A member is online as long as its host is: what it had heard is forgotten.
        until = time.monotonic() + 30
        while answered(port, "member/bob/inbox", {}) != []:
            assert time.monotonic() < until
            time.sleep(0.05)
        assert answered(port, "member/ada/say", {"room": "lobby", "text": "again"}) == 2
        assert said(answered(port, "room/lobby/history", {})) == ["hello", "AGAIN"]
        assert answered(port, "wallet/ada/balance", {}) == 0
        running.send_signal(signal.SIGINT)
        assert running.wait(40) == 0
    finally:
        running.kill()
        running.wait()


@pytest.mark.skipif(not IS_THERE, reason="no program: set GREENROOM_BIN")
def test_without_a_journal_the_example_has_its_other_kinds() -> None:
    port = free_port()
    command = [os.environ.get("GREENROOM_BIN", "greenroom"), "run", "--http", f"127.0.0.1:{port}"]
    running = subprocess.Popen([*command, sys.executable, str(EXAMPLE)])
    try:
        assert answered(port, "member/ada/inbox", {}) == []
        assert answered(port, "room/lobby/history", {}) == []
        assert post(port, "wallet/ada/balance", {})[0] == 404
    finally:
        running.terminate()
        running.wait()


@pytest.mark.skipif(not IS_THERE, reason="no program: set GREENROOM_BIN")
@pytest.mark.parametrize("ends", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_host_behind_a_shell_drains_at_each_restart_and_at_the_end(ends: signal.Signals, tmp_path: Path) -> None:
    # What is written meanwhile is not beside the program: that would be a change of it.
    program, said, written = tmp_path / "host" / "chat.py", tmp_path / "said", tmp_path / "pids"
    program.parent.mkdir()
    program.write_text(EXAMPLE.read_text())
    port = free_port()
    command = [os.environ.get("GREENROOM_BIN", "greenroom"), "run", "--http", f"127.0.0.1:{port}", "--watch"]
    # It does not hand on what it is told, as `go run` and `npx` do not.
    shell = ["sh", "-c", f'"$0" "$1" member & echo $! >> {written}; wait', sys.executable, str(program)]
    with said.open("wb") as into:
        running = subprocess.Popen([*command, *shell], stderr=into)
    hosts: list[int] = []

    def served(count: int) -> None:
        """Waits until so many hosts have been started, and there is one."""
        until = time.monotonic() + 120
        while len(hosts) < count or "serving member" not in said.read_text().rpartition("starts again")[2]:
            assert time.monotonic() < until, said.read_text()
            time.sleep(0.02)
            hosts[:] = [int(line) for line in written.read_text().split()] if written.exists() else []

    try:
        served(1)
        program.write_text(EXAMPLE.read_text() + "\n")
        served(2)
        assert not is_running(hosts[0])
        running.send_signal(ends)
        assert running.wait(120) == 0
        assert not is_running(hosts[1])
        assert said.read_text().count("drained") == 2
    finally:
        running.kill()
        running.wait()
        for host in filter(is_running, hosts):
            os.kill(host, signal.SIGKILL)


def is_running(pid: int) -> bool:
    """A zombie has ended; whoever inherits it will wait for it."""
    stat = Path(f"/proc/{pid}/stat")
    return stat.exists() and not stat.read_text().rpartition(")")[2].lstrip().startswith("Z")


@pytest.mark.skipif(not IS_THERE, reason="no program: set GREENROOM_BIN")
def test_a_program_that_fails_is_told_with_its_status(tmp_path: Path) -> None:
    program = tmp_path / "broken.py"
    program.write_text("raise SystemExit(3)")
    command = [os.environ.get("GREENROOM_BIN", "greenroom"), "run", "--http", "127.0.0.1:0"]
    done = subprocess.run([*command, sys.executable, str(program)], capture_output=True, text=True, timeout=40)
    assert done.returncode == 1
    assert "exit status: 3" in done.stderr
