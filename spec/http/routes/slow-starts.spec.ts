// Programs that take long until their handshake, as the routes show them: `load_balancer.start_timeout`. Source: ADR 113.

import * as assert from 'uvu/assert';
import { type Credentials, startWithAccounts } from '../../helpers/http/accounts.ts';
import { suite } from '../../helpers/suite.ts';
import { node } from '../../transports/stdio/open-stdio.ts';

const test = suite('slow starts', { timeoutMs: 60_000 });

test('show the last output of a starting program to writers, and count the stop at the limit as a restart', async () => {
  const app = await startWithAccounts({ gateway: { policy: { startTimeoutMs: 5_000 } } });
  const installs =
    "console.error('fetching'); console.error('installing 3 of 9'); setInterval(() => {}, 1000)";
  const { command, args } = node(installs);
  const body = { template_name: 'slow', instance: { id: 'one', command, args, force: true } };
  assert.is((await app.as(app.admin, 'POST', '/gateway/register', { body })).status, 201);
  const shown = async (who: Credentials) => {
    const { reason, state, restarts } = Object(
      Object((await app.as(who, 'GET', '/mcp/slow/health')).body.instances).one,
    );
    return { reason, state, restarts };
  };
  const until = async (isSeen: (reason: unknown) => boolean) => {
    for (;;) {
      const seen = await shown(app.admin);
      if (isSeen(seen.reason)) return seen;
    }
  };
  const output = 'last output: fetching | installing 3 of 9';
  const starting = { state: 'starting', restarts: 0 };
  assert.equal(await until((reason) => /installing/.test(String(reason))), {
    ...starting,
    reason: `it is still starting; ${output}`,
  });
  assert.equal(await shown(app.user), { ...starting, reason: null });
  const { reason, restarts } = await until((reason) => String(reason).startsWith('no handshake'));
  assert.equal([reason, restarts], [`no handshake within 5 s; ${output}`, 1]);
  await app.close();
});

test.run();
