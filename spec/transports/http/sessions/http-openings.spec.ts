// Dedicated conversations with an HTTP backend that opens them slowly, or never: which openings that delays.

import type { ServerResponse } from 'node:http';
import { EMPTY, NEVER, type Observable, of } from 'rxjs';
import * as assert from 'uvu/assert';
import { LIMITS } from '../../../../src/domain/limits.ts';
import { systemClock } from '../../../../src/domain/time/clock.ts';
import { TaskScheduler } from '../../../../src/domain/time/task-scheduler.ts';
import { open as http } from '../../../../src/transports/http/http.ts';
import { HttpOpenings, OPENINGS_PER_OWNER } from '../../../../src/transports/http/sessions/http-openings.ts';
import type { OpenOptions } from '../../../../src/transports/open-options.ts';
import type { Closed, Transport } from '../../../../src/transports/transport.ts';
import { noCapability } from '../../../conformance/conversation.ts';
import { callTool, see, textOf } from '../../../conformance/transport.ts';
import { until } from '../../../helpers/eventually.ts';
import { codeOf } from '../../../helpers/outcome.ts';
import { suite } from '../../../helpers/suite.ts';
import { TurnCounter, untimedScheduler } from '../../../helpers/time/turns.ts';
import { withRawServer } from '../../raw-server.ts';
import { type Answer, initialized, result, serving } from '../../scripted-server.ts';
import { httpDefinition, openOptions } from '../open-http.ts';

const test = suite('http openings', { timeoutMs: 30_000 });

/** More than there are connections. */
const MANY = 2_000;
/** The number of openings that fail per turn when many time out together. */
const PER_TURN = 5;
/** Longer than any test takes. */
const HANDSHAKE_MS = 60_000;
const CLOSED: Closed = { reason: 'over', isExpected: true };

test('hanging openings of one owner delay neither calls nor the openings of others', () =>
  withHanging(async ({ url, hanging }) => {
    const transport = await openTo(url);
    const ended: unknown[] = [];
    const opening = Array.from({ length: MANY }, async () => {
      const code = await codeOf(openHanging(transport));
      ended.push(code);
      return code;
    });
    await until(() => hanging.size === OPENINGS_PER_OWNER, 'all that may be opened at once hang');
    const answers = Array.from({ length: LIMITS.inFlightPerInstance }, () =>
      see(transport.exchange(callTool('echo', {}))),
    );
    for (const { events } of await Promise.all(answers)) assert.is(textOf(events.at(-1)), 'here');
    const conversation = await transport.openConversation({
      profile: noCapability,
      signal: new AbortController().signal,
      ownerId: 'bo',
    });
    assert.is(
      textOf((await see(conversation?.exchange(callTool('echo', {})) ?? EMPTY)).events.at(-1)),
      'here',
    );
    assert.equal([hanging.size, ended], [OPENINGS_PER_OWNER, []]);
    await transport.close();
    assert.equal(new Set(await Promise.all(opening)), new Set(['BACKEND_UNAVAILABLE']));
  }));

test('sessions with equal handshakes share one description of the server', () =>
  withHanging(async ({ url }) => {
    const transport = await openTo(url);
    const { signal } = new AbortController();
    const [one, two] = [
      await transport.openConversation({ profile: noCapability, signal }),
      await transport.openConversation({ profile: noCapability, signal }),
    ];
    assert.ok(one !== undefined && one.handshake === two?.handshake);
    await transport.close();
  }));

test('openings that time out together fail a few per turn of the event loop', () =>
  withHanging(async ({ url }) => {
    const transport = await openTo(url, { handshakeTimeoutMs: 500, scheduler: untimedScheduler(PER_TURN) });
    const turns = new TurnCounter();
    const opening = Array.from({ length: 2 * OPENINGS_PER_OWNER }, async () => {
      const code = await codeOf(openHanging(transport));
      turns.note();
      return code;
    });
    assert.equal(new Set(await Promise.all(opening)), new Set(['BACKEND_UNAVAILABLE']));
    // Timers between two turns of the scheduler may add a full turn to what is counted as one.
    const isSpread = turns.fullest <= 2 * PER_TURN;
    assert.equal([turns.all, isSpread], [2 * OPENINGS_PER_OWNER, true], `${turns.fullest}`);
    await transport.close();
  }));

test('conversations that ended are not kept', async () => {
  const ends: string[] = [];
  const openings = new HttpOpenings(HANDSHAKE_MS, new TaskScheduler(), systemClock);
  const open = (name: string, closed$: Observable<Closed>) =>
    openings.open('ada', new AbortController().signal, async () => ({
      closed$,
      close: async () => {},
      end: () => void ends.push(name),
    }));
  await open('ended', of(CLOSED));
  await open('open', NEVER);
  await openings.end(CLOSED);
  assert.equal(ends, ['open']);
});

test.run();

function openTo(url: string, more: Partial<OpenOptions> = {}): Promise<Transport> {
  return http(httpDefinition(url), openOptions({ handshakeTimeoutMs: HANDSHAKE_MS, ...more }));
}

/** An opening of one owner that the backend never answers. */
function openHanging(transport: Transport) {
  const profile = { ...noCapability, clientInfo: { name: 'hangs' } };
  return transport.openConversation({ profile, signal: new AbortController().signal, ownerId: 'ada' });
}

/** A legacy backend that never answers `initialize` of clients named "hangs"; `hanging`: the open responses. */
async function withHanging(
  body: (backend: { readonly url: string; readonly hanging: ReadonlySet<unknown> }) => Promise<void>,
): Promise<void> {
  const hanging = new Set<ServerResponse>();
  const initialize: Answer = (response, asked) => {
    if (!JSON.stringify(asked.params).includes('"hangs"')) return void initialized(response, asked);
    hanging.add(response);
    response.on('close', () => hanging.delete(response));
  };
  const here = result({ content: [{ type: 'text', text: 'here' }] });
  await withRawServer(serving({ initialize, 'tools/call': here }), ({ url }) => body({ url, hanging }));
}
