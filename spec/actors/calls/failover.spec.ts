// The rule of failover by itself; what becomes of calls through it is call.spec.ts.

import * as assert from 'uvu/assert';
import { affords, isRepeatable } from '../../../src/actors/calls/retry.ts';
import { toolCall } from '../../helpers/failing-backend.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('failover');
const KNOWS_READ = { tools: { isRepeatable: (tool: string) => tool === 'read' } };

test('repeats no tool that nobody knows, and none without a name', () => {
  assert.is(isRepeatable(toolCall('read'), { tools: undefined }), false);
  assert.is(isRepeatable({ method: 'tools/call', params: { name: ['read'] } }, KNOWS_READ), false);
});

test('pays from the budget for what perhaps arrived, and for nothing else', () => {
  let left = 1;
  const budget = { take: () => left-- > 0 };
  assert.equal([affords(budget, 'no'), affords(budget, 'no')], [true, true]);
  assert.equal([affords(budget, 'unknown'), affords(budget, 'unknown')], [true, false]);
});

test.run();
