// What sessions have to do with tasks; at which instance they are is known only when they ask there.

import { of } from 'rxjs';
import * as assert from 'uvu/assert';
import type { ExchangeRequest } from '../../src/domain/exchange.ts';
import type { JsonObject } from '../../src/domain/json.ts';
import type { Peer } from '../../src/domain/mcp.ts';
import { LegacyTasks } from '../../src/protocol/legacy-tasks.ts';
import { TaskMemory } from '../../src/protocol/task-memory.ts';
import { suite } from '../helpers/suite.ts';
import { answered } from './listing-backends.ts';
import { PEER, StagedBackends } from './staged-backends.ts';

const test = suite('legacy tasks');

const ANN = { ownerId: 'ann', template: 't' };
const get = (taskId: unknown): ExchangeRequest => ({ method: 'tasks/get', params: { taskId } as JsonObject });
const begin = { method: 'tools/call', params: { name: 'slow', task: {} } };

const sessionOf = (ownerId: string, capabilities: JsonObject = {}) =>
  new StagedBackends().add('one', ownerId, { capabilities });

/** Code of the refusal at that instance; undefined where it would be asked. */
function refusedTo(ownerId: string, tasks: LegacyTasks, request: ExchangeRequest, instanceId: string) {
  const event = tasks.guarded(request, sessionOf(ownerId), 't').refusedAt?.(instanceId);
  return event?.kind === 'error' ? event.error.code : undefined;
}

test('a task that another one began is none where he began it', () => {
  const memory = new TaskMemory();
  const tasks = new LegacyTasks(memory);
  memory.begun(ANN, '1', 'a');
  for (const method of ['tasks/get', 'tasks/result', 'tasks/cancel']) {
    assert.is(refusedTo('eve', tasks, { ...get('1'), method }, 'a'), -32602, method);
  }
  assert.equal(
    [refusedTo('eve', tasks, get('1'), 'b'), refusedTo('ann', tasks, get('1'), 'a')],
    [undefined, undefined],
  );
});

test('one that is begun after the request was made is looked at when it is sent', () => {
  const memory = new TaskMemory();
  const { refusedAt } = new LegacyTasks(memory).guarded(get('1'), sessionOf('eve'), 't');
  memory.begun(ANN, '1', 'a');
  assert.is(refusedAt?.('a')?.kind, 'error');
});

test('tasks are listed only where a server tells sessions apart', () => {
  const session = sessionOf('ann');
  const { refusedAt } = new LegacyTasks().guarded({ method: 'tasks/list' }, session, 't');
  const refused = (['legacy', 'modern', 'bare'] as const).map((era) => {
    session.peer = { ...PEER, era } as Peer;
    return refusedAt?.('a') !== undefined;
  });
  assert.equal(refused, [false, true, true]);
});

test('what is about no task, or about a text that is no id of one, is left as it is', () => {
  const tasks = new LegacyTasks();
  const session = sessionOf('ann');
  for (const request of [begin, { ...get('1'), method: 'vendor/x' }, get(7), get('x'.repeat(2_000))]) {
    assert.is(tasks.guarded(request, session, 't'), request);
  }
});

test('learns of the task that is begun by who asks for one, or by who takes one unasked', () => {
  const memory = new TaskMemory();
  const tasks = new LegacyTasks(memory);
  const taker = { extensions: { 'io.modelcontextprotocol/tasks': {} } };
  const plain = { method: 'tools/call', params: { name: 'slow' } };
  const hear = (request: ExchangeRequest, result: JsonObject, capabilities: JsonObject = {}) => {
    const following = tasks.following(request, sessionOf('ann', capabilities), 't');
    if (following !== undefined) of(answered(result, 'a')).pipe(following).subscribe();
  };
  hear(begin, { task: { taskId: '1' } });
  hear(plain, { resultType: 'task', taskId: '2' }, taker);
  hear(plain, { resultType: 'task', taskId: '3' });
  hear({ method: 'tasks/get', params: { taskId: '4' } }, { task: { taskId: '4' } }, taker);
  assert.equal(
    ['1', '2', '3', '4'].map((taskId) => memory.find(ANN, taskId)),
    ['a', 'a', undefined, undefined],
  );
});

test.run();
