import * as assert from 'uvu/assert';
import { startWithAccounts } from '../../helpers/http-accounts.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('the route of the log level');
const PATH = '/gateway/log-level';

test('changes the level for the requests that follow, and leaves an entry in the audit log', async () => {
  const app = await startWithAccounts();
  assert.equal((await app.as(app.admin, 'GET', PATH)).body, { level: 'silent' });
  const changed = await app.as(app.admin, 'PATCH', PATH, { body: { level: 'info' } });
  assert.equal([changed.status, changed.body], [200, { level: 'info' }]);
  const before = app.log.length;
  await app.as(app.admin, 'GET', '/servers');
  while (app.log.length === before) await new Promise(setImmediate);
  assert.is(app.log.at(-1)?.path, '/servers');
  const { entries } = (await app.as(app.admin, 'GET', '/gateway/audit')).body as { entries: unknown };
  const [{ action, subject, actor_name }] = entries as [Record<string, unknown>];
  assert.equal([action, subject, actor_name], [`PATCH ${PATH}`, `${PATH} info`, 'admin']);
  await app.close();
});

test('refuses an unknown level, and callers without the scope admin', async () => {
  const app = await startWithAccounts();
  assert.is((await app.as(app.admin, 'PATCH', PATH, { body: { level: 'loud' } })).status, 422);
  assert.is((await app.as(app.user, 'PATCH', PATH, { body: { level: 'trace' } })).status, 403);
  assert.is((await app.as(app.user, 'GET', PATH)).status, 403);
  assert.equal((await app.as(app.admin, 'GET', PATH)).body, { level: 'silent' });
  await app.close();
});

test.run();
