// A program that any node may run, as the gateway tells the cluster of it: whether its start failed or is refused here, and where it runs.

import * as assert from 'uvu/assert';
import { ANONYMOUS } from '../../src/domain/accounts/principal.ts';
import { Gateway } from '../../src/gateway/gateway.ts';
import { instanceRecord } from '../../src/http/records/instance-record.ts';
import { MemoryStore } from '../../src/persistence/memory/memory-store.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('programs of any node at one gateway', { timeoutMs: 20_000 });

const opened: Gateway[] = [];
test.after.each(async () => {
  for (const gateway of opened.splice(0)) await gateway.close({ graceMs: 0 });
});

test('the cluster learns that the rules of this node refuse a program, and that another could not be started', async () => {
  for (const [requires, reason, isRefused] of [
    [['node>=70000'], /it is not started: its template requires node/, true],
    [[], /exited with code/, false],
  ] as const) {
    const { programs } = await withProgram(requires);
    const ended = Promise.withResolvers<readonly [string, boolean]>();
    programs.lease(performance.now() + 10_000);
    programs.start('one', {
      onStarted: () => ended.reject(new Error('it runs')),
      onEnded: (...how) => ended.resolve(how),
    });
    const [why, wasRefused] = await ended.promise;
    assert.match(why, reason);
    assert.is(wasRefused, isRefused);
    await programs.kill('one');
  }
});

test('the view of an instance names the node that runs it', async () => {
  const { gateway, programs } = await withProgram([]);
  const shown = () =>
    gateway.servers().map((server) => [instanceRecord(server, ANONYMOUS).running_on, server.snapshot.reason]);
  assert.equal(shown(), [[null, 'no node runs it yet']]);
  programs.place('one', { node: 'b', life: 'life-b' }, undefined);
  assert.equal(shown(), [['b', 'it runs on the node "b"']]);
  programs.place('one', undefined, 'not on "b": exited with code 1');
  assert.equal(shown(), [[null, 'no node runs it yet; not on "b": exited with code 1']]);
});

test.run();

async function withProgram(requires: readonly string[]) {
  const gateway = new Gateway(new MemoryStore(), {
    node: { id: 'a' },
    definitions: [{ id: 'near', requires: [...requires] }],
    others: { leasesPrograms: true },
  });
  opened.push(gateway);
  await gateway.internals.load();
  await gateway.register('near', {
    ...{ id: 'one', command: process.execPath, args: ['-e', 'process.exit(7)'], node: 'any' },
  });
  const { leasedPrograms: programs } = gateway.internals;
  if (programs === undefined) throw new Error('it shares none');
  return { gateway, programs };
}
