// What crosses from the modern era to the legacy one: everything that is the caller's, nothing that only one side knows.

import * as assert from 'uvu/assert';
import { isLogged, logLevelOf } from '../../../src/actors/stateless/stateless-routing.ts';
import type { ExchangeEvent } from '../../../src/domain/exchange.ts';
import type { JsonObject, JsonValue } from '../../../src/domain/json.ts';
import { META } from '../../../src/domain/mcp.ts';
import { suite } from '../../helpers/suite.ts';
import { modernCall } from './stateless-harness.ts';

const test = suite('the request of a guest');

test('opts in to log lines with a level that there is', () => {
  const level = (value: JsonValue) => logLevelOf(modernCall({ [META.logLevel]: value }));
  assert.equal(
    [level('debug'), level('loud'), level(3), level(null)],
    ['debug', undefined, undefined, undefined],
  );
  assert.equal([logLevelOf({ method: 'x' }), logLevelOf(modernCall())], [undefined, undefined]);
});

test('hears log lines from its level on, and everything else', () => {
  const heard = (level: string | undefined, params: JsonObject) =>
    isLogged(level)(notice('notifications/message', params));
  assert.equal([heard(undefined, { level: 'emergency' }), heard('info', { level: 'debug' })], [false, false]);
  assert.equal([heard('info', { level: 'info' }), heard('info', { level: 'alert' })], [true, true]);
  assert.equal([heard('info', { level: 'loud' }), heard('info', {})], [true, true]);
  assert.is(isLogged(undefined)(notice('notifications/progress', {})), true);
});

test.run();

function notice(method: string, params: JsonObject): ExchangeEvent {
  return { kind: 'notification', method, params };
}
