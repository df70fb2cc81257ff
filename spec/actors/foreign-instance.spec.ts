// An instance of another node, as this one shows it.

import * as assert from 'uvu/assert';
import { ForeignInstance } from '../../src/actors/foreign-instance.ts';
import { definition } from '../helpers/failing-backend.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('foreign instance');
const registered = definition('a', { transport: 'stdio', command: 'run', nodeId: 'b:8080', weight: 3 });

test('is stopped, and says where it runs', () => {
  const foreign = new ForeignInstance(registered);
  assert.is(foreign.definition, registered);
  assert.equal(foreign.snapshot(), {
    id: 'a',
    serverId: 'a',
    template: 't',
    state: 'stopped',
    healthy: false,
    inFlight: 0,
    weight: 3,
    score: 0,
    latencyMs: null,
    consecutiveFailures: 0,
    ejection: null,
    lastCheck: null,
    reason: 'it runs on the node "b:8080"',
    restarts: 0,
    requests: 0,
    errors: 0,
    era: null,
    pid: null,
    stderr: [],
    unmatchedMessages: 0,
  });
});

test('takes another weight', () => {
  const foreign = new ForeignInstance(registered);
  foreign.change({ ...registered, weight: 9 });
  assert.equal([foreign.definition.weight, foreign.snapshot().weight], [9, 9]);
});

test.run();
