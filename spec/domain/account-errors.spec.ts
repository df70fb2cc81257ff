// What each error about callers and accounts says: its code, and what the answer is made of.

import * as assert from 'uvu/assert';
import * as errors from '../../src/domain/error-catalogue.ts';
import type { GatewayError } from '../../src/domain/errors.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('account errors');

test('has a code, a status and facts for every failure', () => {
  const cases: [GatewayError, string, number, object][] = [
    [errors.authenticationRequired(), 'AUTHENTICATION_REQUIRED', 401, { challenge: true }],
    [errors.invalidCredentials(), 'INVALID_CREDENTIALS', 401, { challenge: true }],
    [errors.tokenExpired(), 'TOKEN_EXPIRED', 401, { challenge: true }],
    [
      errors.insufficientPermissions(['gateway:read', 'tools:call']),
      'INSUFFICIENT_PERMISSIONS',
      403,
      { requiredPermissions: ['gateway:read', 'tools:call'] },
    ],
    [errors.accountsNeedAllTemplates(), 'INSUFFICIENT_PERMISSIONS', 403, { requiredPermissions: ['admin'] }],
    [errors.accountsFromHereOnly(), 'INSUFFICIENT_PERMISSIONS', 403, { requiredPermissions: ['admin'] }],
    [errors.rateLimitExceeded(1_000, 7), 'RATE_LIMIT_EXCEEDED', 429, { retryAfterSeconds: 7 }],
    [errors.tooManyAttempts(60), 'TOO_MANY_ATTEMPTS', 429, { retryAfterSeconds: 60 }],
    [errors.tooManyPasswords(2), 'TOO_MANY_ATTEMPTS', 429, { retryAfterSeconds: 2 }],
    [errors.duplicateUsername('ada'), 'DUPLICATE_USERNAME', 400, {}],
    [errors.lastAdmin(), 'LAST_ADMIN', 400, {}],
    [errors.userNotFound('u1'), 'USER_NOT_FOUND', 404, {}],
    [errors.apiKeyNotFound('k1'), 'API_KEY_NOT_FOUND', 404, {}],
  ];
  for (const [error, code, status, facts] of cases) {
    assert.equal([error.code, error.status, error.facts, error.delivered], [code, status, facts, 'no'], code);
  }
});

test('names what is missing, in sentences', () => {
  assert.is(
    errors.insufficientPermissions(['gateway:read', 'tools:call']).message,
    'This needs the permission "gateway:read" or "tools:call".',
  );
  assert.is(errors.invalidCredentials('The API key has expired').message, 'The API key has expired.');
  assert.match(errors.duplicateUsername('ada').message, '"ada"');
});

test.run();
