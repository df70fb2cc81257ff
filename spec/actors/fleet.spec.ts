// All instances of a gateway: found, replaced in place, taken out, told about. Crashes are in fleet-crash.spec.ts, the
// end in fleet-close.spec.ts. Time is simulated.

import { mock } from 'node:test';
import * as assert from 'uvu/assert';
import { GatewayError } from '../../src/domain/errors.ts';
import { DEFAULT_POLICY } from '../../src/domain/policy.ts';
import { definition, Harness, settled, silent } from '../helpers/failing-backend.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('fleet');
let harness = new Harness();

test.before.each(() => {
  mock.timers.enable({ apis: ['setTimeout', 'setInterval', 'Date'] });
  harness = new Harness();
});
test.after.each(() => {
  mock.timers.reset();
  return harness.close();
});

test('says which of the two it does not know, the template or the instance', async () => {
  await harness.add('a', silent);
  assert.is(
    codeOf(() => harness.fleet.group('x')),
    'TEMPLATE_NOT_FOUND',
  );
  assert.is(
    codeOf(() => harness.fleet.get('x', 'a')),
    'TEMPLATE_NOT_FOUND',
  );
  assert.is(
    codeOf(() => harness.fleet.refs('x')),
    'TEMPLATE_NOT_FOUND',
  );
  assert.is(
    codeOf(() => harness.fleet.get('t', 'b')),
    'SERVER_NOT_FOUND',
  );
  assert.is(
    codeOf(() => harness.fleet.remove('t', 'b', 0)),
    'SERVER_NOT_FOUND',
  );
  assert.is(
    codeOf(() => harness.fleet.byServerId('b')),
    'SERVER_NOT_FOUND',
  );
  assert.is(
    codeOf(() => harness.fleet.add(definition('a', { template: 'x' }))),
    'TEMPLATE_NOT_FOUND',
  );
  assert.equal(
    [harness.fleet.find('x', 'a'), harness.fleet.find('t', 'b'), harness.fleet.has('x')],
    [undefined, undefined, false],
  );
});

test('gives a new policy to the instances that are there and to those that come', async () => {
  await harness.add('a', silent);
  harness.fleet.govern('t', { ...DEFAULT_POLICY, healthIntervalMs: 1_000 });
  await harness.add('b', silent);
  for (let second = 0; second < 3; second += 1) {
    mock.timers.tick(1_000);
    await settled();
  }
  assert.ok(harness.asked('a', 'ping') >= 3, `a was probed ${harness.asked('a', 'ping')} times`);
  assert.ok(harness.asked('b', 'ping') >= 3, `b was probed ${harness.asked('b', 'ping')} times`);
});

test.run();

function codeOf(body: () => unknown): unknown {
  try {
    return body();
  } catch (thrown) {
    return thrown instanceof GatewayError ? thrown.code : thrown;
  }
}
