// The TypeScript original on Node. The folder of its node_modules is the first argument, then case and size.
// Prints a line of JSON as benchmarks.child does.
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [modules, kind, size] = process.argv.slice(2);
const n = Number(size);
const load = (name) => import(pathToFileURL(join(modules, "@earendil-works", name, "dist", "index.js")).href);
const [{ Agent }, { AssistantMessageEventStream }] = [await load("pi-agent-core"), await load("pi-ai")];

const DELTA = "abcd ";
const none = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 };
const names = { api: "scripted", provider: "scripted" };
const model = {
  ...names, id: "scripted", name: "scripted", baseUrl: "", reasoning: false, input: ["text"],
  cost: none, contextWindow: 1_000_000, maxTokens: 4096,
};
const parameters = { type: "object", properties: { x: { type: "integer" } }, required: ["x"] };

function streamed(stopReason, fill) {
  const stream = new AssistantMessageEventStream();
  const usage = { ...none, totalTokens: 0, cost: { ...none, total: 0 } };
  const partial = { role: "assistant", content: [], ...names, model: "scripted", usage, stopReason, timestamp: Date.now() };
  queueMicrotask(() => {
    stream.push({ type: "start", partial });
    fill((event) => stream.push({ ...event, partial }), partial.content);
    stream.push({ type: "done", reason: stopReason, message: partial });
  });
  return stream;
}

function addBlock(push, content, block, contentIndex) {
  content.push(block);
  if (block.type === "text") {
    push({ type: "text_start", contentIndex });
    push({ type: "text_delta", contentIndex, delta: block.text });
    push({ type: "text_end", contentIndex, content: block.text });
  } else {
    push({ type: "toolcall_start", contentIndex });
    push({ type: "toolcall_delta", contentIndex, delta: JSON.stringify(block.arguments) });
    push({ type: "toolcall_end", contentIndex, toolCall: block });
  }
}

function scripted(script) {
  let next = 0;
  return () => {
    const blocks = script[next++];
    const reason = blocks[0].type === "text" ? "stop" : "toolUse";
    return streamed(reason, (push, content) => blocks.forEach((block, index) => addBlock(push, content, block, index)));
  };
}

function make(streamFn, execute) {
  const tools = execute ? [{ name: "tool", label: "tool", description: "tool", parameters, execute }] : [];
  const agent = new Agent({ initialState: { systemPrompt: "", model, tools }, streamFn });
  const counter = { events: 0, deltas: 0 };
  agent.subscribe((event) => {
    counter.events++;
    if (event.type === "message_update" && event.assistantMessageEvent.type === "text_delta") counter.deltas++;
  });
  return [agent, counter];
}

function assert(holds, what) {
  if (!holds) throw new Error(`not done: ${what}`);
}

const answer = { content: [{ type: "text", text: "ok" }], details: {} };
const done = [{ type: "text", text: "done" }];
const call = (number, position) => ({
  type: "toolCall", id: `call_${number}_${position}`, name: "tool", arguments: { x: number },
});

const cases = {
  turns() {
    const script = Array.from({ length: n }, (_, number) => [call(number, 0)]);
    const [agent, counter] = make(scripted([...script, done]), async () => answer);
    const results = () => agent.state.messages.filter((one) => one.role === "toolResult").length;
    return [agent, () => assert(results() === n && counter.events > 10 * n, "turns")];
  },
  deltas() {
    const [agent, counter] = make(() => streamed("stop", (push, content) => {
      const block = { type: "text", text: "" };
      content.push(block);
      push({ type: "text_start", contentIndex: 0 });
      for (let i = 0; i < n; i++) {
        block.text += DELTA;
        push({ type: "text_delta", contentIndex: 0, delta: DELTA });
      }
      push({ type: "text_end", contentIndex: 0, content: block.text });
    }));
    const text = () => agent.state.messages.at(-1).content[0].text;
    return [agent, () => assert(counter.deltas === n && text() === DELTA.repeat(n), "deltas")];
  },
  parallel() {
    const calls = Array.from({ length: n }, (_, position) => call(0, position));
    const wait = () => new Promise((resolve) => setTimeout(resolve, 10));
    const [agent] = make(scripted([calls, done]), async () => (await wait(), answer));
    const order = () => agent.state.messages.filter((one) => one.role === "toolResult").map((one) => one.toolCallId);
    return [agent, () => assert(order().every((id, position) => id === `call_0_${position}`), "parallel")];
  },
};

const [agent, check] = cases[kind]();
globalThis.gc?.();
const began = performance.now();
const before = process.cpuUsage();
await agent.prompt("hi");
const used = process.cpuUsage(before);
const wall = (performance.now() - began) / 1000;
check();
console.log(JSON.stringify({ cpu_s: (used.user + used.system) / 1e6, wall_s: wall }));
