// A session with a process of its own, whose instance loses the process that the others share.

import { mock } from 'node:test';
import * as assert from 'uvu/assert';
import type { InstanceDefinition } from '../../../src/domain/instance.ts';
import { suite } from '../../helpers/suite.ts';
import {
  ASKABLE,
  ask,
  FULL,
  hear,
  PLAIN,
  pass,
  resultOf,
  SessionHarness,
  settled,
  silent,
  simulateTime,
} from './client-session-harness.ts';

const test = suite('client session: alone');
let harness = new SessionHarness();
simulateTime(test, () => harness.close());

const PROGRAM: Partial<InstanceDefinition> = { transport: 'stdio', command: 'serve' };

for (const failover of ['never', 'auto', 'always'] as const) {
  test(`goes on with its process, its calls and its stream, with failover ${failover} and another instance`, async () => {
    harness = new SessionHarness({ policy: { sessionFailover: failover } });
    await harness.add('a', { fields: PROGRAM, peer: FULL, script: silent });
    const session = await harness.open(ASKABLE);
    const [own] = harness.upstreams('a');
    assert.ok(own);
    await harness.add('b', { fields: PROGRAM });
    const heard = hear(session);
    const before = ask(session, 'write');
    harness.transport('a').lose();
    await settled();
    assert.is(harness.ref('a').state, 'unhealthy');
    const meanwhile = ask(session, 'write');
    own.tell('notifications/tools/list_changed');
    for (const exchange of own.open) exchange.result('done');
    assert.equal([await resultOf(before), await resultOf(meanwhile)], ['done', 'done']);
    assert.equal([heard.messages.length, heard.isOver, session.instance?.id], [1, false, 'a']);
    await pass((ms) => mock.timers.tick(ms), 1_000);
    await settled();
    assert.is(harness.ref('a').state, 'healthy');
    const after = ask(session, 'write');
    own.last.result('still here');
    assert.equal(
      [await resultOf(after), own.isClosed, harness.upstreams('a').length],
      ['still here', false, 0],
    );
  });
}

test('its end is its own also then, and that of the others theirs', async () => {
  harness = new SessionHarness({ policy: { sessionFailover: 'never' } });
  await harness.add('a', { fields: PROGRAM, peer: FULL, script: silent });
  const [alone, other, shares] = [
    await harness.open(ASKABLE),
    await harness.open(ASKABLE),
    await harness.open(PLAIN),
  ];
  const [own, others] = harness.upstreams('a');
  await harness.add('b', { fields: PROGRAM });
  harness.transport('a').lose();
  await settled();
  assert.is(await codeOf(shares), 'SESSION_NOT_FOUND');
  own?.lose();
  assert.is(await codeOf(alone), 'SESSION_NOT_FOUND');
  const call = ask(other, 'write');
  others?.last.result('untouched');
  assert.is(await resultOf(call), 'untouched');
  await other.close();
  assert.is(others?.isClosed, true);
});

test.run();

async function codeOf(session: Parameters<typeof ask>[0]): Promise<unknown> {
  const end = await ask(session, 'read').end;
  return typeof end === 'string' ? end : end.code;
}
