// The audit log, and the log level.

import * as assert from 'uvu/assert';
import { serving } from '../../../helpers/backends/function-backend.ts';
import { suite } from '../../../helpers/suite.ts';
import { complaint, gatewayFor } from '../against-gateway.ts';

const test = suite('gateway audit and log-level');
const gateway = gatewayFor(test, { withAccounts: true });

test('audit shows changes and calls, newest first, and filters them', async () => {
  assert.is((await gateway.run('gateway audit')).out, 'no entries');
  const handler = serving({ one: () => ({ content: [] }) });
  await gateway.server.gateway.register('demo', { id: 'a', handler }, { waitMs: 5_000 });
  await gateway.run('gateway log-level silent');
  for (const _ of [1, 2]) await gateway.run('tool call demo one');
  const all = (await gateway.run('gateway audit')).out;
  assert.match(all, /^TIME +ACTOR +ACTION +SUBJECT +INSTANCE +STATUS +OUTCOME +MS +SUPPRESSED\n/);
  const lines = /operator +tools\/call +demo\/one +a +200 +result +\d+\n.*\n.*PATCH \/gateway\/log-level/;
  assert.match(all, lines);
  for (const [words, count] of [
    ['--tool one --since 1h', 2],
    ['--tool one --limit 1', 1],
    ['--tool one --until 1h', 0],
    ['--tool one --from 1h --to=0s', 2], // their former names
    ['--outcome failed', 0],
  ] as const)
    assert.is(JSON.parse((await gateway.run(`gateway audit --json ${words}`)).out).length, count, words);
  const action = 'PATCH /gateway/log-level';
  const found = await gateway.run('gateway audit --json --actor operator --action', action);
  assert.is(JSON.parse(found.out).length, 1);
  // Without a zone the time of another place would be meant.
  for (const time of ['yesterday', '5', '2027-01-31T10:00', '2027-02-30'])
    assert.match(await complaint(gateway.run(`gateway audit --since ${time}`), 2), '--since takes a time');
});

test('log-level shows the level, changes it, and refuses an unknown level', async () => {
  assert.is((await gateway.run('gateway log-level')).out, 'silent');
  assert.is((await gateway.run('gateway log-level debug')).out, 'debug');
  assert.equal(JSON.parse((await gateway.run('gateway log-level --json')).out), { level: 'debug' });
  assert.match(await complaint(gateway.run('gateway log-level loud')), 'body.level: ');
});

test.run();
