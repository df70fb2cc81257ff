import * as assert from 'uvu/assert';
import { serverNotFound, validationFailed } from '../../src/domain/error-catalogue.ts';
import { GatewayError } from '../../src/domain/errors.ts';
import { relocated } from '../../src/http/routes/registration.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('relocated findings');

test('stand where the caller wrote, and say the same', () => {
  const items = [
    { loc: ['body', 'instance', 'endpoint'], msg: 'm', type: 't' },
    { loc: ['query', 'wait'], msg: 'n', type: 'u' },
  ];
  const moved = relocated(validationFailed(items), ([first = '', ...rest]) => [first, 'x', ...rest.slice(1)]);
  assert.equal(moved instanceof GatewayError ? moved.facts.items : [], [
    { loc: ['body', 'x', 'endpoint'], msg: 'm', type: 't' },
    { loc: ['query', 'x'], msg: 'n', type: 'u' },
  ]);
});

test('are all that is touched', () => {
  for (const thrown of [serverNotFound('x'), new Error('other'), 'text', undefined]) {
    assert.is(
      relocated(thrown, () => []),
      thrown,
    );
  }
});

test.run();
