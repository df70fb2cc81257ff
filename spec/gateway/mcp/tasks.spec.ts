// Tasks of clients of both eras over real HTTP servers: which instance a request about a task reaches, at the path of its
// template, at that of all templates and in views.

import * as assert from 'uvu/assert';
import { ANONYMOUS, type Principal } from '../../../src/domain/accounts/principal.ts';
import { ToolRights } from '../../../src/domain/accounts/rights.ts';
import type { JsonObject } from '../../../src/domain/json/json.ts';
import { createGateway, type Gateway } from '../../../src/gateway/gateway.ts';
import { startTaskServer, type TaskServer, type TaskServerOptions } from '../../fixtures/task-server.ts';
import { suite } from '../../helpers/suite.ts';
import { modernRequest, openSession, postTo } from './post.ts';

const test = suite('tasks of a gateway', { timeoutMs: 20_000 });
const METHODS = ['tasks/get', 'tasks/update', 'tasks/cancel'] as const;
const UNKNOWN = -32602;
const ann = caller('ann');
const eve = caller('eve');
const PATHS = [
  ['a template', 'a', 'begin'],
  ['all templates', undefined, 'a__begin'],
] as const;

let gateway: Gateway;
const servers = new Map<string, TaskServer>();
test.before.each(async () => {
  gateway = await createGateway();
  await gateway.views.put({ id: 'desk', from: [{ template: 'a' }] });
  await gateway.views.put({ id: 'counter', from: [{ template: 'b' }, { template: 'a' }] });
});
test.after.each(async () => {
  await gateway.close({ graceMs: 0 });
  for (const server of servers.values()) await server.close();
  servers.clear();
});

/** Starts servers that are instances: `template/id`. */
async function offer(names: readonly string[], options?: TaskServerOptions): Promise<void> {
  for (const name of names) {
    const server = await startTaskServer(options);
    servers.set(name, server);
    const [template = '', id = ''] = name.split('/');
    await gateway.register(template, { id, endpoint: server.url }, { waitMs: 5_000 });
  }
}

function caller(id: string, ...templates: string[]): Principal {
  return { ...ANONYMOUS, id, ...(templates.length === 0 ? {} : { templates: new Set(templates) }) };
}

/** The same caller, which may call only these tools. */
const limitedTo = (...entries: string[]): Principal => ({ ...ann, tools: new ToolRights([entries]) });

/** What a client gets: the instance, and the result or the code of the error. */
async function answered(...[gateway, post]: Parameters<typeof postTo>) {
  const { answer, instanceId } = await postTo(gateway, post);
  return { instanceId, result: Object(answer.result), code: Object(answer.error).code };
}

/** One request of a client without a session. */
function modern(template: string | undefined, method: string, params: JsonObject, principal = ann) {
  return answered(gateway, { template, principal, ...modernRequest(method, params) });
}

const ask = (template: string | undefined, taskId: string, principal = ann, method = 'tasks/get') =>
  modern(template, method, { taskId }, principal);

/** Opens a session that accepts tasks, and returns the function that asks in it. */
async function session(template: string | undefined, principal = ann) {
  const extensions = { 'io.modelcontextprotocol/tasks': {} };
  const headers = await openSession(gateway, template, principal, { extensions });
  return (method: string, params: JsonObject) =>
    answered(gateway, { template, principal, headers, message: { method, params } });
}

const sessions = (template: string | undefined, principal?: Principal) =>
  Promise.all([1, 2, 3].map(() => session(template, principal)));

/** Begins a task; its instance, and its id. */
async function begin(template: string) {
  const { result, instanceId } = await modern(template, 'tools/call', { name: 'begin' });
  return { taskId: String(result.taskId), name: `${template}/${instanceId}` };
}

const askedOf = (name: string) => servers.get(name)?.asked ?? [];

