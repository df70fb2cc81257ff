// How many processes single clients may have at one instance, in all and each, whichever life of the shared process they come
// from, and the end of all of them.

import { setImmediate as settled } from 'node:timers/promises';
import * as assert from 'uvu/assert';
import { Leases } from '../../../src/actors/instances/leases.ts';
import { ANONYMOUS } from '../../../src/domain/account.ts';
import { backendUnavailable } from '../../../src/domain/error-catalogue.ts';
import { codeOf } from '../../helpers/outcome.ts';
import { ScriptedTransport } from '../../helpers/scripted-transport.ts';
import { suite } from '../../helpers/suite.ts';
import { alarm } from '../stateless/stateless-harness.ts';

const test = suite('leases: processes');

test('there may be so many in all, of whoever they are', async () => {
  const { processes, opened, open } = make(3);
  for (const ownerId of ['ann', 'bo', 'cy']) await open(ownerId);
  const refusal = await open('dee').catch((thrown: unknown) => thrown);
  assert.match(String(refusal), '(setting sessions.max_processes)');
  opened[1]?.lose();
  await settled();
  assert.is(processes.room, 1);
  await open('dee');
  assert.is(await codeOf(open(ANONYMOUS.id)), 'QUEUE_FULL');
  assert.is(processes.room, 0);
});

test('a refused or failed opening leaves its place to others', async () => {
  const { processes, openWith, open } = make(1);
  const fail = () => Promise.reject(backendUnavailable('no', { delivered: 'no' }));
  assert.is(await codeOf(openWith('ann', fail)), 'BACKEND_UNAVAILABLE');
  assert.is(await openWith('ann', async () => undefined), undefined);
  await open('ann');
  assert.is(await codeOf(open('ann')), 'QUEUE_FULL');
  assert.is(processes.room, 0);
});

test.run();

function make(most: number) {
  const opened: ScriptedTransport[] = [];
  let next: () => Promise<ScriptedTransport | undefined>;
  const processes = new Leases({
    host: { template: 't', id: 'i', serverId: 's', transport: 'stdio' },
    bounds: { processes: most, share: 1 },
    now: () => Date.now(),
    alarm,
    link: () => ({ openUpstream: () => next() }),
  });
  const openWith = async (id: string, how: typeof next) => {
    next = how;
    const profile = { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: {} };
    return processes.lease({ owner: { id }, profile }).conversation.opening;
  };
  const open = (ownerId: string) =>
    openWith(ownerId, async () => {
      const process = new ScriptedTransport();
      opened.push(process);
      return process;
    });
  return { processes, opened, open, openWith };
}
