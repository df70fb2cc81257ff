// Faults on a pipe: every exchange still ends as it should, and the others continue.

import { firstValueFrom } from 'rxjs';
import * as assert from 'uvu/assert';
import { exitedWith } from '../../../src/domain/instances/found-instances.ts';
import type { JsonObject } from '../../../src/domain/json/json.ts';
import { LIMITS } from '../../../src/domain/limits.ts';
import { HeldBytes } from '../../../src/domain/memory/held-bytes.ts';
import { systemClock } from '../../../src/domain/time/clock.ts';
import { StdioChannel } from '../../../src/transports/stdio/stdio-channel.ts';
import type { Transport } from '../../../src/transports/transport.ts';
import { callTool, cancelledOn, failure, type Seen, see, textOf } from '../../conformance/transport.ts';
import { multiByteText, nestedText } from '../../fixtures/misbehave.ts';
import { until } from '../../helpers/eventually.ts';
import { suite } from '../../helpers/suite.ts';
import { passTurns } from '../../helpers/time/turns.ts';
import { fixture, node, scripted, withStdio } from './open-stdio.ts';

const test = suite('stdio channel', { timeoutMs: 30_000 });

const LOST = { code: 'BACKEND_UNAVAILABLE', delivered: 'unknown' };
const OVER_THE_LIMIT = LIMITS.backendMessageBytes + 1;

for (const order of ['--id-first=no', '--id-first']) {
  const server = fixture(order);
  const kind = order === '--id-first' ? 'id first' : 'id last';

  for (const how of ['garbage', 'nothing', 'unknown-id']) {
    test(`${kind}: ${how} instead of an answer leaves the exchange open until it is cancelled`, () =>
      withStdio(server, async (transport) => {
        let isOver = false;
        const over = () => {
          isOver = true;
        };
        const subscription = transport.exchange(misbehave(how)).subscribe({ error: over, complete: over });
        await stillWorks(transport);
        assert.not(isOver);
        assert.is(transport.diagnostics().oddOutput?.lines, how === 'garbage' ? 1 : undefined);
        subscription.unsubscribe();
        assert.is((await cancelledOn(transport)).length, 1);
      }));
  }

  for (const how of ['no-result', 'wrong-version']) {
    test(`${kind}: ${how} ends the exchange with an error at once, and no other`, () =>
      withStdio(server, async (transport) => {
        const other = see(transport.exchange(callTool('sleep', { ms: 100 })));
        const { events, end } = await see(transport.exchange(misbehave(how)));
        assert.equal([events, failure(end), isSuspicious(end)], [[], LOST, true]);
        assert.is(textOf((await other).events[0]), 'slept 100');
        assert.is(transport.diagnostics().oddOutput?.lines, 1);
        await stillWorks(transport);
      }));
  }

  for (const [how, text] of [
    ['two-answers', 'the first answer'],
    ['unknown-id-then-answer', 'the real answer'],
    ['split-utf8', multiByteText],
    ['crlf', 'ended by CRLF'],
    ['nested-id', nestedText],
  ] as const) {
    test(`${kind}: ${how} leads to the right answer, once`, () =>
      withStdio(server, async (transport) => {
        const seen = await see(transport.exchange(misbehave(how)));
        assert.equal([seen.events.length, textOf(seen.events[0]), seen.end], [1, text, 'completed']);
        await stillWorks(transport);
      }));
  }

  for (const how of ['exit', 'half-line-exit']) {
    test(`${kind}: ${how} ends every exchange and the transport`, () =>
      withStdio(server, async (transport) => {
        const closed = firstValueFrom(transport.closed$);
        const other = see(transport.exchange(callTool('sleep', { ms: 60_000 })));
        const { end } = await see(transport.exchange(misbehave(how)));
        assert.equal([failure(end), failure((await other).end)], [LOST, LOST]);
        assert.match(String(end), 'exited with code 7');
        assert.equal(await closed, { ...exitedWith(7), isExpected: false });
      }));
  }

  test(`${kind}: an answer over the limit fails the exchange it is for, and no other`, () =>
    withStdio(server, async (transport) => {
      const other = see(transport.exchange(callTool('sleep', { ms: 60_000 })));
      const { end } = await see(transport.exchange(misbehave('huge-line', OVER_THE_LIMIT)));
      assert.equal([failure(end), isSuspicious(end)], [LOST, true]);
      assert.match(String(end), /a message of \d{8} bytes, over the limit of 67108864/);
      await stillWorks(transport);
      await transport.close();
      assert.match(String((await other).end), 'closed by the gateway');
    }));
}

