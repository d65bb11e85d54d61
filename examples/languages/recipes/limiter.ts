/** A rate limiter: a bucket of tokens for each client. */

// anchor: recipe
import { ActorError, actor, serve } from "greenroom";

const TOKENS_MAX = 10; // what a client may do at once
const TOKENS_PER_SECOND = 2; // what it may do for ever

export const bucket = actor("bucket", {
  doc: "The tokens of one client, by its name as key. A bucket that is forgotten is a full one.",
  state: () => ({ tokens: TOKENS_MAX, filled: performance.now() }),
  idle: 60_000,
  methods: {
    async take(c, { count }: { count: number }) {
      const now = performance.now();
      const fresh = ((now - c.state.filled) / 1000) * TOKENS_PER_SECOND;
      c.state.tokens = Math.min(TOKENS_MAX, c.state.tokens + fresh);
      c.state.filled = now;
      if (count > c.state.tokens) throw new ActorError("TooMany", { wait: (count - c.state.tokens) / TOKENS_PER_SECOND });
      c.state.tokens -= count;
    },
  },
});
// end: recipe

if (process.argv[1]?.endsWith("limiter.js")) await serve([bucket]);
