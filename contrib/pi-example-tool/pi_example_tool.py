"""A glossary that the model can look words up in, three times in a run."""

from pi_core import Block, StashKey, hookimpl, tool

LOOKUPS = StashKey[list[str]]("glossary lookups")
WORDS = {"hook": "a point of the run that plugins take part in", "turn": "one response and its tool calls"}


@tool
async def glossary(word: str) -> str:
    """Look up what a word means in this project."""
    return WORDS.get(word.lower(), f"'{word}' is not in the glossary")


class GlossaryPlugin:
    """Gives the model the tool, and keeps it from being called too often."""

    requires = "pi-agent-framework>=0.1.0"

    @hookimpl
    def register_tools(self):
        """Offer the tool."""
        return [glossary]

    @hookimpl
    async def before_tool_call(self, call, ctx):
        """Count the lookups of this run."""
        if call.name != "glossary":
            return None
        seen = ctx.stash.setdefault(LOOKUPS, list)
        if len(seen) == 3:
            return Block("Three lookups are enough: answer with what you have.")
        seen.append(call.arguments["word"])
        return None
