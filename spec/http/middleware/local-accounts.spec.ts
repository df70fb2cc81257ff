// Who may change accounts while authentication is off; while it is on, nobody is asked here.

import * as assert from 'uvu/assert';
import { localAccounts } from '../../../src/http/middleware/authorize.ts';
import { json } from '../../../src/http/reply.ts';
import { respond } from '../../../src/http/respond.ts';
import { ROUTES } from '../../../src/http/routes/index.ts';
import { startRoute } from '../../helpers/http-middlewares.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('accounts while authentication is off');

test('are changed from this machine only, and never by a page', async () => {
  let isLocal = true;
  const route = { method: 'POST', path: '/auth/users', scope: 'admin' } as const;
  const app = await startRoute(
    '/auth/users',
    ...localAccounts(route, false, { isLocal: () => isLocal }),
    (context) => respond(context, json(201, {})),
  );
  assert.is((await app.ask('POST', '/auth/users')).status, 201);
  const page = await app.ask('POST', '/auth/users', { headers: { origin: 'http://localhost' } });
  isLocal = false;
  const stranger = await app.ask('POST', '/auth/users');
  for (const { status, body } of [page, stranger]) {
    assert.equal(
      [status, body.error_code, body.required_permissions],
      [403, 'INSUFFICIENT_PERMISSIONS', ['admin']],
    );
  }
  app.close();
});

test('is asked for on every route that changes an account or a key, and on no other', () => {
  const guarded = (isEnabled: boolean) =>
    ROUTES.filter((route) => localAccounts(route, isEnabled, { isLocal: () => false }).length > 0).map(
      ({ method, path }) => `${method} ${path}`,
    );
  assert.equal(guarded(false).sort(), [
    'DELETE /auth/api-keys/:key_id',
    'DELETE /auth/users/:user_id',
    'PATCH /auth/users/:user_id',
    'POST /auth/api-keys',
    'POST /auth/users',
  ]);
  assert.equal(guarded(true), []);
});

test.run();
