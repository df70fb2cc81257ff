// How many processes single clients may have at one instance, in all and each, whichever life of the shared process they come
// from, and the end of all of them.

import { setImmediate as settled } from 'node:timers/promises';
import * as fc from 'fast-check';
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

test('the end of all waits for those that go slowly, and for those that are being opened', async () => {
  const { processes, opened, open, openWith } = make(4);
  await open('ann');
  await open('ann');
  const [slow, broken] = opened;
  assert.ok(slow && broken);
  slow.closesSlowly = true;
  broken.thrownByClose = new Error('broken');
  const late = Promise.withResolvers<ScriptedTransport>();
  const opening = codeOf(openWith('bo', () => late.promise));
  let isOver = false;
  const ending = processes.end().then(() => {
    isOver = true;
  });
  await settled();
  assert.equal([slow.isClosed, broken.isClosed, isOver, processes.room], [true, true, false, 2]);
  slow.finishClosing();
  await settled();
  assert.is(isOver, false);
  const comes = new ScriptedTransport();
  late.resolve(comes);
  await ending;
  assert.equal([comes.isClosed, await opening, processes.room], [true, 'BACKEND_UNAVAILABLE', 4]);
});

test('there may be new ones after the end of all', async () => {
  const { processes, opened, open } = make(1);
  await open('ann');
  await processes.end();
  await open('ann');
  assert.equal(
    opened.map(({ isClosed }) => isClosed),
    [true, false],
  );
});

test('whatever comes and goes, there are never more than may be, and none is left in the end', () =>
  fc.assert(
    fc.asyncProperty(fc.array(fc.nat({ max: 9 }), { maxLength: 60 }), async (steps) => {
      const { processes, opened, open } = make(4);
      for (const step of steps) {
        if (step < 6) void open(`owner ${step % 3}`).catch(() => undefined);
        else if (step < 9) opened.findLast(({ isClosed }) => !isClosed)?.lose();
        else void processes.end();
        if (step % 2 === 0) await settled();
        assert.ok(opened.filter(({ isClosed }) => !isClosed).length <= 4);
      }
      await settled();
      await processes.end();
      await settled();
      assert.equal([processes.room, opened.every(({ isClosed }) => isClosed)], [4, true]);
      for (const ownerId of ['a', 'b', 'c', 'd']) await open(ownerId);
    }),
    { numRuns: 50 },
  ));

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
