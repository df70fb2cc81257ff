// A module that could not be loaded, for want of file descriptors, is loaded when it is wanted again. @own-process: modules are loaded once
// per process.

import { registerHooks } from 'node:module';
import * as assert from 'uvu/assert';
import { systemClock } from '../../src/domain/time/clock.ts';
import { TaskScheduler } from '../../src/domain/time/task-scheduler.ts';
import { createOpenTransport } from '../../src/gateway/instances/open-transport.ts';
import { LazyVault } from '../../src/vault/lazy-vault.ts';
import { definition } from '../helpers/backends/profiles.ts';
import { startWithAccounts } from '../helpers/http/accounts.ts';
import { appFor } from '../helpers/http/app.ts';
import { endOf } from '../helpers/outcome.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('failed imports');
const OUT = 'Error: too many open files';
const app = appFor(test, () => startWithAccounts());

/** Of the addresses of modules that cannot be read now. */
let failing: RegExp | undefined;
registerHooks({
  load: (url, context, next) => {
    if (failing?.test(url)) throw new Error('too many open files');
    return next(url, context);
  },
});

test('instances of a kind open after one of them could not load it', async () => {
  const { signal } = new AbortController();
  const instance = definition('a', { transport: 'in-process' });
  const handlers = new Map([[instance.serverId, () => ({})]]);
  const open = createOpenTransport({
    network: { isDenied: () => false },
    handlers,
    clock: systemClock,
    scheduler: new TaskScheduler(),
  });
  failing = /transports\/in-process\//;
  assert.is(await endOf(open(instance)(signal)), OUT);
  failing = undefined;
  const transport = await open(instance)(signal);
  assert.is(transport.kind, 'in-process');
  await transport.close();
});

test('bodies of management requests are read after the reader could not be loaded', async () => {
  const body = { name: 'ci', permissions: ['tools:call'] };
  failing = /koa-body/;
  assert.is((await app.as(app.admin, 'POST', '/auth/api-keys', { body })).status, 500);
  failing = undefined;
  assert.is((await app.as(app.admin, 'POST', '/auth/api-keys', { body })).status, 201);
});

test('the vault opens after it could not be loaded', async () => {
  const door = new LazyVault(Object());
  failing = /vault\/vault\.ts/;
  assert.is(await endOf(door.open()), OUT);
  failing = undefined;
  assert.not.equal(await endOf(door.open()), OUT);
});

test.run();
