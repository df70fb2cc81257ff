// A task is found by who began it, at the path of its template and at that of all, whichever era it was begun in: over a
// template of three instances, each of which knows only its own tasks.

import * as assert from 'uvu/assert';
import { createGateway, type Gateway } from '../../src/gateway.ts';
import type { InProcessHandler } from '../../src/transports/transport.ts';
import { rpcError } from '../helpers/function-backend.ts';
import { suite } from '../helpers/suite.ts';
import { legacy, modern } from './task-clients.ts';

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

const get = (template: string | undefined, taskId: string, owner?: string) =>
  modern(gateway, template, 'tasks/get', { taskId }, owner);

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
      const { taskId } = (await modern(gateway, template, 'tools/call', { name, arguments: {} })).result;
      const [by = ''] = taskId.split('-');
      assert.equal(await runners(taskId), [by]);
      assert.is((await get('a', taskId, 'eve')).code, -32602);
      assert.is((await get(undefined, taskId, 'eve')).code, -32602);
    }
  });
}

test('a task that a session began is found without one', async () => {
  for (const _ of INSTANCES) {
    const ask = await legacy(gateway, 'a');
    const call = { name: 'begin', arguments: {}, task: { ttl: 60_000 } };
    const { result } = await ask('tools/call', call);
    assert.equal(await runners(result.task.taskId), [result.task.taskId.split('-')[0]]);
    assert.is((await get('a', result.task.taskId, 'eve')).code, -32602);
  }
});

test('a session does not come to the task of another one, wherever it is pinned', async () => {
  const { taskId } = (await modern(gateway, 'a', 'tools/call', { name: 'begin', arguments: {} })).result;
  for (const _ of INSTANCES) {
    const eve = await legacy(gateway, 'a', 'eve');
    for (const method of ['tasks/get', 'tasks/result', 'tasks/cancel'])
      assert.is((await eve(method, { taskId })).code, -32602, method);
  }
});

for (const path of ['a', undefined]) {
  test(`a session comes to the task of its owner, wherever it is pinned, at ${path ?? 'all templates'}`, async () => {
    const { taskId } = (await modern(gateway, 'a', 'tools/call', { name: 'begin', arguments: {} })).result;
    const sessions = await Promise.all(INSTANCES.map(() => legacy(gateway, path)));
    for (const method of ['tasks/get', 'tasks/result', 'tasks/cancel']) {
      const own = await Promise.all(sessions.map((ask) => ask(method, { taskId })));
      assert.equal(
        own.map(({ result }) => result.by),
        INSTANCES.map(() => taskId.split('-')[0]),
      );
    }
  });
}

test.run();
