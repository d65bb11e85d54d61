"""Hides what code blocks only need to compile: lines that begin with `# `, as rustdoc does."""

import re

RUST = re.compile(r"(```rust)[^\n]*\n(.*?)(```)", re.DOTALL)


def on_page_markdown(markdown, **_):
    return RUST.sub(lambda block: f"{block[1]}\n{shown(block[2])}{block[3]}", markdown)


def shown(code):
    lines = code.splitlines(keepends=True)
    return "".join(line for line in lines if not re.match(r"\s*#( |$)", line.rstrip("\n")))
