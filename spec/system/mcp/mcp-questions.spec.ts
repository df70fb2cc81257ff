// Calls that take their time, because their server asks its client something or works: what becomes of them when their
// instance is drained or restarted, when somebody else answers, and when the client loses its connection. With accounts: whose question
// it was matters.

import { setTimeout as delay } from 'node:timers/promises';
import * as assert from 'uvu/assert';
import type { EverythingHttp } from '../../fixtures/everything/http-face.ts';
import { everythingProgram, startEverything } from '../../fixtures/everything-server.ts';
import { objectOr } from '../../fixtures/wire.ts';
import { type Caller, newKey } from '../../helpers/caller.ts';
import { eventually, get } from '../../helpers/gateway-client.ts';
import { LegacyClient, ModernClient, requestText, textOf } from '../../helpers/mcp-client.ts';
import { change, type McpHarness, register, startGuarded, startHarness } from '../../helpers/mcp-program.ts';
import { type Message, Wire } from '../../helpers/mcp-wire.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('journey: questions of servers', { timeoutMs: 30_000 });

const capabilities = { elicitation: {} };
/** Read from an instance each time, and so tells where a session is. */
const PROMPT = { name: 'test_simple_prompt' };
const ask = requestText(7, 'tools/call', { name: 'test_elicitation', arguments: { message: 'Who?' } });
/** So long nothing may come that must not come. */
const quietMs = 200;

let harness: McpHarness;
let admin: Caller;
let own: Readonly<Record<string, string>>;
let stranger: Readonly<Record<string, string>>;
const backends: EverythingHttp[] = [];
test.before(async () => {
  harness = await startGuarded();
  ({ admin } = harness);
  own = (await newKey(admin, 'own')).headers;
  stranger = (await newKey(admin, 'stranger')).headers;
  const program = everythingProgram({ era: 'legacy' });
  for (const name of ['one', 'two']) {
    const far = await startEverything({ name, era: 'legacy' });
    const modern = await startEverything({ name, era: 'modern' });
    backends.push(far, modern);
    await register(admin, 'far', [{ id: `far-${name}`, endpoint: far.url }]);
    await register(admin, 'modern', [{ id: `modern-${name}`, endpoint: modern.url }]);
    await register(admin, 'near', [{ id: `near-${name}`, ...program }]);
  }
});
test.after(async () => {
  await harness.remove();
  for (const backend of backends) await backend.close();
});

for (const template of ['far', 'near', 'modern']) {
  const path = `/mcp/${template}`;

  for (const failover of ['always', 'never']) {
    test(`${template}, failover ${failover}: a call that waits for its client ends well while its instance is drained`, async () => {
      await change(admin, template, { session_failover: failover });
      const { client, instanceId, call, question } = await asked(path);
      await command(template, instanceId, 'drain');
      try {
        await delay(quietMs);
        assert.is((await reply(client, question, 'ada')).status, 202);
        assert.match(textOf(await call.sees(isAnswer)), '"username":"ada"');
        const next = await client.ask('prompts/get', PROMPT);
        assert.is(next.status, failover === 'always' ? 200 : 404);
        assert.is.not(next.instanceId, instanceId);
      } finally {
        await command(template, instanceId, 'resume');
      }
    });
  }

  test(`${template}: a restart waits for a call that waits for its client`, async () => {
    await change(admin, template, { session_failover: 'never' });
    const { client, instanceId, call, question } = await asked(path);
    await command(template, instanceId, 'restart');
    await delay(quietMs);
    assert.is((await reply(client, question, 'ada')).status, 202);
    assert.match(textOf(await call.sees(isAnswer)), '"username":"ada"');
    assert.is((await client.ask('prompts/get', PROMPT)).status, 404);
  });

  test(`${template}: nobody answers the question of another session`, async () => {
    const { client, call, question } = await asked(path);
    for (const headers of [own, stranger]) {
      const other = await LegacyClient.open(harness.wire, path, { headers, capabilities });
      await reply(other, question, 'mallory');
      await other.close();
    }
    await delay(quietMs);
    assert.equal(call.messages.filter(isAnswer), []);
    await reply(client, question, 'ada');
    assert.match(textOf(await call.sees(isAnswer)), '"username":"ada"');
    await client.close();
  });

  test(`${template}: nobody goes on with the round of another client`, async () => {
    const options = { capabilities, replies: { 'elicitation/create': answerOf('ada') } };
    const mine = new ModernClient(harness.wire, path, { ...options, headers: own });
    const theirs = new ModernClient(harness.wire, path, { ...options, headers: stranger });
    const params = { name: 'test_input_required_result_request_state', arguments: {} };
    const { body, headers } = mine.request('tools/call', params);
    const first = objectOr((await harness.wire.exchange(path, { body, headers })).messages[0]?.result);
    assert.is(first.resultType, 'input_required');
    const inputResponses = { confirm: { action: 'accept', content: { ok: true } } };
    const retry = { ...params, requestState: first.requestState, inputResponses };
    const stolen = await theirs.ask('tools/call', retry);
    assert.equal([stolen.status, stolen.error?.code], [200, -32602]);
    const elsewhere = await mine.ask('tools/call', { ...retry, name: 'test_simple_text' });
    assert.is(elsewhere.error?.code, -32602, 'it was encrypted for another tool');
  });

  test(`${template}: who loses the connection finds the answer when coming back`, async () => {
    const client = await LegacyClient.open(harness.wire, path, { headers: own });
    const params = { name: 'test_tool_with_progress', arguments: {}, _meta: { progressToken: 'mine' } };
    const body = requestText('lost', 'tools/call', params);
    const broken = await client.wire.stream(path, { headers: client.headers, body });
    await broken.sees(({ method }) => method === 'notifications/progress');
    const lastEventId = broken.eventIds.at(-1);
    const seen = broken.messages.length;
    broken.close();
    await delay(quietMs); // the tool has ended meanwhile: losing the connection is no cancel
    const resumed = await client.listen(lastEventId);
    const answer = await resumed.sees(isAnswer);
    assert.equal([answer.id, textOf(answer)], ['lost', 'The work was done.']);
    const progress = [...broken.messages.slice(0, seen), ...resumed.messages].filter(({ method }) => method);
    assert.equal(
      progress.map(({ params: about }) => about?.progress),
      [0, 50, 100],
      'each one once',
    );
    await client.close();
  });
}

