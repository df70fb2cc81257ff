// Which event ends an exchange.

import * as assert from 'uvu/assert';
import { type ExchangeEvent, isFinal, isFinalAnswer } from '../../src/domain/exchange.ts';
import { JsonText } from '../../src/domain/json.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('exchange');

test('ends with a result or an error, and with nothing that comes on the way', () => {
  const events: ExchangeEvent[] = [
    { kind: 'notification', method: 'notifications/progress', params: {} },
    { kind: 'request', method: 'roots/list', params: {}, answer: () => {} },
    { kind: 'interrupted', retryMs: 500 },
    { kind: 'result', result: JsonText.ofValue({}) },
    { kind: 'error', error: { code: -32603, message: 'no' } },
  ];
  assert.equal(
    events.filter(isFinal).map(({ kind }) => kind),
    ['result', 'error'],
  );
  assert.equal(
    events.map((event) => isFinalAnswer({ event, instanceId: 'a', serverId: 'a' })),
    events.map(isFinal),
  );
});

test.run();
