// The cursors of all lists with pages: a list takes only those that it has given out. ADR 281.

import * as assert from 'uvu/assert';
import { cursorOf } from '../../../src/http/records/schemas.ts';
import { ROUTES } from '../../../src/http/routes/index.ts';
import { startWithAccounts } from '../../helpers/http/accounts.ts';
import { appFor } from '../../helpers/http/app.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('cursors of lists');
const app = appFor(test, () => startWithAccounts());

const paged = ROUTES.flatMap(({ method, path, request }) =>
  request.query?.properties.cursor === undefined ? [] : [`${method} ${path}`],
);

test('all lists with pages are known here', () => {
  assert.equal(paged.sort(), [
    'GET /auth/api-keys',
    'GET /auth/users',
    'GET /gateway/audit',
    'GET /gateway/sessions',
    'GET /servers',
    'GET /v0.1/servers',
  ]);
});

for (const route of paged)
  test(`${route} refuses cursors that are damaged or of another list`, async () => {
    const [, path = ''] = route.split(' ');
    const own = cursorOf('users', '2026-01-01T00:00:00.000Z.x');
    for (const cursor of ['zzz', 'everything-1', `${own}x`, own.slice(1), cursorOf('others', 'x')]) {
      const query = new URLSearchParams({ limit: '2', cursor });
      assert.is((await app.as(app.admin, 'GET', `${path}?${query}`)).outcome, '400 INVALID_CURSOR', cursor);
    }
  });

test('a cursor stays valid when its record is gone', async () => {
  const cursor = cursorOf('users', '9999-01-01T00:00:00.000Z.x');
  const { status, text } = await app.as(app.admin, 'GET', `/auth/users?limit=2&cursor=${cursor}`);
  assert.equal([status, text], [200, '[]']);
});

test.run();
