// The errors of MCP sessions: code, status, and what a client may do next.

import * as assert from 'uvu/assert';
import * as errors from '../../src/domain/error-catalogue.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('session errors');

test('has a code and a status for each', () => {
  const all = [
    errors.sessionNotFound(),
    errors.sessionLost('its instance is gone'),
    errors.sessionLimit(10),
    errors.processLimit(64),
    errors.parkedCallsFull(1_000),
    errors.sessionShareLimit(10),
    errors.conversationShareLimit(16),
    errors.processShareLimit(16),
    errors.parkedShareLimit(250),
    errors.tooManySearches(),
  ];
  assert.equal(
    all.map(({ code, status }) => `${status} ${code}`),
    [
      '404 SESSION_NOT_FOUND',
      '404 SESSION_NOT_FOUND',
      '503 SESSION_LIMIT',
      '429 QUEUE_FULL',
      '429 QUEUE_FULL',
      '503 SESSION_LIMIT',
      '429 QUEUE_FULL',
      '429 QUEUE_FULL',
      '429 QUEUE_FULL',
      '429 QUEUE_FULL',
    ],
  );
});

test('tells a session that is unknown and one that is somebody else’s in the same words', () => {
  assert.is(errors.sessionNotFound().message, 'There is no such session. Initialize again.');
});

test('says that a lost session did not carry the request', () => {
  const lost = errors.sessionLost('its instance is gone');
  assert.is(lost.delivered, 'no');
  assert.is(lost.message, 'The session ended: its instance is gone. Initialize again.');
});

test('says when it is worth asking again with each 429 of something that was not sent, and with a 503 when others make room', () => {
  const { sessionLimit, sessionShareLimit, conversationShareLimit, processShareLimit, processLimit } = errors;
  const all = [sessionLimit, conversationShareLimit, sessionShareLimit, processShareLimit, processLimit];
  assert.equal(
    all.map((refusal) => refusal(10).facts.retryAfterSeconds),
    [60, 5, undefined, 60, 60],
  );
});

test('names the setting that bounds it', () => {
  assert.match(errors.sessionLimit(10).message, 'sessions.max)');
  assert.match(errors.processLimit(10).message, 'sessions.max_processes)');
  for (const refusal of [errors.sessionShareLimit, errors.processShareLimit, errors.conversationShareLimit])
    assert.match(refusal(10).message, 'sessions.share)');
});

test.run();
