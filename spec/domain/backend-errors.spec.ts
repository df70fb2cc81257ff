// What is told of a call that no backend answered.

import * as assert from 'uvu/assert';
import {
  backendTimeout,
  backendUnavailable,
  noHealthyInstance,
  queueFull,
  runsElsewhere,
  toolNotFound,
} from '../../src/domain/error-catalogue.ts';
import type { GatewayError } from '../../src/domain/errors.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('backend errors');
const cause = new Error('the cause');

/** Everything a reader of the error can see. */
function whole(error: GatewayError) {
  const { code, status, delivered, message, facts } = error;
  return { code, status, delivered, message, facts };
}

test('names the tool that nobody has', () => {
  const { status, code, delivered, message } = toolNotFound('add', 'weather');
  assert.equal(
    [status, code, delivered, message],
    [404, 'TOOL_NOT_FOUND', 'no', '"weather" has no tool named "add".'],
  );
});

test('says when to try again when nothing was delivered', () => {
  for (const error of [
    noHealthyInstance('weather'),
    backendUnavailable('connection refused', { delivered: 'no' }),
    queueFull('weather'),
  ]) {
    assert.is(error.delivered, 'no');
    assert.ok((error.facts.retryAfterSeconds ?? 0) > 0, error.code);
  }
});

test('does not invite to try again when something may have been delivered', () => {
  for (const error of [
    backendUnavailable('exited with code 7', { delivered: 'unknown' }),
    backendUnavailable('sent no JSON', { delivered: 'yes' }),
    backendTimeout(30_000),
  ]) {
    assert.is(error.facts.retryAfterSeconds, undefined, error.message);
  }
});

test('keeps why a backend is unavailable', () => {
  assert.equal(
    whole(backendUnavailable('connection reset', { delivered: 'unknown', cause, suspicious: true })),
    {
      code: 'BACKEND_UNAVAILABLE',
      status: 503,
      delivered: 'unknown',
      message: 'The backend is unavailable: connection reset.',
      facts: {
        delivered: 'unknown',
        cause,
        suspicious: true,
        reason: 'connection reset',
        plainMessage: 'The backend is unavailable.',
      },
    },
  );
});

test('suspects an instance that did not answer in time', () => {
  assert.equal(whole(backendTimeout(1_500)), {
    code: 'BACKEND_TIMEOUT',
    status: 503,
    delivered: 'unknown',
    message: 'The backend did not answer within 1.5 s.',
    facts: { delivered: 'unknown', suspicious: true, reason: 'it did not answer within 1.5 s' },
  });
});

test('lets a call be made again that ran out of time before it was sent', () => {
  const { delivered, facts } = backendTimeout(1_500, 'no');
  assert.equal([delivered, facts.retryAfterSeconds], ['no', 1]);
});

test('says of single instances why none is healthy', () => {
  const { message } = noHealthyInstance('files', 'a is starting; b: connection refused');
  assert.is(message, 'No instance of "files" is healthy right now: a is starting; b: connection refused.');
  assert.is(noHealthyInstance('files').message, 'No instance of "files" is healthy right now.');
});

test('tells of an instance of another node where it runs, and to the public that it is not to be used here', () => {
  assert.equal(whole(runsElsewhere('files-1', 'it runs on the node "b"')), {
    code: 'NO_HEALTHY_INSTANCE',
    status: 503,
    delivered: 'no',
    message: '"files-1" cannot be used here: it runs on the node "b".',
    facts: { delivered: 'no', plainMessage: '"files-1" cannot be used here.' },
  });
});

test.run();
