// Requests that are too many for the audit log: how their number is in its later entries.

import { mock } from 'node:test';
import * as assert from 'uvu/assert';
import { suite } from '../../helpers/suite.ts';
import { createAuditLog, entry } from './audit-samples.ts';

const test = suite('suppressed requests in the audit log');

test.before.each(() => mock.timers.enable({ apis: ['setTimeout'] }));
test.after.each(() => mock.timers.reset());

const login = (status: number, address: string) => ({
  ...{ actor: 'unknown', actorName: 'unknown', action: 'POST /auth/login', subject: '/auth/login' },
  ...{ status, address, requestId: 'r' },
});

test('the next entry of an action and address says how many requests before it were suppressed', async () => {
  const { audit, suppressed } = createAuditLog();
  for (let count = 0; count < 3; count += 1) audit.suppress(login(401, '192.0.2.1'));
  audit.suppress(login(429, '192.0.2.2'));
  audit.record({ ...login(401, '192.0.2.1'), action: 'POST /servers' });
  audit.record(login(401, '192.0.2.3'));
  audit.record({ ...login(200, '192.0.2.1'), actor: 'user:1', actorName: 'ada' });
  audit.record(login(401, '192.0.2.1'));
  assert.equal(await suppressed(), [
    ['192.0.2.1', 401, 'none'],
    ['192.0.2.3', 401, 'none'],
    ['192.0.2.1', 200, 3],
    ['192.0.2.1', 401, 'none'],
  ]);
});

test('suppressed requests that no entry followed have entries of their own at close, without a request', async () => {
  const { audit, suppressed, store } = createAuditLog();
  for (const status of [401, 429]) audit.suppress(login(status, '192.0.2.1'));
  audit.suppress(login(401, '192.0.2.2'));
  await audit.close();
  assert.equal(await suppressed(store.audit), [
    ['192.0.2.2', 401, 1],
    ['192.0.2.1', 429, 2],
  ]);
  const [{ actor, action, subject, requestId } = entry('')] = await store.audit.list({ limit: 1 });
  assert.equal([actor, action, subject, requestId], ['unknown', 'POST /auth/login', '', undefined]);
});

test('counts the suppressed requests of 1,000 addresses one by one, and those of further ones together', async () => {
  const { audit, suppressed, store } = createAuditLog();
  for (let count = 0; count < 2; count += 1) audit.suppress(login(401, 'first'));
  for (let index = 0; index < 1_001; index += 1) audit.suppress(login(401, `address ${index}`));
  audit.record(login(401, 'first'));
  assert.equal(await suppressed(), [
    ['none', 401, 3],
    ['first', 401, 'none'],
  ]);
  await audit.close();
  const atClose = (await suppressed(store.audit)).slice(2);
  assert.equal(
    [atClose.length, atClose[0], atClose.at(-1)],
    [1_000, ['address 1000', 401, 1], ['address 1', 401, 1]],
  );
});

test.run();
