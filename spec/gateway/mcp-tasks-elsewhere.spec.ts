// Tasks of which a gateway has not heard: they began at another one that reaches the same HTTP servers, as two nodes of one
// deployment do.

import * as assert from 'uvu/assert';
import { createGateway, type Gateway } from '../../src/gateway.ts';
import { startTaskServer, type TaskServer, type TaskServerOptions } from '../fixtures/task-server.ts';
import { suite } from '../helpers/suite.ts';
import { type Asking, legacy, modern } from './task-clients.ts';

const test = suite('tasks that began at another gateway', { timeoutMs: 20_000 });
const METHODS = ['tasks/get', 'tasks/update', 'tasks/cancel'] as const;

let here: Gateway;
let there: Gateway;
const servers = new Map<string, TaskServer>();
test.before.each(async () => {
  [here, there] = [await createGateway(), await createGateway()];
});
test.after.each(async () => {
  for (const gateway of [here, there]) await gateway.close({ graceMs: 0 });
  for (const server of servers.values()) await server.close();
  servers.clear();
});

/** Starts a server that both gateways have as an instance: `template/id`. */
async function offer(name: string, options?: TaskServerOptions): Promise<TaskServer> {
  const server = await startTaskServer(options);
  servers.set(name, server);
  const [template = '', id = ''] = name.split('/');
  for (const gateway of [here, there])
    await gateway.register(template, { id, endpoint: server.url }, { waitMs: 5_000 });
  return server;
}

/** Begins a task at the other gateway; where, and its id. */
async function begin(template: string, owner?: Asking) {
  const { result, instanceId = '' } = await modern(
    there,
    template,
    'tools/call',
    { name: 'begin', arguments: {} },
    owner,
  );
  return { taskId: String(result.taskId), name: `${template}/${instanceId}` };
}

const ask = (template: string | undefined, taskId: string, owner?: Asking, method = 'tasks/get') =>
  modern(here, template, method, { taskId }, owner);
const askedOf = (name: string) => servers.get(name)?.asked ?? [];
const allAsked = () => [...servers.values()].flatMap(({ asked }) => asked);

for (const method of METHODS) {
  test(`at the path of all templates ${method} comes to the instance that runs it`, async () => {
    for (const name of ['a/one', 'a/two', 'b/one', 'c/one']) await offer(name);
    for (const template of ['a', 'a', 'b', 'c']) {
      const { taskId, name } = await begin(template);
      const { result, instanceId } = await ask(undefined, taskId, 'ann', method);
      assert.equal([result.taskId, instanceId], [taskId, name]);
      assert.is(askedOf(name).at(-1), `${method} ${taskId}`);
      const before = allAsked().length;
      assert.is((await ask(undefined, taskId)).instanceId, name);
      assert.is((await ask(template, taskId)).instanceId, name.split('/')[1]);
      assert.is(allAsked().length, before + 2, 'it is remembered');
    }
  });
}

test('one that nobody knows is unknown at the path of all templates, and asked for once', async () => {
  for (const name of ['a/one', 'b/one']) await offer(name);
  for (let times = 3; times > 0; times -= 1) assert.is((await ask(undefined, 'none')).code, -32602);
  assert.equal(allAsked(), ['tasks/get none', 'tasks/get none']);
});

test('a caller finds only what runs in templates that he may use', async () => {
  for (const name of ['a/one', 'b/one']) await offer(name);
  const owner = { id: 'key:1', templates: new Set(['b']) };
  const { taskId } = await begin('a');
  assert.is((await ask(undefined, taskId, owner)).code, -32602);
  assert.equal([askedOf('a/one'), askedOf('b/one')], [[], [`tasks/get ${taskId}`]]);
});

test('only servers are asked that say that they run tasks', async () => {
  await offer('a/one', { isAnnounced: false });
  await offer('b/one');
  await offer('c/one', { era: 'legacy' });
  assert.is((await ask(undefined, 'none')).code, -32602);
  assert.equal([askedOf('a/one'), askedOf('b/one').length, askedOf('c/one')], [[], 1, []]);
});

