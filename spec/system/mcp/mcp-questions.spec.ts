// Calls that wait for their client, because their server asks it something: what becomes of them when their instance is
// drained or restarted, and when the gateway stops.

import { setTimeout as delay } from 'node:timers/promises';
import * as assert from 'uvu/assert';
import type { EverythingHttp } from '../../fixtures/everything/http-face.ts';
import { everythingProgram, startEverything } from '../../fixtures/everything-server.ts';
import type { Caller } from '../../helpers/caller.ts';
import { eventually, get } from '../../helpers/gateway-client.ts';
import { LegacyClient, requestText, textOf } from '../../helpers/mcp-client.ts';
import { change, type McpHarness, register, startHarness } from '../../helpers/mcp-program.ts';
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
const backends: EverythingHttp[] = [];
test.before(async () => {
  harness = await startHarness();
  ({ admin } = harness);
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
        // A stream that begins while the session moves names the instance before.
        assert.is.not((await client.ask('prompts/get', PROMPT)).instanceId, instanceId);
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
  const client = await LegacyClient.open(harness.wire, path, { capabilities });
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
