// Requests about tasks in sessions. What clients see over HTTP servers is in gateway/mcp-tasks.spec.ts.

import * as assert from 'uvu/assert';
import { sessionLost } from '../../../src/domain/error-catalogue.ts';
import type { JsonObject } from '../../../src/domain/json.ts';
import type { Peer } from '../../../src/domain/mcp.ts';
import { LegacyTasks } from '../../../src/protocol/legacy/legacy-tasks.ts';
import { TaskMemory } from '../../../src/protocol/task-memory.ts';
import { suite } from '../../helpers/suite.ts';
import { PEER, ScriptedBackends, SessionBackends } from '../scripted-backends.ts';

const test = suite('legacy tasks');

/** A session of `ann` at the instance `one`. */
function setUp(template: string | undefined) {
  const memory = new TaskMemory();
  const tasks = new LegacyTasks(memory);
  const session = new SessionBackends().add('one', 'ann');
  const path = { owner: { id: 'ann' }, backends: new ScriptedBackends(), template };
  const ask = (method: string, params: JsonObject) => {
    const received: unknown[] = [];
    tasks.exchange({ method, params }, session, path).subscribe({
      next: ({ event }) => received.push(event.kind),
      error: ({ code }) => received.push(code),
    });
    return received;
  };
  return { memory, session, ask };
}

test('tasks are listed only where a server distinguishes sessions', () => {
  const { session, ask } = setUp('t');
  const refused = (['legacy', 'modern', 'bare'] as const).map((era) => {
    session.peer = { ...PEER, era } as Peer;
    return ask('tasks/list', {});
  });
  assert.equal([refused, session.exchanges.length], [[[], ['error'], ['error']], 1]);
});

test('at /mcp, a client keeps its session when that of its task is over', () => {
  const { memory, session, ask } = setUp(undefined);
  memory.begun({ ownerId: 'ann', template: 't' }, '1', 'one');
  const inner = new SessionBackends().add('inner', 'ann');
  session.at = () => inner as typeof session;
  const received = ask('tasks/get', { taskId: '1' });
  inner.last.fail(sessionLost('its instance is gone'));
  assert.equal(received, ['BACKEND_UNAVAILABLE']);
});

test.run();
