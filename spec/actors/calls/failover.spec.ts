// The rule of failover by itself; what becomes of calls through it is call.spec.ts.

import * as assert from 'uvu/assert';
import { affords, isRepeatable, mayGoOn } from '../../../src/actors/calls/retry.ts';
import type { Delivered } from '../../../src/domain/errors.ts';
import { toolCall } from '../../helpers/failing-backend.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('failover');
const ALL: readonly Delivered[] = ['no', 'unknown', 'yes'];
const KNOWS_READ = { tools: { isRepeatable: (tool: string) => tool === 'read' } };

test('knows by the method, or by the tool, what may be repeated', () => {
  assert.is(isRepeatable({ method: 'tools/list' }, { tools: undefined }), true);
  assert.is(isRepeatable({ method: 'tasks/cancel' }, { tools: undefined }), false);
  assert.is(isRepeatable({ method: 'constructor' }, { tools: undefined }), false);
  assert.is(isRepeatable(toolCall('read'), KNOWS_READ), true);
  assert.is(isRepeatable(toolCall('write'), KNOWS_READ), false);
});

test('repeats no tool that nobody knows, and none without a name', () => {
  assert.is(isRepeatable(toolCall('read'), { tools: undefined }), false);
  assert.is(isRepeatable({ method: 'tools/call', params: { name: ['read'] } }, KNOWS_READ), false);
});

test('goes on after what did not arrive, and after what perhaps did if that may be repeated', () => {
  assert.equal(
    ALL.map((delivered) => mayGoOn(delivered, true)),
    [true, true, false],
  );
  assert.equal(
    ALL.map((delivered) => mayGoOn(delivered, false)),
    [true, false, false],
  );
});

test('pays from the budget for what perhaps arrived, and for nothing else', () => {
  let left = 1;
  const budget = { take: () => left-- > 0 };
  assert.equal([affords(budget, 'no'), affords(budget, 'no')], [true, true]);
  assert.equal([affords(budget, 'unknown'), affords(budget, 'unknown')], [true, false]);
});

test.run();
