// Requests about tasks in sessions; the instance of a session is known only when the request is sent.

import { mock } from 'node:test';
import * as assert from 'uvu/assert';
import { backendUnavailable, sessionLost } from '../../../src/domain/error-catalogue.ts';
import type { ExchangeRequest } from '../../../src/domain/exchange.ts';
import type { JsonObject } from '../../../src/domain/json.ts';
import type { Peer } from '../../../src/domain/mcp.ts';
import { LegacyTasks } from '../../../src/protocol/legacy/legacy-tasks.ts';
import { TaskFinder } from '../../../src/protocol/task-finder.ts';
import { suite } from '../../helpers/suite.ts';
import { PEER, ScriptedBackends, SessionBackends } from '../scripted-backends.ts';

const test = suite('legacy tasks');

const ANN = { ownerId: 'ann', template: 't' };
const get = (taskId: unknown): ExchangeRequest => ({ method: 'tasks/get', params: { taskId } as JsonObject });
const sessionOf = (ownerId: string, capabilities: JsonObject = {}) =>
  new SessionBackends().add('one', ownerId, { capabilities });

test('a task that begins after the request was made is checked when the request is sent', () => {
  const finder = new TaskFinder();
  const { refusedAt } = new LegacyTasks(finder).withTaskCheck(get('1'), sessionOf('eve'), 't');
  finder.memory.begun(ANN, '1', 'a');
  assert.is(refusedAt?.('a')?.kind, 'error');
});

test('tasks are listed only where a server distinguishes sessions', () => {
  const session = sessionOf('ann');
  const { refusedAt } = new LegacyTasks(new TaskFinder()).withTaskCheck(
    { method: 'tasks/list' },
    session,
    't',
  );
  const refused = (['legacy', 'modern', 'bare'] as const).map((era) => {
    session.peer = { ...PEER, era } as Peer;
    return refusedAt?.('a') !== undefined;
  });
  assert.equal(refused, [false, true, true]);
});

/** A session at the instance `one`; others are beside it. */
function setUp(where: { readonly template: string | undefined } = { template: 't' }) {
  const finder = new TaskFinder();
  const { memory } = finder;
  const tasks = new LegacyTasks(finder);
  const session = sessionOf('ann');
  const backends = new ScriptedBackends();
  const path = { owner: { id: 'ann' }, backends, ...where };
  const ask = (taskId: string) => {
    const received: unknown[] = [];
    const subscription = tasks.exchange(get(taskId), session, path).subscribe({
      next: ({ event, instanceId }) => received.push(instanceId, event.kind),
      error: (error) => received.push(error.code),
    });
    return { received, subscription };
  };
  const asked = () => backends.exchanges.map(({ request, options }) => [request.method, options.instanceId]);
  return { memory, session, backends, ask, asked };
}

test('no other instance is asked after a possible delivery, nor at /mcp while the instance exists', () => {
  for (const [template, delivered] of [
    ['t', 'unknown'],
    [undefined, 'no'],
  ] as const) {
    const { memory, session, backends, ask } = setUp({ template });
    memory.begun(ANN, '1', 'two');
    const { received } = ask('1');
    backends.last.fail(backendUnavailable('it broke', { delivered }));
    assert.equal([received, session.exchanges.length], [['BACKEND_UNAVAILABLE'], 0]);
  }
});

test('at /mcp, a client keeps its session when that of its task is over', () => {
  const { memory, session, ask } = setUp({ template: undefined });
  memory.begun(ANN, '1', 'one');
  const inner = sessionOf('ann');
  session.at = () => inner;
  const { received } = ask('1');
  inner.last.fail(sessionLost('its instance is gone'));
  assert.equal(received, ['BACKEND_UNAVAILABLE']);
});

test('an unknown task is searched for, and requested in the session if no instance has it', () => {
  mock.timers.enable({ apis: ['setTimeout', 'setInterval'] });
  try {
    const { session, backends, ask, asked } = setUp();
    backends.instances = new Set(['one', 'two', 'three']);
    const everywhere = ['one', 'two', 'three'].map((id) => ['tasks/get', id]);
    ask('1');
    assert.equal(asked(), everywhere);
    backends.exchanges[2]?.result({ taskId: '1' }, 'three');
    assert.equal(asked(), [...everywhere, ['tasks/get', 'three']]);
    backends.exchanges.splice(0);
    ask('2');
    for (const looking of backends.exchanges.slice()) looking.refuse(-32602);
    assert.equal([session.exchanges.length, asked()], [1, everywhere]);
    session.peer = { ...PEER, era: 'modern' };
    assert.equal(ask('2').received, ['', 'error'], 'the search asked in the same conversation');
    session.isShared = false;
    ask('2');
    assert.is(session.exchanges.length, 2);
    backends.exchanges.splice(0);
    ask('3');
    backends.exchanges[0]?.result({ taskId: '3' }, 'one');
    assert.equal([session.exchanges.length, asked()], [3, everywhere], 'it is where the session is');
  } finally {
    mock.timers.reset();
  }
});

test.run();
