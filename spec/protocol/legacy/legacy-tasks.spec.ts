// Requests about tasks in sessions. What clients see over HTTP servers is in gateway/mcp-tasks.spec.ts.

import * as assert from 'uvu/assert';
import type { JsonObject } from '../../../src/domain/json.ts';
import type { Peer } from '../../../src/domain/mcp.ts';
import { exchangeWithTasks } from '../../../src/protocol/legacy/legacy-tasks.ts';
import { TaskMemory } from '../../../src/protocol/task-memory.ts';
import { suite } from '../../helpers/suite.ts';
import { PEER, ScriptedBackends, SessionBackends } from '../scripted-backends.ts';

const test = suite('legacy tasks');

/** A session of `ann` at the instance `one`. */
function setUp() {
  const memory = new TaskMemory();
  const session = new SessionBackends().add('one', 'ann');
  const request = { principal: { id: 'ann' }, template: 't' };
  const backends = new ScriptedBackends();
  const ask = (method: string, params: JsonObject) => {
    const received: unknown[] = [];
    exchangeWithTasks({ method, params }, { session, request, backends }, memory).subscribe({
      next: ({ event }) => received.push(event.kind),
      error: ({ code }) => received.push(code),
    });
    return received;
  };
  return { session, ask };
}

test('tasks are listed only where a server distinguishes sessions', () => {
  const { session, ask } = setUp();
  const refused = (['legacy', 'modern', 'bare'] as const).map((era) => {
    session.peer = { ...PEER, era } as Peer;
    return ask('tasks/list', {});
  });
  assert.equal([refused, session.exchanges.length], [[[], ['error'], ['error']], 1]);
});

test.run();