test('what another one began through this gateway is not asked for where he did', async () => {
  const [one] = [await offer('a/one'), await offer('b/one')];
  const begun = await modern(here, 'a', 'tools/call', { name: 'begin', arguments: {} });
  const taskId = String(begun.result.taskId);
  for (const method of METHODS) assert.is((await ask(undefined, taskId, 'eve', method)).code, -32602);
  assert.equal(one.asked, []);
});

test('an id that two templates gave means neither where none is named', async () => {
  const nextId = () => '1';
  for (const name of ['a/one', 'b/one']) await offer(name, { nextId });
  await begin('a', 'ann');
  await begin('b', 'bob');
  for (const method of METHODS) assert.is((await ask(undefined, '1', 'ann', method)).code, -32602);
  assert.equal([...new Set(allAsked())], ['tasks/get 1'], 'nobody’s task was touched');
  assert.is((await ask('a', '1', 'ann')).result.taskId, '1');
});

test('a server that says nothing delays the answer by five seconds, and hides nothing', async () => {
  await offer('a/one');
  (await offer('b/one')).hang();
  const { taskId } = await begin('a');
  const startedAt = performance.now();
  const [known, ...others] = await Promise.all([
    ask(undefined, taskId),
    ...['none', 'nil', 'void', 'one too many'].map((id) => ask(undefined, id)),
    ask(undefined, 'none', 'bob'),
  ]);
  assert.is(known.instanceId, 'a/one');
  assert.equal(
    others.map(({ code }) => code),
    [-32602, -32602, -32602, 429, -32602],
  );
  assert.ok(performance.now() - startedAt < 7_000);
});

/** What statistics say of every instance. */
const numbers = () =>
  here.servers().map(({ definition: { serverId }, snapshot }) => {
    const { requests, errors, inFlight, latencyMs } = snapshot;
    return { serverId, requests, errors, inFlight, latencyMs };
  });

test('looking for tasks is no traffic of instances, and makes none of them look busy or sick', async () => {
  for (const name of ['a/one', 'a/two', 'b/one']) await offer(name);
  const before = numbers();
  for (let id = 0; id < 100; id += 1) assert.is((await ask(undefined, `none-${id}`)).code, -32602);
  assert.is(allAsked().length, 300);
  for (let id = 0; id < 100; id += 1) assert.is((await ask('a', `no-${id}`)).code, -32602);
  assert.is(allAsked().length, 500);
  const session = await legacy(here, 'a');
  for (let id = 0; id < 100; id += 1)
    assert.is((await session('tasks/get', { taskId: `not-${id}` })).code, -32602);
  assert.equal(numbers(), before);
  const { totalRequests, errorRate, instances } = here.stats();
  assert.equal({ totalRequests, errorRate, instances }, { totalRequests: 0, errorRate: 0, instances: {} });
});

test('nobody can tell the task of another one from one that is none', async () => {
  for (const name of ['a/one', 'a/two']) await offer(name);
  const { result } = await modern(here, 'a', 'tools/call', { name: 'begin', arguments: {} });
  const others = await ask('a', String(result.taskId), 'eve');
  assert.equal(others, await ask('a', 'none', 'eve'));
  assert.equal([others.code, others.instanceId], [-32602, undefined]);
});

for (const [where, path] of [
  ['a template', 'a'],
  ['all templates', undefined],
] as const) {
  test(`a session of ${where} comes to a task that its owner began at another gateway`, async () => {
    for (const name of ['a/one', 'a/two']) await offer(name);
    const { taskId, name } = await begin('a');
    const sessions = await Promise.all([1, 2, 3].map(() => legacy(here, path)));
    for (const session of sessions) {
      const { result, instanceId = '' } = await session('tasks/get', { taskId });
      assert.equal([result.taskId, `a/${instanceId.replace('a/', '')}`], [taskId, name]);
    }
  });
}

test.run();