for (const [where, path, name] of PATHS) {
  test(`a task that began at the path of ${where} is found at both paths, by its owner only`, async () => {
    await offer(['a/one', 'a/two', 'a/three']);
    const begins = [
      () => modern(path, 'tools/call', { name }),
      async () => (await session(path))('tools/call', { name }),
    ];
    for (const beginsTask of begins) {
      const { result, instanceId = '' } = await beginsTask();
      const { taskId } = result;
      const id = instanceId.replace('a/', '');
      assert.equal(
        [(await ask('a', taskId)).instanceId, (await ask(undefined, taskId)).instanceId],
        [id, `a/${id}`],
      );
      const before = askedOf(`a/${id}`).length;
      for (const other of ['a', undefined])
        for (const method of METHODS) assert.is((await ask(other, taskId, eve, method)).code, UNKNOWN);
      assert.is(askedOf(`a/${id}`).length, before, 'the instance is not asked');
    }
  });

  test(`an id of a task at the path of ${where} that is not text, or too long, reaches no instance`, async () => {
    await offer(['a/one']);
    const { taskId } = await begin('a');
    const inSession = await session(path, eve);
    const before = askedOf('a/one').length;
    for (const written of [[taskId], { toString: taskId }, 1, true, null, undefined, 'x'.repeat(1_025)]) {
      const params = written === undefined ? {} : { taskId: written };
      for (const method of METHODS) {
        assert.is((await modern(path, method, params, eve)).code, UNKNOWN, method);
        assert.is((await inSession(method, params)).code, UNKNOWN, method);
      }
    }
    assert.is(askedOf('a/one').length, before, 'the instance is not asked');
  });

  test(`a session of ${where} gets its task in the conversation in which the task began`, async () => {
    await offer(['a/one', 'a/two'], { era: 'legacy' });
    for (const asks of [await session(path), await session(path)]) {
      const begun = await asks('tools/call', { name, task: { ttl: 60_000 } });
      const { taskId } = begun.result.task;
      for (const method of ['tasks/get', 'tasks/result', 'tasks/cancel']) {
        const { result, instanceId } = await asks(method, { taskId });
        assert.equal([result.taskId, instanceId], [taskId, begun.instanceId], method);
      }
    }
  });

  test(`a session of ${where} gets a task of another session of its owner, and no other owner does`, async () => {
    await offer(['a/one', 'a/two', 'a/three']);
    const [owns, others] = [await sessions(path), await sessions(path, eve)];
    for (const begins of owns) {
      const { result, instanceId = '' } = await begins('tools/call', { name });
      const { taskId } = result;
      for (const asks of owns) {
        for (const method of ['tasks/get', 'tasks/cancel']) {
          const got = await asks(method, { taskId });
          assert.equal([got.result.taskId, got.instanceId], [taskId, instanceId], method);
        }
      }
      const runner = askedOf(`a/${instanceId.replace('a/', '')}`);
      const before = runner.length;
      for (const asks of others) assert.is((await asks('tasks/cancel', { taskId })).code, UNKNOWN);
      assert.is(runner.length, before, 'the instance is not asked');
    }
  });
}

for (const [where, begun] of [
  ['a view', 'desk'],
  ['its template', 'a'],
  ['all templates', undefined],
] as const)
  test(`a task that began at the path of ${where} is found in views and out of them, by its owner only`, async () => {
    await offer(['a/one', 'a/two', 'a/three']);
    const name = begun === undefined ? 'a__begin' : 'begin';
    const paths = ['desk', 'counter', 'a', undefined];
    const asking = await Promise.all(paths.map((path) => session(path)));
    for (const begins of [modern.bind(undefined, begun), await session(begun)]) {
      const { result, instanceId = '' } = await begins('tools/call', { name });
      const { taskId } = result;
      const id = instanceId.replace('a/', '');
      const found = [];
      for (const path of paths) found.push(await ask(path, taskId));
      for (const asks of asking) found.push(await asks('tasks/get', { taskId }));
      const places = [`a/${id}`, `a/${id}`, id, `a/${id}`];
      assert.equal(
        found.map((each) => [each.result?.taskId, each.instanceId]),
        [...places, ...places].map((place) => [taskId, place]),
      );
      const before = askedOf(`a/${id}`).length;
      for (const path of paths)
        for (const method of METHODS) assert.is((await ask(path, taskId, eve, method)).code, UNKNOWN);
      assert.is(askedOf(`a/${id}`).length, before, 'the instance is not asked');
    }
  });

test('of two tasks with one id a view finds the one of its own templates, and none of others', async () => {
  await offer(['a/one', 'b/one', 'c/one'], { nextId: () => '1' });
  await begin('a');
  await begin('b');
  assert.equal((await ask('desk', '1')).instanceId, 'a/one');
  assert.equal((await (await session('desk'))('tasks/get', { taskId: '1' })).instanceId, 'a/one');
  await gateway.views.put({ id: 'counter', from: [{ template: 'c' }] });
  assert.is((await ask('counter', '1')).code, UNKNOWN);
  assert.is((await (await session('counter'))('tasks/get', { taskId: '1' })).code, UNKNOWN);
  assert.equal(askedOf('c/one'), []);
});

test('of two tasks with one id a session gets the one at its own instance', async () => {
  await offer(['a/one', 'a/two'], { nextId: () => '1' });
  const both = [await session('a'), await session('a')];
  const begun: (string | undefined)[] = [];
  for (const asks of both) begun.push((await asks('tools/call', { name: 'begin' })).instanceId);
  assert.is(new Set(begun).size, 2);
  const found = await Promise.all(both.map((asks) => asks('tasks/get', { taskId: '1' })));
  assert.equal(
    found.map(({ instanceId }) => instanceId),
    begun,
  );
});

test('an unknown task is requested at the instance of the session', async () => {
  await offer(['a/one', 'a/two']);
  for (const asks of [await session('a'), await session('a')]) {
    const { code, instanceId = '' } = await asks('tasks/get', { taskId: 'none' });
    assert.equal([code, askedOf(`a/${instanceId}`)], [UNKNOWN, ['tasks/get none']]);
  }
});

