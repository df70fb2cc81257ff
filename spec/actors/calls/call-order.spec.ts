import * as assert from 'uvu/assert';
import { asSent } from '../../../src/actors/calls/call-order.ts';
import { toolOf } from '../../../src/domain/exchange.ts';
import { toolCall } from '../../helpers/failing-backend.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('call: order');

test('names the tool of a call that names one', () => {
  assert.is(toolOf(toolCall('add')), 'add');
  assert.is(toolOf({ method: 'tools/call' }), undefined);
  assert.is(toolOf({ method: 'tools/call', params: { name: 7 } }), undefined);
  assert.is(toolOf({ method: 'prompts/get', params: { name: 'add' } }), undefined);
});

test('sends a request as it is, and of one that waited not when it came', () => {
  const request = toolCall('add');
  assert.is(asSent(request), request);
  assert.equal(asSent({ ...request, cameAtMs: 5 }), request);
});

test.run();
