// Programs that end when they get a message that they do not expect: no client may end the program that others use. With real
// programs, at the endpoints of templates and of all of them.

import * as assert from 'uvu/assert';
import type { JsonObject } from '../../../src/domain/json/json.ts';
import { createGateway, type Gateway } from '../../../src/gateway/gateway.ts';
import { until } from '../../helpers/eventually.ts';
import { suite } from '../../helpers/suite.ts';
import { modernRequest, openSession, postTo, send } from './post.ts';

const test = suite('mcp endpoint over fragile programs', { timeoutMs: 30_000 });

/** Ends with code 1 when it gets one of the methods in its arguments. `slow` answers with the process id when `go` is called. */
const PROGRAM = `
  const [era, ...fatal] = process.argv.slice(1);
  const say = (id, answer) => console.log(JSON.stringify({ jsonrpc: '2.0', id, ...answer }));
  const refuse = (id) => say(id, { error: { code: -32601, message: 'Method not found' } });
  const schema = { type: 'object' };
  const waiting = [];
  const common = { resultType: 'complete', ttlMs: 0, cacheScope: 'private' };
  const legacy = { protocolVersion: '2025-11-25', capabilities: { tools: {} }, serverInfo: { name: 'fragile', version: '1' } };
  const modern = { ...common, supportedVersions: ['2026-07-28'], capabilities: { tools: {} } };
  const text = () => ({ ...common, content: [{ type: 'text', text: String(process.pid) }] });
  require('readline').createInterface({ input: process.stdin }).on('line', (line) => {
    const { id, method, params } = JSON.parse(line);
    if (fatal.includes(method)) process.exit(1);
    if (id === undefined) return;
    if (method === 'initialize' && era === 'legacy') return say(id, { result: legacy });
    if (method === 'server/discover' && era === 'modern') return say(id, { result: modern });
    if (method === 'ping') return say(id, { result: {} });
    if (method === 'tools/list') return say(id, { result: { ...common, tools: [{ name: 'slow', inputSchema: schema }, { name: 'go', inputSchema: schema }] } });
    if (method !== 'tools/call') return refuse(id);
    if (params.name === 'slow') return waiting.push(id);
    for (const each of waiting.splice(0)) say(each, { result: text() });
    say(id, { result: text() });
  });`;

let gateway: Gateway;
test.before.each(async () => {
  gateway = await createGateway();
});
test.after.each(() => gateway.close({ graceMs: 0 }));

async function add(id: string, era: 'legacy' | 'modern', fatal: readonly string[]): Promise<void> {
  const program = { command: process.execPath, args: ['-e', PROGRAM, era, ...fatal] };
  await gateway.register('a', { id, ...program }, { waitMs: 20_000 });
  assert.equal([snapshot(id).era, snapshot(id).healthy], [era, true]);
}

const snapshot = (id: string) => gateway.instance('a', id).snapshot;
const textIn = ({ result }: JsonObject) => Object(result).content?.[0].text;
const codeIn = ({ error }: JsonObject) => Object(error).code;
const call = (name: string) => ({ method: 'tools/call', params: { name, arguments: {} } });

for (const template of ['a', undefined]) {
  const where = template === undefined ? 'all templates' : 'a template';
  const tool = (name: string) => (template === undefined ? `a__${name}` : name);

  test(`a session with ${where} passes no method of the modern era on`, async () => {
    const fatal = ['subscriptions/listen', 'tasks/update'];
    for (const [id, era] of [
      ['one', 'legacy'],
      ['two', 'modern'],
    ] as const) {
      await add(id, era, [...fatal, 'tasks/result', ...(era === 'legacy' ? [] : ['tasks/list'])]);
      const { pid } = snapshot(id);
      const [mine, others] = [await openSession(gateway, template), await openSession(gateway, template)];
      const post = (message: JsonObject, headers = mine) => postTo(gateway, { template, message, headers });
      const slow = post(call(tool('slow')), others);
      const codes = [];
      for (const params of [undefined, {}, { _meta: {} }])
        for (const method of ['server/discover', 'subscriptions/listen'])
          codes.push(codeIn((await post({ method, params })).answer));
      assert.equal(codes, new Array(6).fill(-32601), era);
      const unknown = era === 'legacy' ? 'tasks/update' : 'tasks/result';
      const { answer } = await post({ method: unknown, params: { taskId: '1' } });
      assert.is(codeIn(answer), -32601, era);
      assert.is(textIn((await post(call(tool('go')))).answer), String(pid));
      assert.is(textIn((await slow).answer), String(pid), 'the call of the other client goes on');
      await gateway.deregister('a', id);
    }
  });

  test(`a request of the modern era for ${where} passes no method of the other era on`, async () => {
    const removed = ['ping', 'logging/setLevel', 'resources/subscribe', 'resources/unsubscribe'];
    await add('one', 'legacy', ['server/discover', 'tasks/update', ...removed.slice(1)]);
    const { pid } = snapshot('one');
    for (const method of [...removed, 'initialize', 'tasks/list', 'tasks/result', 'tasks/update']) {
      const params = method === 'tasks/update' ? { taskId: '1' } : {};
      const { answer } = await postTo(gateway, { template, ...modernRequest(method, params) });
      assert.is(codeIn(answer), -32601, method);
    }
    const { message, headers } = modernRequest('tools/call', { name: tool('go'), arguments: {} });
    const { answer } = await postTo(gateway, { template, message, headers });
    assert.is(textIn(answer), String(pid));
  });
}

test('a program that ended after a cancellation gets no other one, nor does another program of its command', async () => {
  const fatal = ['notifications/cancelled'];
  await add('one', 'legacy', fatal);
  const headers = await openSession(gateway, 'a');
  const cancelled = async () => {
    const post = (message: JsonObject) => send(gateway, 'POST', { template: 'a', message, headers });
    await post({ ...call('slow'), id: 5 });
    await postTo(gateway, { template: 'a', message: { method: 'vendor/any' }, headers }); // the program has read the call
    await post({ method: 'notifications/cancelled', params: { requestId: 5 } });
  };
  const first = snapshot('one').pid;
  await cancelled();
  const isOther = ({ pid, healthy }: { pid?: unknown; healthy: boolean }) => healthy && pid !== first;
  await until(() => isOther(snapshot('one')), 'it was restarted');
  for (const id of ['one', 'two']) {
    if (id === 'two') {
      await gateway.deregister('a', 'one');
      await add('two', 'legacy', fatal);
    }
    const { pid } = snapshot(id);
    const session = await openSession(gateway, 'a');
    headers['mcp-session-id'] = session['mcp-session-id'];
    const slow = postTo(gateway, {
      template: 'a',
      message: call('slow'),
      headers: await openSession(gateway, 'a'),
    });
    await cancelled();
    const { answer } = await postTo(gateway, { template: 'a', message: call('go'), headers });
    assert.equal([textIn(answer), textIn((await slow).answer)], [String(pid), String(pid)]);
  }
});

test.run();