test('a task whose instance was removed is gone, with and without a session', async () => {
  await offer(['a/one', 'a/two']);
  const asks = await session('a');
  const { taskId, name } = await begin('a');
  await gateway.deregister('a', name.replace('a/', ''));
  assert.is((await ask('a', taskId)).code, UNKNOWN);
  assert.is((await asks('tasks/get', { taskId })).code, UNKNOWN);
});

test('after a restart any instance is asked for a task, but none at the path of all templates and in views', async () => {
  await offer(['a/one']);
  const { taskId, name } = await begin('a');
  await gateway.close({ graceMs: 0 });
  gateway = await createGateway();
  await gateway.views.put({ id: 'desk', from: [{ template: 'a' }] });
  const id = name.replace('a/', '');
  await gateway.register('a', { id, endpoint: servers.get(name)?.url ?? '' }, { waitMs: 5_000 });
  const before = askedOf(name).length;
  for (const path of [undefined, 'desk']) {
    assert.is((await ask(path, taskId)).code, UNKNOWN);
    assert.is((await (await session(path))('tasks/get', { taskId })).code, UNKNOWN);
  }
  assert.is(askedOf(name).length, before);
  const inSession = await session('a');
  for (const { result, instanceId } of [await ask('a', taskId), await inSession('tasks/get', { taskId })])
    assert.equal([result.status, instanceId], ['working', id]);
});

test('an owner that may not use the template any more gets no task of it', async () => {
  await offer(['a/one', 'b/one']);
  const { taskId } = await begin('a');
  const confined = caller(ann.id, 'b');
  for (const method of METHODS) assert.is((await ask(undefined, taskId, confined, method)).code, UNKNOWN);
  assert.equal(askedOf('a/one'), []);
});

for (const era of ['legacy', 'modern'] as const)
  test(`a caller that may not call its tool any more gets no task of a ${era} server`, async () => {
    await offer(['a/one'], { era });
    for (const [path, name] of [
      ['a', 'begin'],
      [undefined, 'a__begin'],
      ['desk', 'begin'],
    ] as const) {
      const begun = await (await session(path))('tools/call', { name, task: { ttl: 60_000 } });
      const taskId = String((begun.result.task ?? begun.result).taskId);
      const others = [limitedTo('a/other'), limitedTo('a/*', '!a/begin')];
      const before = askedOf('a/one').length;
      for (const principal of others)
        for (const asked of ['a', undefined, 'desk', 'counter']) {
          const inSession = await session(asked, principal);
          for (const method of [...METHODS, 'tasks/result'])
            assert.is((await inSession(method, { taskId })).code, UNKNOWN, `${asked} ${method}`);
          for (const method of METHODS)
            assert.is((await ask(asked, taskId, principal, method)).code, UNKNOWN, `${asked} ${method}`);
        }
      assert.is(askedOf('a/one').length, before, 'the instance is not asked');
      for (const asked of ['a', undefined, 'desk']) {
        await ask(asked, taskId, limitedTo('a/begin'));
        await (await session(asked, limitedTo('a/begin')))('tasks/get', { taskId });
      }
      assert.is(askedOf('a/one').length, before + 6, 'a caller with the tool asks');
    }
  });

for (const [how, from] of [
  ['by its name', { template: 'a', tools: ['other'] }],
  ['by its hints', { template: 'a', only: { readOnly: true } }],
] as const)
  test(`a view that does not have its tool any more, ${how}, gives no task`, async () => {
    await offer(['a/one']);
    const begun = await modern('desk', 'tools/call', { name: 'begin' });
    const { taskId } = begun.result;
    const begunInSession = await session('desk');
    assert.is((await ask('desk', taskId)).result?.taskId, taskId);
    const before = askedOf('a/one').length;
    await gateway.views.put({ id: 'desk', from: [from] });
    for (const method of METHODS) {
      assert.is((await ask('desk', taskId, ann, method)).code, UNKNOWN);
      assert.is((await begunInSession(method, { taskId })).code, UNKNOWN);
    }
    assert.is(askedOf('a/one').length, before, 'the instance is not asked');
    assert.is((await ask('a', taskId)).result?.taskId, taskId);
  });

test('a caller with rights to some tools gets no task of an unknown tool', async () => {
  await offer(['a/one']);
  const { taskId } = await begin('a');
  await gateway.close({ graceMs: 0 });
  gateway = await createGateway();
  await gateway.register('a', { id: 'one', endpoint: servers.get('a/one')?.url ?? '' }, { waitMs: 5_000 });
  const principal = limitedTo('a/begin');
  assert.is((await ask('a', taskId, principal)).code, UNKNOWN);
  assert.is((await (await session('a', principal))('tasks/get', { taskId })).code, UNKNOWN);
  assert.equal(askedOf('a/one'), []);
  assert.is((await ask('a', taskId)).result?.taskId, taskId);
});

test.run();
