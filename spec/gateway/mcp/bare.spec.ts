// Servers without a handshake do not describe themselves, so that a server, or a run of it, cannot be distinguished from
// others by a handshake. Clients must still get the lists of their own server. With real programs.

import * as assert from 'uvu/assert';
import type { JsonObject } from '../../../src/domain/json/json.ts';
import { createGateway, type Gateway } from '../../../src/gateway/gateway.ts';
import { until } from '../../helpers/eventually.ts';
import { suite } from '../../helpers/suite.ts';
import { modernRequest, openSession, postTo } from './post.ts';

const test = suite('mcp endpoint over bare servers', { timeoutMs: 30_000 });

/** Refuses every handshake. Its only tool has the name of the process. */
const PROGRAM = `
  const name = 'tool-' + process.pid;
  const answers = {
    ping: () => ({ result: {} }),
    'tools/list': () => ({ result: { tools: [{ name, inputSchema: { type: 'object' } }] } }),
    'tools/call': () => ({ result: { content: [{ type: 'text', text: name }] } }),
  };
  const refuse = () => ({ error: { code: -32601, message: 'Method not found' } });
  require('readline').createInterface({ input: process.stdin }).on('line', (line) => {
    const { id, method } = JSON.parse(line);
    if (id !== undefined) console.log(JSON.stringify({ jsonrpc: '2.0', id, ...(answers[method] ?? refuse)() }));
  });`;

let gateway: Gateway;
test.before.each(async () => {
  gateway = await createGateway();
});
test.after.each(() => gateway.close({ graceMs: 0 }));

async function add(id: string): Promise<void> {
  const program = { command: process.execPath, args: ['-e', PROGRAM] };
  await gateway.register('bare', { id, ...program }, { waitMs: 20_000 });
  assert.is(gateway.instance('bare', id).snapshot.era, 'bare');
}

const pidOf = (id: string) => gateway.instance('bare', id).snapshot.pid;
const toolOf = (id: string) => `tool-${pidOf(id)}`;

async function restart(id: string): Promise<void> {
  const pid = pidOf(id);
  gateway.restart('bare', id);
  const isOther = () => {
    const { healthy, pid: present } = gateway.instance('bare', id).snapshot;
    return healthy && present !== pid;
  };
  await until(isOther, 'it was restarted');
}

const namesIn = ({ result }: JsonObject): string =>
  Object(result)
    .tools.map(({ name }: JsonObject) => name)
    .join();

/** A session of a legacy client, and what it lists. */
async function open() {
  const headers = await openSession(gateway, 'bare');
  const post = (message: JsonObject) => postTo(gateway, { template: 'bare', message, headers });
  const call = async (name: string) => {
    const { status, answer } = await post({ method: 'tools/call', params: { name, arguments: {} } });
    return { status, text: Object(answer.result).content?.[0].text };
  };
  return { call, list: async () => namesIn((await post({ method: 'tools/list' })).answer) };
}

test('a session lists the tools of its own server, not of others of the template', async () => {
  await add('a');
  await add('b');
  const sessions = [await open(), await open()];
  const listed = [await sessions[0]?.list(), await sessions[1]?.list()];
  assert.equal(listed.toSorted(), [toolOf('a'), toolOf('b')].toSorted());
});

test('a session that called a tool does not continue with another run of its server', async () => {
  await add('a');
  const session = await open();
  const before = toolOf('a');
  assert.equal(await session.call(before), { status: 200, text: before });
  await restart('a');
  assert.equal(await session.call(toolOf('a')), { status: 404, text: undefined });
});

test('clients with and without a session get the tools of the present run', async () => {
  await add('a');
  const session = await open();
  for (const isRestarted of [false, true]) {
    if (isRestarted) await restart('a');
    const modern = await postTo(gateway, { template: 'bare', ...modernRequest('tools/list') });
    assert.equal([await session.list(), namesIn(modern.answer)], [toolOf('a'), toolOf('a')]);
  }
});

test.run();
