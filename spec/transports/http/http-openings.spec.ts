// Sessions of single clients at an HTTP backend that opens them slowly, or never: which openings that delays, and what is found
// out once for all.

import type { ServerResponse } from 'node:http';
import { EMPTY } from 'rxjs';
import * as assert from 'uvu/assert';
import { LIMITS } from '../../../src/domain/limits.ts';
import { http, openHttp } from '../../../src/transports/http/http.ts';
import { OPENINGS_PER_OWNER } from '../../../src/transports/http/http-openings.ts';
import type { OpenOptions, Transport, Upstream } from '../../../src/transports/transport.ts';
import { callTool, see, textOf, until } from '../../conformance/transport.ts';
import { noCapability } from '../../conformance/upstream.ts';
import { codeOf } from '../../helpers/outcome.ts';
import { suite } from '../../helpers/suite.ts';
import { TurnCounter, untimedScheduler } from '../../helpers/turns.ts';
import { withRawServer } from '../raw-server.ts';
import { type Answer, discovered, initialized, result, serving, silence } from '../scripted-server.ts';
import { httpDefinition, openOptions } from './open-http.ts';

const test = suite('http openings', { timeoutMs: 30_000 });

/** More than there are connections. */
const MANY = 2_000;
/** The number of openings that fail per turn when many time out together. */
const PER_TURN = 5;
const PATIENCE_MS = 300;
/** Longer than any test takes. */
const HANDSHAKE_MS = 60_000;

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
    const upstream = await transport.openUpstream(noCapability, new AbortController().signal, 'bo');
    assert.is(textOf((await see(upstream?.exchange(callTool('echo', {})) ?? EMPTY)).events.at(-1)), 'here');
    assert.equal([hanging.size, ended], [OPENINGS_PER_OWNER, []]);
    await transport.close();
    assert.equal(new Set(await Promise.all(opening)), new Set(['BACKEND_UNAVAILABLE']));
  }));

test('refuses an opening when as many wait as its owner may have sessions', () =>
  withHanging(async ({ url }) => {
    const transport = await openTo(url);
    const most = OPENINGS_PER_OWNER + LIMITS.sessions * LIMITS.ownerShare;
    const opening = Array.from({ length: most }, () => codeOf(openHanging(transport)));
    assert.is(await codeOf(openHanging(transport)), 'QUEUE_FULL');
    await transport.close();
    await Promise.all(opening);
  }));

test('all openings wait together, once, for a modern backend that never answers initialize', () =>
  withModern(silence, async ({ open, asked }) => {
    const settled: string[] = [];
    const all = ['ada', 'bo', 'cy'].map((ownerId) => open(ownerId).finally(() => settled.push(ownerId)));
    await until(() => asked() === 1, 'it is asked');
    assert.equal(settled, []);
    assert.equal(await Promise.all(all), [undefined, undefined, undefined]);
    assert.is(await open('dee'), undefined);
    assert.is(asked(), 1);
  }));

test('concludes no era from a backend that answers nothing at all for a while', () => {
  let isHanging = false;
  const unlessHanging =
    (answer: Answer): Answer =>
    (...asked) =>
      isHanging || answer(...asked);
  const body = async ({ open, asked }: Harness): Promise<void> => {
    isHanging = true;
    assert.is(await codeOf(open('ada')), 'BACKEND_UNAVAILABLE');
    isHanging = false;
    const upstream = await open('ada');
    assert.is(upstream?.peer.era, 'legacy');
    assert.is((await open('bo'))?.peer, upstream?.peer, 'one object for all equal ones');
    assert.is(asked(), 3);
  };
  return withModern(unlessHanging(initialized), body, unlessHanging(discovered));
});

test('asks again for other clients when the asking one leaves, which does not count as silence', () =>
  withModern(silence, async ({ open, asked }) => {
    const caller = new AbortController();
    const left = codeOf(open('ada', caller.signal));
    const other = open('bo');
    await until(() => asked() === 1, 'it is asked');
    caller.abort();
    assert.is(await left, 'BACKEND_UNAVAILABLE');
    assert.is(await other, undefined);
    assert.is(asked(), 2);
  }));

test('a closed transport opens nothing, and ends openings that are under way or wait', () =>
  withModern(silence, async ({ open, asked, close }) => {
    const all = ['ada', 'bo'].map((ownerId) => codeOf(open(ownerId)));
    await until(() => asked() === 1, 'it is asked');
    await close();
    assert.equal(await Promise.all(all), ['BACKEND_UNAVAILABLE', 'BACKEND_UNAVAILABLE']);
    assert.is(await codeOf(open('cy')), 'BACKEND_UNAVAILABLE');
    assert.is(asked(), 1);
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
    assert.equal([turns.all, turns.fullest <= PER_TURN], [2 * OPENINGS_PER_OWNER, true], `${turns.fullest}`);
    await transport.close();
  }));

test.run();

function openTo(url: string, more: Partial<OpenOptions> = {}): Promise<Transport> {
  return http.open(httpDefinition(url), openOptions({ handshakeTimeoutMs: HANDSHAKE_MS, ...more }));
}

/** An opening of one owner that the backend never answers. */
function openHanging(transport: Transport) {
  const profile = { ...noCapability, clientInfo: { name: 'hangs' } };
  return transport.openUpstream(profile, new AbortController().signal, 'ada');
}

interface Harness {
  readonly open: (ownerId: string, signal?: AbortSignal) => Promise<Upstream | undefined>;
  /** How often `initialize` arrived. */
  readonly asked: () => number;
  readonly close: () => Promise<void>;
}

/** Openings at a modern backend that answers `initialize` so. */
async function withModern(
  initialize: Answer,
  body: (harness: Harness) => Promise<void>,
  discover: Answer = discovered,
): Promise<void> {
  const asked: string[] = [];
  const answers = { 'server/discover': discover, initialize };
  await withRawServer(serving(answers, asked), async ({ url }) => {
    const options = openOptions({ handshakeTimeoutMs: 1_000, scheduler: untimedScheduler() });
    const transport = await openHttp(httpDefinition(url), options, { initializeTimeoutMs: PATIENCE_MS });
    const open = (ownerId: string, signal = new AbortController().signal) =>
      transport.openUpstream(noCapability, signal, ownerId);
    const close = () => transport.close();
    const times = () => asked.filter((method) => method === 'initialize').length;
    await body({ open, asked: times, close }).finally(close);
  });
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
