// Sessions of a gateway that goes on under a new life, after others have ended the life before.

import { setImmediate as turn } from 'node:timers/promises';
import * as assert from 'uvu/assert';
import { rowKeyOf } from '../../../src/actors/sessions/rows/stored-row.ts';
import { becomes } from '../../helpers/eventually.ts';
import { suite } from '../../helpers/suite.ts';
import { openSession, postTo } from './post.ts';
import { ADA, post, READ, StoredSessions, UNSAFE } from './stored-sessions.ts';

const test = suite('sessions in the next life of a running gateway');
const stored = new StoredSessions(test);

test('in the next life of a running gateway sessions continue from their rows, which stay', async () => {
  const gateway = await stored.start();
  await stored.registered(gateway);
  const former = [await openSession(gateway, 't', ADA), await openSession(gateway, undefined, ADA)];
  await gateway.internals.beginLife('life-2--');
  assert.equal(gateway.sessions(), []);
  for (const [headers, template] of [[former[0], 't'] as const, [former[1], undefined] as const]) {
    const read = { template, headers: headers ?? {}, message: READ, principal: ADA };
    assert.is((await postTo(gateway, read)).status, 200);
  }
  const later = await openSession(gateway, 't', ADA);
  assert.match(later['mcp-session-id'], /^life-2--/);
  await gateway.close({ graceMs: 0 }); // writes what is left to be written
  const keys = [...former, later].map((headers) => rowKeyOf(headers['mcp-session-id']));
  const owners = (await stored.sessions.read(keys)).map(({ life }) => life);
  assert.equal(owners, ['life-2--', 'life-2--', 'life-2--']);
});

test('in the next life of a running gateway a session that is being opened is opened', async () => {
  const gateway = await stored.start({ node: { id: 'n', life: 'life-1--' } });
  await stored.registered(gateway);
  const opening = openSession(gateway, 't', ADA);
  await turn();
  await gateway.internals.beginLife('life-2--');
  const session = await opening;
  assert.match(session['mcp-session-id'], /^life-1--/); // it began before
  assert.is((await post(gateway, session, READ)).status, 200);
  const [row] = await stored.sessions.read([rowKeyOf(session['mcp-session-id'])]);
  assert.is(row?.life, 'life-2--');
});

test('in the next life of a running gateway a session continues whose row was not written before', async () => {
  const gateway = await stored.start();
  await stored.registered(gateway);
  const { promise, resolve } = Promise.withResolvers<void>();
  stored.blocked = promise;
  const first = openSession(gateway, 't', ADA);
  await becomes(() => stored.operations.includes('insert'), true);
  const second = openSession(gateway, 't', ADA); // its row waits until the first one is written
  await becomes(() => gateway.sessions().length, 2);
  let isBegun = false; // from then on requests look for the rows
  const begun = gateway.internals.beginLife('life-2--').then(() => {
    isBegun = true;
  });
  for (let turns = 0; turns < 20; turns += 1) await turn();
  assert.not(isBegun);
  resolve();
  await begun;
  for (const session of [await first, await second])
    assert.is((await post(gateway, session, READ)).status, 200);
});

test('a call under way in a session that another node continues is not told that the session is over', async () => {
  const gateway = await stored.start();
  await stored.registered(gateway);
  const session = await openSession(gateway, 't', ADA);
  stored.server.failNext('never', { method: 'tools/call' });
  const underWay = post(gateway, session, UNSAFE);
  await becomes(() => stored.server.count('tools/call') > 0, true);
  await gateway.internals.beginLife('life-2--');
  const { status, answer } = await underWay;
  const { error_code: code, delivered } = Object(Object(answer.error).data);
  assert.equal([status, code, delivered], [200, 'NODE_UNAVAILABLE', 'unknown']);
});

test.run();
