/** Jobs that run at their times, although nobody calls them and hosts come and go. */

// anchor: recipe
import { actor, serve } from "greenroom";

export const job = actor("job", {
  doc: "A job, by its name as key.",
  state: () => ({ runs: 0 }),
  persistent: true,
  save: "turn",
  methods: {
    /** Runs every so many milliseconds from now on. To say it again changes the period. */
    async schedule(c, { ms }: { ms: number }) {
      await c.remind("run", { after: ms, every: ms });
    },
    async stop(c) {
      await c.forget("run");
    },
    /** A due time has come: at least once, so what is done here may be done twice. */
    async run(c) {
      c.state.runs += 1;
    },
  },
  reads: { look: async (c) => c.state.runs },
});
// end: recipe

if (process.argv[1]?.endsWith("scheduler.js")) await serve([job]);
