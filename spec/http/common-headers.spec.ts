import * as assert from 'uvu/assert';
import { commonHeaders } from '../../src/http/respond.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('the headers of every answer');

test('name the request', () => {
  assert.equal(commonHeaders({ requestId: 'r1' }), [
    'X-Request-ID',
    'r1',
    'X-Content-Type-Options',
    'nosniff',
  ]);
});

test('keep what needed credentials out of caches', () => {
  const [requestId, isPrivate, variesByOrigin] = ['r1', true, true];
  const told = ['Cache-Control', 'no-store', 'Vary', 'Authorization, Cookie, X-API-Key'];
  assert.equal(commonHeaders({ requestId, isPrivate }).slice(4), told);
  assert.equal(commonHeaders({ requestId, isPrivate, variesByOrigin }, true).slice(4), [
    ...['Vary', 'Authorization, Cookie, X-API-Key, Origin'],
  ]);
  assert.equal(commonHeaders({ requestId, variesByOrigin }).slice(4), ['Vary', 'Origin']);
});

test('tell a caller with a limit about the window', () => {
  const rateLimit = { limit: 1_000, remaining: 0, resetAtSeconds: 1_800_000_000, retryAfterSeconds: 12 };
  assert.equal(commonHeaders({ requestId: 'r1', rateLimit }).slice(4), [
    ...['X-RateLimit-Limit', '1000'],
    ...['X-RateLimit-Remaining', '0'],
    ...['X-RateLimit-Reset', '1800000000'],
  ]);
});

test.run();
