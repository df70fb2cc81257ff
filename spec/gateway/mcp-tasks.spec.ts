// A task is found by who began it, at the path of its template and at that of all, whichever era it was begun in: over a
// template of three instances, each of which knows only its own tasks.

import { setImmediate as turn } from 'node:timers/promises';
import * as assert from 'uvu/assert';
import { ANONYMOUS } from '../../src/domain/account.ts';
import type { JsonObject } from '../../src/domain/json.ts';
import { createGateway, type Gateway } from '../../src/gateway.ts';
import type { McpRequest } from '../../src/protocol/endpoint-types.ts';
import { failureOf } from '../../src/protocol/rpc-failure.ts';
import type { InProcessHandler } from '../../src/transports/transport.ts';
import { rpcError } from '../helpers/function-backend.ts';
import { suite } from '../helpers/suite.ts';
import { parsed, RecordedReply } from '../protocol/recorded-reply.ts';

const test = suite('tasks of a gateway');
const INSTANCES = ['one', 'two', 'three'];

let gateway: Gateway;
test.before.each(async () => {
  gateway = await createGateway();
  for (const id of INSTANCES) await gateway.register('a', { id, handler: running(id) }, { waitMs: 5_000 });
});
test.after.each(() => gateway.close({ graceMs: 0 }));

/** Begins tasks in the words of the era that asks, and knows them. */
function running(id: string): InProcessHandler {
  const tasks = new Set<string>();
  return ({ method, params }) => {
    if (method === 'ping') return {};
    if (method === 'tools/list') return { tools: [{ name: 'begin', inputSchema: { type: 'object' } }] };
    if (method === 'tools/call') {
      const taskId = `${id}-${tasks.size}`;
      tasks.add(taskId);
      return params?.task === undefined ? { resultType: 'task', taskId } : { task: { taskId } };
    }
    const { taskId } = params ?? {};
    if (!method.startsWith('tasks/') || typeof taskId !== 'string' || !tasks.has(taskId))
      throw rpcError(-32602, `${id} knows no such task`);
    return { resultType: 'complete', taskId, status: 'working', by: id };
  };
}

async function post(template: string | undefined, message: JsonObject, headers: object, owner = 'ann') {
  const reply = new RecordedReply();
  const request: McpRequest = {
    method: 'POST',
    headers: {
      accept: 'application/json, text/event-stream',
      'content-type': 'application/json',
      ...headers,
    },
    body: Buffer.from(JSON.stringify({ jsonrpc: '2.0', id: 1, ...message })),
    template,
    principal: { ...ANONYMOUS, id: owner },
    charge: () => {},
  };
  try {
    await gateway.mcp.handle(request, reply);
  } catch (thrown) {
    const { status, body } = failureOf(thrown);
    reply.json(status, body);
  }
  while (!reply.isAnswered) await turn();
  const answer = parsed(reply.body ?? reply.opened?.events.at(-1)?.data ?? '{}');
  return { headers: reply.headers, result: Object(answer.result), code: Object(answer.error).code };
}

function modern(template: string | undefined, method: string, params: JsonObject, owner?: string) {
  const meta = (name: string) => `io.modelcontextprotocol/${name}`;
  const _meta = { [meta('protocolVersion')]: '2026-07-28', [meta('clientCapabilities')]: {} };
  const headers = {
    'mcp-protocol-version': '2026-07-28',
    'mcp-method': method,
    'mcp-name': String(params.taskId ?? params.name),
  };
  return post(template, { method, params: { ...params, _meta } }, headers, owner);
}

const get = (template: string | undefined, taskId: string, owner?: string) =>
  modern(template, 'tasks/get', { taskId }, owner);

/** Who answers for it, each time, at either path. */
async function runners(taskId: string): Promise<string[]> {
  const asked = INSTANCES.flatMap(() => [get('a', taskId), get(undefined, taskId)]);
  return [...new Set((await Promise.all(asked)).map(({ result, code }) => result.by ?? code))];
}

for (const [where, template, name] of [
  ['its template', 'a', 'begin'],
  ['all templates', undefined, 'a__begin'],
] as const) {
  test(`a task that was begun at the path of ${where} is found at both`, async () => {
    for (const _ of INSTANCES) {
      const { taskId } = (await modern(template, 'tools/call', { name, arguments: {} })).result;
      const [by = ''] = taskId.split('-');
      assert.equal(await runners(taskId), [by]);
      assert.is((await get('a', taskId, 'eve')).code, -32602);
      assert.is((await get(undefined, taskId, 'eve')).code, -32602);
    }
  });
}

/** Opens a session; what asks in it. */
async function legacy(owner?: string) {
  const clientInfo = { name: 'spec', version: '1' };
  const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo };
  const { headers } = await post('a', { method: 'initialize', params }, {}, owner);
  const session = { 'mcp-session-id': headers[headers.indexOf('Mcp-Session-Id') + 1] };
  return (method: string, asked: JsonObject) => post('a', { method, params: asked }, session, owner);
}

test('a task that a session began is found without one', async () => {
  for (const _ of INSTANCES) {
    const ask = await legacy();
    const call = { name: 'begin', arguments: {}, task: { ttl: 60_000 } };
    const { result } = await ask('tools/call', call);
    assert.equal(await runners(result.task.taskId), [result.task.taskId.split('-')[0]]);
    assert.is((await get('a', result.task.taskId, 'eve')).code, -32602);
  }
});

test('a session does not come to the task of another one, wherever it is pinned', async () => {
  const { taskId } = (await modern('a', 'tools/call', { name: 'begin', arguments: {} })).result;
  for (const _ of INSTANCES) {
    const eve = await legacy('eve');
    for (const method of ['tasks/get', 'tasks/result', 'tasks/cancel'])
      assert.is((await eve(method, { taskId })).code, -32602, method);
  }
  const own = await Promise.all(INSTANCES.map(async () => (await legacy())('tasks/get', { taskId })));
  assert.equal(
    own.flatMap(({ result }) => result.by ?? []),
    [taskId.split('-')[0]],
  );
});

test.run();
