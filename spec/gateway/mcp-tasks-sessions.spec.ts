// Tasks of legacy sessions over real HTTP servers: a session comes to what its owner began, in its own conversation where
// the task is bound to that, else at the instance that runs it, wherever it is bound.

import * as assert from 'uvu/assert';
import { createGateway, type Gateway } from '../../src/gateway.ts';
import { startTaskServer, type TaskServer, type TaskServerOptions } from '../fixtures/task-server.ts';
import { suite } from '../helpers/suite.ts';
import { legacy, modern } from './task-clients.ts';

const test = suite('tasks of sessions');
const METHODS = ['tasks/get', 'tasks/result', 'tasks/cancel'] as const;
const PATHS = ['a', undefined] as const;
const named = (path: string | undefined) => (path === undefined ? 'a__begin' : 'begin');

let gateway: Gateway;
const servers = new Map<string, TaskServer>();
test.before.each(async () => {
  gateway = await createGateway();
});
test.after.each(async () => {
  await gateway.close({ graceMs: 0 });
  for (const server of servers.values()) await server.close();
  servers.clear();
});

async function offer(ids: readonly string[], options?: TaskServerOptions): Promise<void> {
  for (const id of ids) {
    const server = await startTaskServer(options);
    servers.set(id, server);
    await gateway.register('a', { id, endpoint: server.url }, { waitMs: 5_000 });
  }
}

for (const path of PATHS) {
  const where = path === undefined ? 'all templates' : 'a template';

  test(`a session of ${where} comes to its task in the conversation in which it began it`, async () => {
    await offer(['one', 'two'], { era: 'legacy' });
    for (let sessions = 2; sessions > 0; sessions -= 1) {
      const ask = await legacy(gateway, path);
      const call = { name: named(path), arguments: {}, task: { ttl: 60_000 } };
      const begun = await ask('tools/call', call);
      const { taskId } = begun.result.task;
      for (const method of METHODS) {
        const { result, instanceId } = await ask(method, { taskId });
        assert.equal([result.taskId, instanceId], [taskId, begun.instanceId], method);
      }
    }
  });

  test(`a session of ${where} comes to a task of another session of its owner, and nobody else does`, async () => {
    await offer(['one', 'two', 'three']);
    const sessions = await Promise.all([1, 2, 3].map(() => legacy(gateway, path)));
    const eves = await Promise.all([1, 2, 3].map(() => legacy(gateway, path, 'eve')));
    for (const begins of sessions) {
      const { result, instanceId } = await begins('tools/call', { name: named(path), arguments: {} });
      const { taskId } = result;
      for (const ask of sessions) {
        for (const method of ['tasks/get', 'tasks/cancel']) {
          const got = await ask(method, { taskId });
          assert.equal([got.result.taskId, got.instanceId], [taskId, instanceId], method);
        }
      }
      const runner = servers.get(String(instanceId).replace('a/', ''))?.asked ?? [];
      const before = runner.length;
      for (const eve of eves) assert.is((await eve('tasks/cancel', { taskId })).code, -32602);
      assert.is(runner.length, before, 'who runs it is not asked');
    }
  });
}

test('of two tasks of one id a session means the one at its own instance', async () => {
  await offer(['one', 'two'], { nextId: () => '1' });
  const sessions = await Promise.all([1, 2].map(() => legacy(gateway, 'a')));
  const begun: (string | undefined)[] = [];
  for (const ask of sessions)
    begun.push((await ask('tools/call', { name: 'begin', arguments: {} })).instanceId);
  assert.is(new Set(begun).size, 2);
  const asked = await Promise.all(sessions.map((ask) => ask('tasks/get', { taskId: '1' })));
  assert.equal(
    asked.map(({ instanceId }) => instanceId),
    begun,
  );
});

test('the task of an instance that is gone is asked for where the session is, as one of its kind', async () => {
  await offer(['one', 'two'], { nextId: () => '1' });
  const sessions = await Promise.all([1, 2].map(() => legacy(gateway, 'a')));
  const { instanceId: gone = '' } = await modern(gateway, 'a', 'tools/call', {
    name: 'begin',
    arguments: {},
  });
  await gateway.deregister('a', gone);
  const answers = await Promise.all(sessions.map((ask) => ask('tasks/get', { taskId: '1' })));
  const left = gone === 'one' ? 'two' : 'one';
  assert.equal(
    answers.map(({ code, instanceId }) => [code, instanceId]),
    answers.map(() => [-32602, left]),
  );
});

test('who may use a template no longer comes to no task there', async () => {
  await offer(['one']);
  const owner = { id: 'key:1', templates: new Set(['a']) };
  const ask = await legacy(gateway, undefined, owner);
  const { taskId } = (await ask('tools/call', { name: 'a__begin', arguments: {} })).result;
  assert.is((await ask('tasks/get', { taskId })).result.taskId, taskId);
  owner.templates = new Set(['b']);
  assert.is((await ask('tasks/get', { taskId })).code, -32602);
});

test.run();
