"""A rate limiter: a bucket of tokens for each client."""

# anchor: recipe
import time

import greenroom as gr

TOKENS_MAX = 10.0  # what a client may do at once
TOKENS_PER_SECOND = 2.0  # what it may do for ever


class TooMany(gr.ActorError):
    """There is no token; in so many seconds there is."""

    wait: float


class Bucket(gr.Actor, idle=60):
    """The tokens of one client, by its name as key. A bucket that is forgotten is a full one."""

    tokens: float = TOKENS_MAX
    filled: float = 0.0

    async def activated(self) -> None:
        self.filled = time.monotonic()

    async def take(self, count: int) -> None:
        now = time.monotonic()
        self.tokens = min(TOKENS_MAX, self.tokens + (now - self.filled) * TOKENS_PER_SECOND)
        self.filled = now
        if count > self.tokens:
            raise TooMany(wait=(count - self.tokens) / TOKENS_PER_SECOND)
        self.tokens -= count


# end: recipe

if __name__ == "__main__":
    gr.serve(Bucket)
