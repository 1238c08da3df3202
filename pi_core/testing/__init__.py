"""What plugin authors test with.

A scripted provider, a log of events, a recorder of hooks, checks of a plugin and of a run, golden event sequences, and
recorded provider traffic. The fixtures of the pytest plugin are made of them.
"""

from .agents import EventLog, scripted_agent
from .cassette import Cassette, CassetteError
from .contract import assert_plugin_contract, heavy_imports, run_hook
from .golden import Golden, event_records
from .recorder import HookCall, HookRecorder
from .scripted import (
    SCRIPTED_MODEL,
    Barrier,
    Call,
    Reply,
    Request,
    Say,
    ScriptedBlock,
    ScriptedProvider,
    Think,
    Wait,
    play,
    scripted_message,
)
from .trace import assert_trace, trace_problems

__all__ = [
    "SCRIPTED_MODEL",
    "Barrier",
    "Call",
    "Cassette",
    "CassetteError",
    "EventLog",
    "Golden",
    "HookCall",
    "HookRecorder",
    "Reply",
    "Request",
    "Say",
    "ScriptedBlock",
    "ScriptedProvider",
    "Think",
    "Wait",
    "assert_plugin_contract",
    "assert_trace",
    "event_records",
    "heavy_imports",
    "play",
    "run_hook",
    "scripted_agent",
    "scripted_message",
    "trace_problems",
]
