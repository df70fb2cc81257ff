// The log messages that a client without a session opts in to.

import * as assert from 'uvu/assert';
import type { ExchangeEvent } from '../../src/domain/calls/exchange-event.ts';
import type { JsonObject, JsonValue } from '../../src/domain/json/json.ts';
import { META } from '../../src/domain/mcp/mcp.ts';
import { isLogged, logLevelOf } from '../../src/transports/legacy-form.ts';
import { modernCall } from '../helpers/backends/profiles.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('legacy form');

test('a request opts in to log messages with a known level only', () => {
  const level = (value: JsonValue) => logLevelOf(modernCall({ [META.logLevel]: value }));
  const found = [level('debug'), level('loud'), level(3), level(null)];
  assert.equal(found, ['debug', undefined, undefined, undefined]);
  assert.equal([logLevelOf({ method: 'x' }), logLevelOf(modernCall())], [undefined, undefined]);
});

test('passes log messages from the requested level on, and all other notifications', () => {
  const received = (level: string | undefined, params: JsonObject) =>
    isLogged(level)(notice('notifications/message', params));
  assert.is(received(undefined, { level: 'emergency' }), false);
  assert.is(received('info', { level: 'debug' }), false);
  assert.equal([received('info', { level: 'info' }), received('info', { level: 'alert' })], [true, true]);
  assert.equal([received('info', { level: 'loud' }), received('info', {})], [true, true]);
  assert.is(isLogged(undefined)(notice('notifications/progress', {})), true);
});

test.run();

function notice(method: string, params: JsonObject): ExchangeEvent {
  return { kind: 'notification', method, params };
}
