// In which era a client's own process is spoken to: the client's, which is the legacy one, where the program speaks it, else
// the modern one. The process is its own in both.

import * as assert from 'uvu/assert';
import type { ExchangeRequest } from '../../../src/domain/exchange.ts';
import { callTool, failure, see, textOf } from '../../conformance/transport.ts';
import { noCapability, openFor } from '../../conformance/upstream.ts';
import { everythingProgram } from '../../fixtures/everything-server.ts';
import { sdkModernProgram } from '../../fixtures/sdk-modern-server.ts';
import { isRunning } from '../../helpers/is-running.ts';
import { suite } from '../../helpers/suite.ts';
import { fixture, withStdio } from './open-stdio.ts';

const test = suite('stdio, in whose era', { timeoutMs: 30_000 });

test('a program of the modern era only has a process for each client all the same', () =>
  withStdio(fixture('--era=modern'), async (transport) => {
    const [one, two] = [await openFor(transport, noCapability), await openFor(transport, noCapability)];
    assert.equal([one.peer.era, one.peer.protocolVersion, two.peer.era], ['modern', '2026-07-28', 'modern']);
    const answerTo = async (conversation: typeof one, tool: string) =>
      textOf((await see(conversation.exchange(callTool(tool, {})))).events.at(-1));
    const pids = [await answerTo(transport, 'pid'), await answerTo(one, 'pid'), await answerTo(two, 'pid')];
    assert.is(new Set(pids).size, 3);
    assert.equal([await answerTo(one, 'count'), await answerTo(one, 'count')], ['1', '2']);
    assert.is(await answerTo(two, 'count'), '1');
    await one.close();
    assert.equal(
      pids.map((pid) => isRunning(Number(pid))),
      [true, false, true],
    );
    assert.is(failure((await see(one.exchange({ method: 'tools/list' }))).end)?.delivered, 'no');
  }));

for (const [name, program, own] of [
  ['the official SDK, both eras', sdkModernProgram(), 'legacy'],
  ['the official SDK, modern only', sdkModernProgram('modern'), 'modern'],
  ['everything, both eras', everythingProgram(), 'legacy'],
  ['everything, modern only', everythingProgram({ era: 'modern' }), 'modern'],
] as const) {
  test(`speaks to a client's process in the era of the client, or in its own (${name})`, () =>
    withStdio({ env: {}, ...program }, async (transport) => {
      const upstream = await openFor(transport, noCapability);
      assert.equal([transport.peer.era, upstream.peer.era], ['modern', own]);
      const list: ExchangeRequest = { method: 'tools/list' };
      const [shared, its] = [await see(transport.exchange(list)), await see(upstream.exchange(list))];
      assert.equal([shared.end, its.end], ['completed', 'completed']);
      assert.is(its.events.at(-1)?.kind, 'result');
    }));
}

test.run();
