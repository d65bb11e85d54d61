"""Jobs that run at their times, although nobody calls them and hosts come and go."""

# anchor: recipe
import greenroom as gr


class Job(gr.Actor, persistent=True, save="turn"):
    """A job, by its name as key."""

    runs: int = 0

    async def schedule(self, seconds: float) -> None:
        """Runs every so many seconds from now on. To say it again changes the period."""
        await self.cx.remind(self.run, after=seconds, every=seconds)

    async def stop(self) -> None:
        await self.cx.forget("run")

    async def run(self) -> None:
        """A due time has come: at least once, so what is done here may be done twice."""
        self.runs += 1

    @gr.read
    async def look(self) -> int:
        return self.runs


# end: recipe

if __name__ == "__main__":
    gr.serve(Job)
