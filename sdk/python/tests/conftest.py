from __future__ import annotations

import asyncio
import inspect
from pathlib import Path
from typing import Any

import pytest
from peer import Peer


@pytest.fixture
def peer(tmp_path: Path) -> Peer:
    return Peer(tmp_path / "node.sock")


def pytest_pyfunc_call(pyfuncitem: Any) -> bool | None:
    """Runs tests that are coroutines."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = pyfuncitem._fixtureinfo.argnames
    arguments = {name: pyfuncitem.funcargs[name] for name in names}
    asyncio.run(asyncio.wait_for(pyfuncitem.obj(**arguments), 30))
    return True
