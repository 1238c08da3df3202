import pytest
from pi_example_message import Note, NotesPlugin

from pi_core import CustomMessage, parse_message
from pi_core.testing import assert_plugin_contract, assert_trace

NOTE = Note(author="Ada", body="The log is in /var/log.")
PRIVATE = Note(author="Ada", body="Ask Bob about it.", for_model=False)


def test_contract():
    assert_plugin_contract(NotesPlugin())


@pytest.mark.parametrize("note", [NOTE, PRIVATE])
def test_its_json_form_is_read_again(note, run_hook):
    types = {"note": Note}
    data = note.to_json()
    assert data.keys() == {"role", "author", "body", "forModel", "timestamp"}
    assert parse_message(data, types) == note
    assert [found for _, found in run_hook("register_message_types", NotesPlugin())] == [Note]


def test_without_the_plugin_a_note_is_kept_but_not_sent():
    opaque = parse_message(NOTE.to_json())
    assert type(opaque) is CustomMessage
    assert opaque.to_json() == NOTE.to_json()
    assert list(opaque.to_llm()) == []
    assert parse_message(opaque.to_json(), {"note": Note}) == NOTE


def test_a_note_that_lacks_something_is_refused():
    with pytest.raises(ValueError, match="author"):
        parse_message({"role": "note", "body": "x"}, {"note": Note})


def test_a_model_reads_the_notes_that_are_meant_for_it(agent_with):
    agent, provider, log = agent_with(NotesPlugin(), replies=["I see."], messages=[NOTE, PRIVATE])
    agent.run_sync("Where is the log?")
    sent = [message.content for message in provider.requests[0].messages]
    assert sent[0] == "Note by Ada: The log is in /var/log."
    assert len(sent) == 2
    assert agent.state.messages[:2] == [NOTE, PRIVATE]
    assert_trace(log.events)
