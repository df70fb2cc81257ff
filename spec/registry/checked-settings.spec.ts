import * as assert from 'uvu/assert';
import { GatewayError } from '../../src/domain/errors.ts';
import { checkSettings } from '../../src/registry/checked-input.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('registry: checked settings');

test('says of each that cannot be followed why, and not what it was', () => {
  const error = refused(Object({ strategy: 'secret', timeout: 0.5, retries: 3 }));
  assert.is(error.code, 'VALIDATION_ERROR');
  const found = error.facts.items?.map(({ msg }) => msg.split(':')[0]);
  assert.equal(new Set(found), new Set(['retries', 'strategy', 'timeout']));
  assert.equal(error.facts.items?.[0]?.loc, ['body', 'load_balancer']);
  assert.not.match(JSON.stringify(error.facts.items), 'secret');
});

test.run();

function refused(settings: object): GatewayError {
  try {
    checkSettings(settings);
  } catch (thrown) {
    if (thrown instanceof GatewayError) return thrown;
    throw thrown;
  }
  throw new Error('they were taken');
}
