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
from test_node import IS_THERE
from test_node import pytestmark as pytestmark

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
    command = [os.environ.get("GREENROOM_BIN", "greenroom"), "run", "--http", f"127.0.0.1:{port}", "--watch"]
    running = subprocess.Popen([*command, sys.executable, str(program)])
    try:
        assert answered(port, "purse/ada/deposit", {"amount": 2}) == 2
        assert answered(port, "chat_room/lobby/post", {"user": "ada", "text": "hello"}) == 1
        assert answered(port, "chat_room/lobby/history", {}) == ["ada: hello"]
        status, problem = post(port, "chat_room/lobby/post", {"user": "bob", "text": "hello"})
        assert status >= 400 and problem["error"] == {"NotMember": {"user": "bob"}}
        program.write_text(EXAMPLE.read_text().replace('f"{user}: {text}"', 'f"{user} says {text}"'))
        until = time.monotonic() + 30
        while answered(port, "chat_room/lobby/history", {}) != []:
            assert time.monotonic() < until
            time.sleep(0.05)
        assert answered(port, "chat_room/lobby/post", {"user": "ada", "text": "again"}) == 1
        assert answered(port, "chat_room/lobby/history", {}) == ["ada says again"]
        assert answered(port, "purse/ada/deposit", {"amount": 0}) == 0
        running.send_signal(signal.SIGINT)
        assert running.wait(40) == 0
    finally:
        running.kill()
        running.wait()


@pytest.mark.skipif(not IS_THERE, reason="no program: set GREENROOM_BIN")
def test_a_program_that_fails_is_told_with_its_status(tmp_path: Path) -> None:
    program = tmp_path / "broken.py"
    program.write_text("raise SystemExit(3)")
    command = [os.environ.get("GREENROOM_BIN", "greenroom"), "run", "--http", "127.0.0.1:0"]
    done = subprocess.run([*command, sys.executable, str(program)], capture_output=True, text=True, timeout=40)
    assert done.returncode == 1
    assert "exit status: 3" in done.stderr
