"""The recipes that the documentation shows, against the real program."""

from __future__ import annotations

import asyncio
import importlib.util
import time
from pathlib import Path
from types import ModuleType

import pytest
from real_node import pytestmark as pytestmark

from greenroom.testing import Program

RECIPES = Path(__file__).parents[3] / "examples/languages/recipes"


def recipe(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, RECIPES / f"{name}.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


async def test_a_client_may_do_ten_things_at_once_and_then_waits(greenroom_node: Program) -> None:
    limiter = recipe("limiter")
    async with greenroom_node.host(limiter.Bucket) as host:
        bucket = host.ref(limiter.Bucket, "ada")
        await bucket.take(10)
        with pytest.raises(limiter.TooMany) as refused:
            await bucket.take(10)
        assert 0 < refused.value.wait <= 5
        await host.ref(limiter.Bucket, "bob").take(10)


async def test_a_job_runs_though_nobody_calls_it_until_it_is_stopped(greenroom_node: Program) -> None:
    scheduler = recipe("scheduler")
    async with greenroom_node.host(scheduler.Job) as host:
        job = host.ref(scheduler.Job, "report")
        await job.schedule(1)
        until = time.monotonic() + 20
        while await job.look() < 2:
            assert time.monotonic() < until
            await asyncio.sleep(0.05)
        await job.stop()
        assert await job.look() >= 2
