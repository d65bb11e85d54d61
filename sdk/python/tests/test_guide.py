"""The guide's code, and the example's: each block is read, and programs are run by `test_node.py`."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import greenroom as gr
from greenroom.actor import kind_of
from greenroom.description import describe

ROOT = Path(__file__).parents[3]
FENCE = re.compile(r"^```python\n(?:# (\w+\.py)\n)?(.*?)^```", re.M | re.S)
GUIDE: list[tuple[str, str]] = FENCE.findall((ROOT / "docs/guide/python.md").read_text())
README: list[tuple[str, str]] = FENCE.findall((ROOT / "sdk/python/README.md").read_text())
HOSTS: list[tuple[str, str]] = FENCE.findall((ROOT / "docs/guide/hosts.md").read_text())
CLASSES = [code for name, code in [*GUIDE, *README, *HOSTS] if name in ("", "chat.py")]


@pytest.mark.parametrize("code", [*CLASSES, (ROOT / "examples/languages/chat.py").read_text()])
def test_its_classes_are_actors(code: str, monkeypatch: pytest.MonkeyPatch) -> None:
    served: list[type[gr.Actor]] = []
    monkeypatch.setattr(gr, "serve", lambda *kinds: served.extend(kinds))  # pyright: ignore
    module: dict[str, Any] = {"__name__": "block"}
    exec(compile(code, "block", "exec", dont_inherit=True), module)
    kinds: list[Any] = [value for value in module.values() if isinstance(value, type) and issubclass(value, gr.Actor)]
    assert kinds
    for kind in kinds:
        assert describe(kind_of(kind))["methods"]


def program(name: str) -> str:
    """The guide's program of that name."""
    (code,) = [code for found, code in GUIDE if found == name]
    return code