for (const far of [true, false]) {
  const transport = far ? 'HTTP' : 'stdio';
  test(`${transport}: a stop waits for the client, which answers on a new connection`, async () => {
    const ending = await startHarness();
    const wire = new Wire(ending.url);
    try {
      const instance = far
        ? { id: 'one', endpoint: backends[0]?.url ?? '' }
        : { id: 'one', ...everythingProgram({ era: 'legacy' }) };
      await register(ending.admin, 'ending', [instance]);
      const client = await LegacyClient.open(ending.wire, '/mcp/ending', { capabilities });
      const call = await client.wire.stream('/mcp/ending', { headers: client.headers, body: ask });
      const { id } = await call.sees(isQuestion);
      ending.program.signal('SIGTERM');
      await eventually(
        () => get(ending.url, '/readyz'),
        ({ status }) => status === 503,
      );
      const body = JSON.stringify({ jsonrpc: '2.0', id, result: answerOf('ada')() });
      assert.is((await wire.exchange('/mcp/ending', { headers: client.headers, body })).status, 202);
      assert.match(textOf(await call.sees(isAnswer)), '"username":"ada"');
      assert.equal(await ending.program.end(5_000), { code: 0, signal: null });
    } finally {
      wire.close();
      await ending.remove();
    }
  });
}

test.run();

/** A call of a new session that waits for its client. */
async function asked(path: string) {
  const client = await LegacyClient.open(harness.wire, path, { headers: own, capabilities });
  const { instanceId } = await client.ask('prompts/get', PROMPT);
  const call = await client.wire.stream(path, { headers: client.headers, body: ask });
  return { client, instanceId, call, question: await call.sees(isQuestion) };
}

function isQuestion({ id, method }: Message): boolean {
  return id !== undefined && method === 'elicitation/create';
}

function isAnswer({ id, method }: Message): boolean {
  return id !== undefined && method === undefined;
}

function answerOf(username: string) {
  return () => ({ action: 'accept', content: { username, email: 'x@example.com' } });
}

/** Answers a question in the session of this client, whoever's it was. */
function reply(client: LegacyClient, { id }: Message, username: string) {
  return client.send(JSON.stringify({ jsonrpc: '2.0', id, result: answerOf(username)() }));
}

async function command(
  template: string,
  id: string | undefined,
  verb: 'drain' | 'resume' | 'restart',
): Promise<void> {
  assert.is((await admin(`POST /gateway/instances/${template}/${id}/${verb}`, {})).status, 200);
}
