// Programs that end after each call, by design: calls without a pause between them, at each door, once the gateway knows it.

import { join } from 'node:path';
import * as assert from 'uvu/assert';
import { eventually } from '../../helpers/eventually.ts';
import { inFolder } from '../../helpers/folder.ts';
import { type AppFixture, startApp } from '../../helpers/http/app.ts';
import { suite } from '../../helpers/suite.ts';
import { modernRequest, openSession, postTo } from './post.ts';

const test = suite('programs that end after a call', { timeoutMs: 120_000 });

/** Ends 5 ms after the answer to a call, with code 0; with a file to write, only the first time. */
const PROGRAM = `
  const [mark] = process.argv.slice(1);
  let called = 0;
  const isFirst = mark === undefined || !require('fs').existsSync(mark);
  const say = (id, answer) => console.log(JSON.stringify({ jsonrpc: '2.0', id, ...answer }));
  require('readline').createInterface({ input: process.stdin }).on('line', (line) => {
    const { id, method, params } = JSON.parse(line);
    if (id === undefined) return;
    if (method === 'initialize')
      return say(id, { result: { protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 's', version: '1' } } });
    if (method === 'ping') return say(id, { result: {} });
    if (method === 'tools/list') return say(id, { result: { tools: [{ name: 'write', inputSchema: { type: 'object' } }] } });
    if (method !== 'tools/call') return say(id, { error: { code: -32601, message: 'no' } });
    called += 1;
    if (called > 1 && isFirst) return;
    say(id, { result: { content: [{ type: 'text', text: String(process.pid) }] } });
    if (!isFirst) return;
    if (mark !== undefined) require('fs').writeFileSync(mark, '');
    setTimeout(() => process.exit(0), 5);
  });`;

const CALLS = 20;
const PARAMS = { name: 'write', arguments: {} };
let app: AppFixture;
test.before.each(async () => {
  app = await startApp();
});
test.after.each(async () => {
  await app.gateway.close({ graceMs: 0 });
  await app.close();
});

async function rest(): Promise<string> {
  const { status, body } = await app.ask('POST', '/mcp/t/tools/call', { body: PARAMS });
  return status === 200 ? '200' : `${body.error_code} ${body.delivered}`;
}

async function register(...args: string[]): Promise<void> {
  const program = { command: process.execPath, args: ['-e', PROGRAM, ...args] };
  await app.gateway.register('t', { id: 'a', ...program }, { waitMs: 20_000 });
  assert.is(await rest(), '200', 'it shows that it ends');
  await eventually(
    async () => app.gateway.instance('t', 'a').snapshot,
    ({ restarts, healthy }) => healthy && restarts > 0,
  );
}

const DOORS: Readonly<Record<string, () => Promise<() => Promise<string>>>> = {
  REST: async () => rest,
  'a session': async () => {
    const headers = await openSession(app.gateway, 't');
    return () => statusOf({ template: 't', message: { method: 'tools/call', params: PARAMS }, headers });
  },
  'a session with its own process': async () => {
    const headers = await openSession(app.gateway, 't', undefined, { elicitation: {} });
    return () => statusOf({ template: 't', message: { method: 'tools/call', params: PARAMS }, headers });
  },
  'a session with all templates': async () => {
    const headers = await openSession(app.gateway, undefined);
    const params = { ...PARAMS, name: 't__write' };
    return () => statusOf({ template: undefined, message: { method: 'tools/call', params }, headers });
  },
  'a client without a session': async () => () =>
    statusOf({ template: 't', ...modernRequest('tools/call', PARAMS) }),
};

let lastId = 0;

async function statusOf({ message, ...post }: Parameters<typeof postTo>[1]): Promise<string> {
  lastId += 1;
  const { status, answer } = await postTo(app.gateway, { ...post, message: { id: lastId, ...message } });
  const { error_code, delivered } = Object(Object(answer.error).data);
  return answer.result === undefined ? `${error_code ?? status} ${delivered}` : '200';
}

for (const [door, open] of Object.entries(DOORS)) {
  test(`${CALLS} calls in a row are all answered: ${door}`, async () => {
    await register();
    const call = await open();
    const seen: string[] = [];
    for (let each = 0; each < CALLS; each += 1) seen.push(await call());
    assert.equal(seen, Array(CALLS).fill('200'));
  });
}

for (const [door, open] of Object.entries(DOORS)) {
  test(`of two calls at a time, the one without an answer is perhaps delivered, and the next call works: ${door}`, async () => {
    await register();
    const call = await open();
    for (let round = 0; round < 2; round += 1) {
      const seen = await Promise.all([call(), call()]);
      assert.equal(seen, ['200', 'BACKEND_UNAVAILABLE unknown']);
      assert.is(await call(), '200');
    }
  });
}

test('a program that goes on after its next call is ended once, and then serves on', async () => {
  await inFolder(async (folder) => {
    await register(join(folder, 'mark'));
    const pids: unknown[] = [];
    for (let each = 0; each < 4; each += 1) {
      const { body } = await app.ask('POST', '/mcp/t/tools/call', { body: PARAMS });
      pids.push(Object(body).content?.[0].text);
    }
    const [, second] = pids;
    assert.equal(pids.slice(1), [second, second, second]);
    assert.is.not(pids[0], second);
  });
});

test.run();
