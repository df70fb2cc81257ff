import * as assert from 'uvu/assert';
import { backendUnavailable, noHealthyInstance } from '../../src/domain/error-catalogue.ts';
import {
  atInstance,
  openingFailed,
  perhapsDelivered,
  reasonOf,
  shuttingDown,
} from '../../src/domain/errors.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('failures');

const cause = new Error('ECONNREFUSED');
const refused = backendUnavailable('connection refused', { delivered: 'unknown', cause, unreachable: true });

test('keep everything when they are about an instance', () => {
  const error = atInstance(refused, 'a');
  assert.equal([error.code, error.message, error.cause], [refused.code, refused.message, cause]);
  assert.equal(error.facts, { ...refused.facts, instanceId: 'a' });
});

test('of a call that was sent promise nothing, and ask nobody to come back', () => {
  const error = perhapsDelivered(shuttingDown());
  assert.equal([error.code, error.message], [shuttingDown().code, shuttingDown().message]);
  assert.equal([error.delivered, error.facts.retryAfterSeconds], ['unknown', undefined]);
});

test('of an opening were never delivered, and carry the last words', () => {
  const { facts, message } = openingFailed(refused, ['no key']);
  assert.is(message, 'The backend is unavailable: connection refused.');
  assert.equal(facts, {
    delivered: 'no',
    retryAfterSeconds: 1,
    cause,
    stderr: ['no key'],
    unreachable: true,
    reason: 'connection refused',
    plainMessage: 'The backend is unavailable.',
  });
  const plain = backendUnavailable('exited with code 1', { delivered: 'no' });
  assert.is(openingFailed(plain, []).cause, plain);
});

test('have a reason: the clause of a backend that failed, else the message', () => {
  assert.is(reasonOf(refused), 'connection refused');
  assert.is(reasonOf(noHealthyInstance('t')), 'No instance of "t" is healthy right now.');
  assert.is(reasonOf(cause), 'ECONNREFUSED');
  assert.is(reasonOf('a text'), 'it could not be opened');
});

test.run();
