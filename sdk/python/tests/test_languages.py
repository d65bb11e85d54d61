"""One suite for all languages: the same cases, against a probe of each, on both ways in and in both codecs.

Probes are hosts with one actor in four forms, each a process: `probe.py`, `sdk/typescript/probe`, `sdk/go/testdata/probe` and
`crates/greenroom-host/examples/probe.rs`. Each reads one codec only, so the node writes over what callers say in the other one.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import IO, Any

import pytest

import greenroom as gr
from greenroom.testing import Program

SDKS = Path(__file__).parents[2]
TYPESCRIPT = SDKS / "typescript/dist/probe/probe.js"
RUST = Path(os.environ.get("GREENROOM_BIN", "greenroom")).parent / "examples/probe"
REQUIRED = os.environ.get("GREENROOM_LANGUAGES") == "all"
MISSING = {
    "python": "GREENROOM_BIN" not in os.environ and "GREENROOM_BIN",
    "typescript": not (shutil.which("node") and TYPESCRIPT.exists()) and "npm run build in sdk/typescript",
    "go": not shutil.which("go") and "Go 1.26",
    "rust": not RUST.exists() and "cargo build -p greenroom-host --example probe",
}
LANGUAGES = list(MISSING)
IS_THERE = [language for language, missing in MISSING.items() if REQUIRED or not missing]
FORMS = ["volatile", "persistent", "reliable"]
HANG = 30.0
"""Far more than anything here takes."""

pytestmark = pytest.mark.skipif(not (REQUIRED or IS_THERE) or "python" not in IS_THERE, reason="no program: set GREENROOM_BIN")
language = pytest.mark.parametrize("language", LANGUAGES)
form = pytest.mark.parametrize("form", FORMS)
numbers = itertools.count()


class Probes:
    """A node, alone or of the cluster whose table and journal are in a directory, and a probe of each language."""

    def __init__(self, way: str, codec: str, directory: Path, name: str = "n", cluster: Path | None = None) -> None:
        directory.mkdir(exist_ok=True)
        config = directory / "node.toml"
        config.write_text(f'[reliable]\njournal = "sqlite:{cluster or directory}/journal"\n[hosts]\nlease = 1.0\n')
        table = ("--table", f"sqlite:{cluster}/table") if cluster else ()
        self.node = Program("--config", str(config), *table, name=name, directory=directory)
        self.way = self.node.url if way == "unix" else self.node.http
        self.codec = codec
        go = directory / "probe"
        self.commands = {
            "python": [sys.executable, str(Path(__file__).parent / "probe.py")],
            "typescript": ["node", str(TYPESCRIPT)],
            "go": [str(go)],
            "rust": [str(RUST)],
        }
        if "go" in IS_THERE:
            subprocess.run(["go", "-C", str(SDKS / "go"), "build", "-o", str(go), "./testdata/probe"], check=True)
        self.running: dict[str, subprocess.Popen[bytes]] = {}
        for one in IS_THERE:
            self.start(one)

    def start(self, language: str, stderr: IO[bytes] | None = None) -> None:
        """Starts a probe, and waits until the cluster has its kinds."""
        environment = os.environ | {"GREENROOM_HOST": self.way, "GREENROOM_CODEC": self.codec}
        self.running[language] = subprocess.Popen(self.commands[language], env=environment, stderr=stderr)
        until(lambda: self.post(f"{language}_volatile/first/get")[0] == 200)

    def kill(self, language: str) -> None:
        self.running[language].kill()
        self.running[language].wait()

    def stop(self) -> None:
        for language in self.running:
            self.kill(language)
        self.node.stop()

    def post(self, path: str, arguments: Any = None, **headers: str) -> tuple[int, Any]:
        """A call by HTTP: its status, and the value or the problem."""
        body = json.dumps(arguments or {}).encode()
        sent = {"content-type": "application/json"} | {name.replace("_", "-"): value for name, value in headers.items()}
        request = urllib.request.Request(f"{self.node.http}/{path}", body, sent)
        try:
            with urllib.request.urlopen(request, timeout=HANG) as answer:
                return answer.status, json.loads(answer.read() or b"null")
        except urllib.error.HTTPError as error:
            return error.code, json.loads(error.read())

    def value(self, path: str, arguments: Any = None) -> Any:
        """The value of a call that is answered."""
        status, value = self.post(path, arguments)
        assert status == 200, value
        return value

    def called(self, kind: str, key: str, method: str, **arguments: Any) -> Any:
        """A call over frames, in MessagePack."""

        async def call() -> Any:
            async with gr.Host([], self.way) as client:
                return await getattr(client.ref(kind, key, by=HANG), method)(**arguments)

        return asyncio.run(call())


@pytest.fixture(scope="module", params=["unix-json", "door-messagepack"])
def probes(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Probes]:
    way, codec = request.param.split("-")
    probes = Probes(way, codec, tmp_path_factory.mktemp("p"))
    yield probes
    probes.stop()


@pytest.fixture
def key() -> str:
    """That of an actor that no other case has."""
    return f"k{next(numbers)}"


@pytest.fixture(autouse=True)
def is_there(request: pytest.FixtureRequest) -> None:
    named: dict[str, Any] = request.node.callspec.params
    for needed in (named.get("language"), named.get("other")):
        if needed and needed not in IS_THERE:
            pytest.skip(f"no {needed}: {MISSING[needed]}")


def until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + HANG
    while not holds():
        assert time.monotonic() < end, "it does not come"
        time.sleep(0.02)


def kinds(problem: Any) -> str:
    return str(problem["type"]).rsplit("/", 1)[-1]


# Turns and state.


@language
@form
def test_turns_follow_each_other(probes: Probes, language: str, form: str, key: str) -> None:
    actor = f"{language}_{form}/{key}"
    assert [probes.value(f"{actor}/add", {"n": n}) for n in (2, 3, -1)] == [2, 5, 4]
    assert probes.value(f"{actor}/get") == 4


@language
@form
def test_calls_at_once_run_one_after_the_other(probes: Probes, language: str, form: str, key: str) -> None:
    with ThreadPoolExecutor(8) as pool:
        calls = [pool.submit(probes.value, f"{language}_{form}/{key}/add", {"n": 1}) for _ in range(16)]
    assert sorted(call.result() for call in calls) == list(range(1, 17))


@language
@form
def test_an_error_of_its_own_comes_to_the_caller_and_its_changes_stay(probes: Probes, language: str, form: str, key: str) -> None:
    status, problem = probes.post(f"{language}_{form}/{key}/fail")
    assert (status, kinds(problem), problem["error"]) == (422, "actor-error", {"Broke": {"at": 1}})
    assert probes.value(f"{language}_{form}/{key}/get") == 1


@language
@form
def test_l21_what_a_failed_turn_has_half_changed_is_not_kept(probes: Probes, language: str, form: str, key: str) -> None:
    actor = f"{language}_{form}/{key}"
    probes.value(f"{actor}/add", {"n": 1})
    status, problem = probes.post(f"{actor}/panic")
    assert status == 500 and "in the middle" in json.dumps(problem), problem
    assert probes.value(f"{actor}/add", {"n": 1}) == (1002 if form == "volatile" else 2)


@language
@form
def test_a_timer_is_a_turn(probes: Probes, language: str, form: str, key: str) -> None:
    probes.value(f"{language}_{form}/{key}/later", {"ms": 20, "n": 7})
    until(lambda: probes.value(f"{language}_{form}/{key}/get") == 7)


@language
@pytest.mark.parametrize("form", ["volatile", "persistent"])
def test_a_reminder_wakes_who_sleeps(probes: Probes, language: str, form: str, key: str) -> None:
    actor = f"{language}_{form}/{key}"

    def wakes() -> bool:
        probes.value(f"{actor}/remind", {"ms": 1000, "n": 7})
        probes.value(f"{actor}/rest")
        # A reminder that was due before the rest has woken nobody: what it did is gone with the memory.
        end = time.monotonic() + 4
        while time.monotonic() < end:
            if probes.value(f"{actor}/get") == 7:
                return True
            time.sleep(0.02)
        return False

    until(wakes)


@language
@pytest.mark.parametrize("form", ["volatile", "persistent"])
def test_what_is_saved_outlasts_the_activation(probes: Probes, language: str, form: str, key: str) -> None:
    probes.value(f"{language}_{form}/{key}/add", {"n": 5})
    probes.value(f"{language}_{form}/{key}/rest")
    assert probes.value(f"{language}_{form}/{key}/get") == (0 if form == "volatile" else 5)


@language
@pytest.mark.parametrize("form", ["volatile", "persistent"])
def test_a_stream_is_events_at_the_door(probes: Probes, language: str, form: str, key: str) -> None:
    headers = {"accept": "text/event-stream", "content-type": "application/json"}
    request = urllib.request.Request(f"{probes.node.http}/{language}_{form}/{key}/count", b'{"upto": 100}', headers)
    with urllib.request.urlopen(request, timeout=HANG) as answer:
        events = answer.read().decode().strip().split("\n\n")
    assert events == [*(f"id: {n}\ndata: {n}" for n in range(100)), "event: end\ndata: null"]


# Refusals.


@language
@form
def test_what_there_is_not_is_said(probes: Probes, language: str, form: str, key: str) -> None:
    status, problem = probes.post(f"{language}_{form}/{key}/nothing")
    assert (status, kinds(problem)) == (404, "unknown-method")


@pytest.mark.parametrize("language", ["python", "go", "rust"])
@form
def test_arguments_that_do_not_fit_begin_nothing(probes: Probes, language: str, form: str, key: str) -> None:
    status, problem = probes.post(f"{language}_{form}/{key}/add", {"n": "many"})
    assert (status, kinds(problem)) == (400, "invalid-arguments"), problem
    assert probes.value(f"{language}_{form}/{key}/get") == 0


@language
def test_a_caller_whose_time_is_over_is_told_and_the_turn_goes_on(probes: Probes, language: str, key: str) -> None:
    status, problem = probes.post(f"{language}_volatile/{key}/slow", {"ms": 400}, greenroom_timeout="100ms")
    assert status == 504, problem
    assert probes.value(f"{language}_volatile/{key}/add", {"n": 1}) == 2


# Values.

VALUES: list[Any] = [
    None, True, -1, 2**53 + 1, -(2**63), 2**64 - 1, 1.5, "", "größe \u2028 \U0001f3ad", [], [1, [None, "x"]], {}, {"a": {"b": [1.25]}},
]  # fmt: skip


@language
@pytest.mark.parametrize("value", VALUES, ids=json.dumps)
def test_l22_a_value_comes_back_as_it_went_in_json(probes: Probes, language: str, value: Any) -> None:
    assert probes.value(f"{language}_volatile/echo/echo", {"value": value}) == value


@language
@pytest.mark.parametrize("value", [*VALUES, b"\x00\xff"], ids=repr)
def test_l22_a_value_comes_back_as_it_went_in_messagepack(probes: Probes, language: str, value: Any) -> None:
    found = probes.called(f"{language}_volatile", "echo", "echo", value=value)
    if isinstance(value, bytes) and probes.codec == "json":
        # JSON has no bytes: who has said no type gets them as base64.
        value = base64.b64encode(value).decode()
    assert (found, type(found)) == (value, type(value))


# Languages among each other.


@language
@pytest.mark.parametrize("other", LANGUAGES)
def test_an_actor_calls_one_of_another_language(probes: Probes, language: str, other: str, key: str) -> None:
    asked = {"kind": f"{other}_persistent", "key": key, "method": "add", "arguments": {"n": 4}}
    assert [probes.value(f"{language}_volatile/{key}/call", asked) for _ in range(2)] == [4, 8]


@language
@pytest.mark.parametrize("other", LANGUAGES)
def test_a_call_that_waits_for_itself_is_a_cycle(probes: Probes, language: str, other: str, key: str) -> None:
    back = {"kind": f"{language}_volatile", "key": key, "method": "add", "arguments": {"n": 1}}
    there = {"kind": f"{other}_persistent", "key": key, "method": "call", "arguments": back}
    status, problem = probes.post(f"{language}_volatile/{key}/call", there)
    assert status >= 400 and "would deadlock" in json.dumps(problem), problem


@language
@pytest.mark.parametrize("other", LANGUAGES)
def test_a_reliable_actor_pays_one_of_another_language(probes: Probes, language: str, other: str, key: str) -> None:
    assert probes.value(f"{language}_reliable/{key}-from/send", {"kind": f"{other}_reliable", "key": f"{key}-to", "n": 3}) == -3
    until(lambda: probes.value(f"{other}_reliable/{key}-to/get") == 3)


@language
@pytest.mark.parametrize("other", LANGUAGES)
def test_calls_under_one_idempotency_key_run_once(probes: Probes, language: str, other: str, key: str) -> None:
    def paid(n: int, **key_: str) -> Any:
        return {"kind": f"{other}_reliable", "key": key, "method": "add", "arguments": {"n": n}} | key_

    caller = f"{language}_volatile/{key}/carry"
    assert [probes.value(caller, paid(5, idempotency_key="17")) for _ in range(3)] == [5, 5, 5]
    assert probes.value(caller, paid(5, idempotency_key="18")) == 10
    assert probes.value(caller, paid(5)) == 15
    assert "its idempotency key was used for another request" in json.dumps(probes.post(caller, paid(6, idempotency_key="17")))
    assert probes.value(f"{other}_reliable/{key}/get") == 15
    loose = paid(5, idempotency_key="17") | {"kind": f"{other}_volatile", "key": f"{key}-loose"}
    assert "are not reliable" in json.dumps(probes.post(caller, loose))
    assert probes.value(f"{other}_volatile/{key}-loose/get") == 0


@language
@pytest.mark.parametrize("other", LANGUAGES)
def test_a_context_goes_along_with_calls(probes: Probes, language: str, other: str, key: str) -> None:
    told: dict[str, Any] = {"kind": f"{other}_volatile", "key": f"{key}-told", "method": "told", "arguments": {}}
    onward: dict[str, Any] = {"kind": f"{other}_volatile", "key": f"{key}-on", "method": "carry", "arguments": told}
    caller = f"{language}_volatile/{key}/carry"
    assert probes.value(caller, told) == {}
    assert probes.value(caller, told | {"context": {"tenant": "a", "größe": ""}}) == {"tenant": "a", "größe": ""}
    assert probes.post(caller, onward | {"context": {"tenant": "b"}}, baggage="tenant=a,user=ada")[1] == {"tenant": "b", "user": "ada"}
    for bad in ({"": "a"}, {"k": "v" * 9000}):
        status, problem = probes.post(caller, told | {"context": bad})
        assert status >= 400 and "context" in json.dumps(problem), problem


@language
def test_a_reliable_turn_awaits_nothing_that_would_act_before_it(probes: Probes, language: str, key: str) -> None:
    asked = {"kind": f"{language}_volatile", "key": key, "method": "add", "arguments": {"n": 4}}
    status, problem = probes.post(f"{language}_reliable/{key}/call", asked)
    assert status >= 400 and "send it one-way" in json.dumps(problem), problem
    assert probes.value(f"{language}_volatile/{key}/get") == 0


# Hosts that end.


@language
def test_l15_a_host_that_is_killed_leaves_reads_and_reliable_turns_that_run_again(probes: Probes, language: str, key: str) -> None:
    paths = [(f"{language}_volatile/{key}-read/look", 200), (f"{language}_reliable/{key}/slow", 200), (f"{language}_volatile/{key}/slow", 502)]
    with ThreadPoolExecutor(len(paths)) as pool:
        calls = [pool.submit(probes.post, path, {"ms": 1000}) for path, _ in paths]
        time.sleep(0.3)
        probes.kill(language)
        probes.start(language)
        found = [call.result() for call in calls]
    assert [status for status, _ in found] == [status for _, status in paths], found
    assert [found[0][1], found[1][1]] == [0, 1]
    assert kinds(found[2][1]) == "unknown-outcome"
    assert probes.value(f"{language}_reliable/{key}/get") == 1


@language
def test_a_host_that_drains_fails_no_call(probes: Probes, language: str, key: str) -> None:
    first = probes.running[language]
    probes.start(language)
    done: list[int] = []
    with ThreadPoolExecutor(4) as pool:
        calls = [pool.submit(probes.post, f"{language}_persistent/{key}-{n % 4}/add", {"n": 1}) for n in range(80)]
        first.send_signal(signal.SIGTERM)
        done.extend(call.result()[0] for call in calls)
    first.wait(HANG)
    assert done == [200] * 80
    assert [probes.value(f"{language}_persistent/{key}-{n}/get") for n in range(4)] == [20] * 4


@language
@pytest.mark.parametrize("ends", [signal.SIGTERM, signal.SIGHUP])
def test_a_host_that_drains_ends_well_and_tells_of_no_trouble(
    probes: Probes, language: str, key: str, tmp_path: Path, ends: signal.Signals
) -> None:
    said = tmp_path / "said"
    probes.kill(language)
    with said.open("wb") as into:
        probes.start(language, into)
    host = probes.running[language]
    for form in FORMS:
        probes.value(f"{language}_{form}/{key}/add", {"n": 1})
    probes.start(language)
    host.send_signal(ends)
    assert host.wait(HANG) == 0, said.read_text()
    lines = said.read_text().splitlines()
    assert [line for line in lines if "INFO greenroom: " not in line and not line.startswith("greenroom: serving ")] == []


@language
def test_l2_a_host_that_was_frozen_past_its_lease_acts_no_more(probes: Probes, language: str, key: str) -> None:
    first = probes.running[language]
    probes.value(f"{language}_persistent/{key}/add", {"n": 1})
    with ThreadPoolExecutor(1) as pool:
        lost = pool.submit(probes.post, f"{language}_persistent/{key}/slow", {"ms": 300})
        time.sleep(0.1)
        first.send_signal(signal.SIGSTOP)
        with contextlib.ExitStack() as woken:
            woken.callback(first.send_signal, signal.SIGCONT)
            probes.start(language)
            assert lost.result()[0] == 502
            assert probes.value(f"{language}_persistent/{key}/add", {"n": 10}) == 11
    time.sleep(0.5)
    assert probes.value(f"{language}_persistent/{key}/get") == 11
    first.kill()
    first.wait()