test('an error or a notification that is too large to be parsed is named with its size and the limit', () =>
  withStdio(
    scripted(`
      say({ jsonrpc: '2.0', method: 'notifications/message', params: { data: 'x'.repeat(9000000) } });
      say({ jsonrpc: '2.0', id, error: { code: 1, message: 'x'.repeat(9000000) } });`),
    async (transport) => {
      const { end } = await see(transport.exchange(callTool('any', {})));
      assert.match(
        String(end),
        /it answered with a message of 90\d{5} bytes that is not a plain result, over the limit of 8388608/,
      );
      const { stderr } = transport.diagnostics();
      assert.match(stderr.join('\n'), /\[dropped: a message of 90\d{5} bytes/);
    },
  ));

test('an oversize line without an id at its edges fails all pending exchanges', () =>
  withStdio(
    scripted(`if (method === 'a') return; process.stdout.write('x'.repeat(${OVER_THE_LIMIT}) + '\\n')`),
    async (transport) => {
      const all = await Promise.all(['a', 'b'].map((method) => see(transport.exchange({ method }))));
      const found = all.map(({ end }) => failure(end));
      assert.equal(found, [LOST, LOST]);
    },
  ));

test('a log line as JSON fails no exchange, whatever its id', () =>
  withStdio(
    scripted("console.log(JSON.stringify({ id, level: 30 })); say({ result: {}, jsonrpc: '2.0', id });"),
    async (transport) => assert.is((await see(transport.exchange({ method: 'a' }))).end, 'completed'),
  ));

test('an oversize log message fails no exchange', () =>
  withStdio(
    scripted(`say({ method: 'notifications/message', params: { data: 'x'.repeat(${OVER_THE_LIMIT}) }, jsonrpc: '2.0' });
      say({ result: {}, jsonrpc: '2.0', id });`),
    async (transport) => {
      assert.is((await see(transport.exchange({ method: 'a' }))).end, 'completed');
      assert.is(transport.diagnostics().oddOutput?.lines, 1);
    },
  ));

test('the bytes of a result are those the server wrote, however it writes', () =>
  withStdio(
    scripted(
      `process.stdout.write('{"result":{"n":1.0, "u":"\\\\u00e9" },"jsonrpc":"2.0","id":' + id + '}\\n')`,
    ),
    async (transport) => {
      const { events } = await see(transport.exchange({ method: 'a' }));
      const bytes = events[0]?.kind === 'result' ? events[0].result.bytes : [];
      assert.is(Buffer.from(bytes).toString(), '{"n":1.0, "u":"\\u00e9" }');
    },
  ));

test('the memory of half a line is given back when the program has exited', async () => {
  const held = new HeldBytes({ totalBytes: 1_000_000, ownerBytes: 1_000_000 }, systemClock.now);
  const program = node(
    "process.stdout.write('x'.repeat(100_000)); process.stdin.once('data', () => process.exit(7))",
  );
  const channel = new StdioChannel(program, { answers: held.of('a'), clock: systemClock });
  await until(() => held.bytes > 100_000, 'half a line is held');
  channel.notify('end', {});
  await firstValueFrom(channel.closed$);
  assert.is(held.bytes, 0);
});

test('a request that is cancelled before it was written is never sent', () =>
  withStdio(fixture(), async (transport) => {
    transport.exchange(callTool('count', {})).subscribe().unsubscribe();
    const { events } = await see(transport.exchange(callTool('count', {})));
    assert.is(textOf(events[0]), '1');
    assert.equal(await cancelledOn(transport), []);
  }));

test('requests that wait for a server that does not read are known to be undelivered when it dies', () =>
  withStdio(scripted('', READS_NO_REQUEST), async (transport) => {
    const large = { filler: 'x'.repeat(1_000_000) };
    const first = see(transport.exchange({ method: 'a', params: large }));
    await passTurns(3);
    const second = see(transport.exchange({ method: 'b', params: large }));
    const third = see(transport.exchange({ method: 'c' }));
    await passTurns(3);
    const { pid } = transport.diagnostics();
    assert.ok(pid !== null && pid > 0); // 0 would be our own group
    process.kill(Number(pid), 'SIGKILL');
    const ends = await Promise.all([first, second, third]);
    const found = ends.map(({ end }) => end !== 'completed' && end.delivered);
    assert.equal(found, ['unknown', 'no', 'no']);
  }));

test('a call beyond the buffer of a server that does not read is refused, and queued calls can be cancelled', () =>
  withStdio(scripted('process.stdin.pause()'), async (transport) => {
    const params = { filler: 'x'.repeat(LIMITS.backendMessageBytes) };
    const first = see(transport.exchange({ method: 'a', params: { filler: 'x'.repeat(1_000_000) } }));
    await passTurns(3);
    const huge = transport.exchange({ method: 'b', params }).subscribe();
    const { end } = await see(transport.exchange({ method: 'c' }));
    assert.equal(failure(end), { code: 'BACKEND_UNAVAILABLE', delivered: 'no' });
    assert.match(String(end), 'does not read its input');
    huge.unsubscribe();
    const fits = see(transport.exchange({ method: 'd' }));
    await transport.close();
    assert.equal([failure((await first).end), failure((await fits).end)?.delivered], [LOST, 'no']);
  }));

test('a server that closes its stdin and keeps running is closed', () =>
  withStdio(
    scripted(
      "process.stdin.on('error', () => {}); require('fs').closeSync(0); setInterval(() => {}, 1e6); console.error('deaf')",
    ),
    async (transport) => {
      const closed = firstValueFrom(transport.closed$);
      const received = see(transport.exchange({ method: 'a' }));
      await until(() => transport.diagnostics().stderr.includes('deaf'), 'the server closed its stdin');
      const unheard = ['b', 'c'].map((method) => see(transport.exchange({ method })));
      const refused = await Promise.all(unheard);
      const found = refused.map(({ end }) => failure(end)?.code);
      assert.equal(found, ['BACKEND_UNAVAILABLE', 'BACKEND_UNAVAILABLE']);
      assert.equal(failure((await see(transport.exchange({ method: 'd' }))).end)?.delivered, 'no');
      assert.equal(await closed, { reason: 'closed its standard input', isExpected: false });
      assert.equal(failure((await received).end), LOST);
    },
  ));

test('a server that closes its stdout and keeps running is closed', () =>
  withStdio(scripted("require('fs').closeSync(1)"), async (transport) => {
    const closed = firstValueFrom(transport.closed$);
    const { end } = await see(transport.exchange({ method: 'a' }));
    assert.equal(failure(end), LOST);
    assert.equal(await closed, { reason: 'closed its standard output', isExpected: false });
  }));

test('a server that asks without end and never reads does not fill the memory', () =>
  withStdio(
    scripted(`process.stdin.pause(); let rounds = 0;
      const ask = () => { for (let i = 0; i < 1000; i += 1) say({ jsonrpc: '2.0', id: i, method: 'ping' });
        rounds += 1; if (rounds < 100) setImmediate(ask); else say({ result: {}, jsonrpc: '2.0', id }); }; ask();`),
    async (transport) => {
      const before = process.memoryUsage().heapUsed;
      assert.is((await see(transport.exchange({ method: 'a' }))).end, 'completed');
      const grownMegabytes = (process.memoryUsage().heapUsed - before) / 1e6;
      assert.ok(grownMegabytes < 100, `${grownMegabytes} MB`);
    },
  ));

/** Reads the handshake and then nothing more; keeps running. */
const READS_NO_REQUEST =
  "setInterval(() => {}, 1000); process.stdin.on('data', (data) => String(data).includes('initialize') && setImmediate(() => process.stdin.pause()));";

function misbehave(how: string, bytes?: number) {
  return callTool('misbehave', bytes === undefined ? { how } : { how, bytes });
}

async function stillWorks(transport: Transport): Promise<void> {
  const { events } = await see(transport.exchange(callTool('echo', { text: 'still here' })));
  assert.is(textOf(events[0]), 'still here');
}

function isSuspicious(end: Seen['end']): boolean | undefined {
  return end === 'completed' ? undefined : end.facts.health === 'suspicious';
}

test('a request that cannot be serialized fails and is forgotten', async () => {
  await withStdio(fixture(), async (transport) => {
    const circle: JsonObject = {};
    circle.self = circle;
    const { end } = await see(transport.exchange({ method: 'tools/call', params: circle }));
    assert.is(failure(end)?.code, 'VALIDATION_ERROR');
    // A log line goes to the only exchange under way: it would not if the failed request still counted.
    const { events } = await see(transport.exchange(callTool('log', { text: 'hello' })));
    const found = events.map((event) => event.kind);
    assert.equal(found, ['notification', 'result']);
  });
});

test.run();
