from pi_example_tool import GlossaryPlugin

from pi_core.testing import Call, Reply, assert_plugin_contract, assert_trace


def test_contract():
    assert_plugin_contract(GlossaryPlugin())


def test_the_model_looks_a_word_up(agent_with):
    replies = [Reply(Call("glossary", {"word": "Hook"})), "A point of the run."]
    agent, provider, log = agent_with(GlossaryPlugin(), replies=replies)
    messages = agent.run_sync("What is a hook?")
    assert messages[2].content[0].text == "a point of the run that plugins take part in"
    provider.assert_exhausted()
    assert_trace(log.events)


def test_three_lookups_are_enough(agent_with, hook_recorder):
    replies = [Reply(*[Call("glossary", {"word": word}) for word in ("a", "b", "c", "d")]), "done"]
    agent, _, _ = agent_with(GlossaryPlugin(), hook_recorder, replies=replies)
    results = agent.run_sync("Look up a, b, c and d.")[2:6]
    assert [result.is_error for result in results] == [False, False, False, True]
    assert results[3].content[0].text == "Three lookups are enough: answer with what you have."
    assert len(hook_recorder.of("execute_tool")) == 3


def test_each_run_counts_anew(agent_with):
    call = Reply(Call("glossary", {"word": "turn"}), Call("glossary", {"word": "turn"}))
    agent, _, _ = agent_with(GlossaryPlugin(), replies=[call, "done", call, "done"])
    for _ in range(2):
        assert not any(message.is_error for message in agent.run_sync("turn?") if message.role == "toolResult")


def test_other_tools_are_left_alone(run_hook):
    class Other:
        name = "read"

    assert run_hook("before_tool_call", GlossaryPlugin(), call=Other()).name == "read"
