// The conformance tests for a transport. The spec of each transport runs them before its own tests.
// The backend behind `open` offers the tools of spec/fixtures/tools.ts. What only one kind can do is in its own spec.

import type { Observable } from 'rxjs';
import * as assert from 'uvu/assert';
import type { ExchangeRequest } from '../../src/domain/calls/exchange.ts';
import type { ExchangeEvent } from '../../src/domain/calls/exchange-event.ts';
import { GatewayError } from '../../src/domain/errors/errors.ts';
import type { InstanceDefinition } from '../../src/domain/instances/instance.ts';
import { isJsonObject, type JsonObject } from '../../src/domain/json/json.ts';
import type { ServerMessage } from '../../src/domain/mcp/client.ts';
import { systemClock } from '../../src/domain/time/clock.ts';
import { TaskScheduler } from '../../src/domain/time/task-scheduler.ts';
import type { OpenOptions } from '../../src/transports/open-options.ts';
import type { Closed, Transport } from '../../src/transports/transport.ts';
import { until } from '../helpers/eventually.ts';
import { errorOf } from '../helpers/outcome.ts';
import type { Suite } from '../helpers/suite.ts';

/** One kind of transport under test. */
export interface TransportSubject {
  /** Starts the name of each test: `'stdio'`, `'http, modern'`. */
  readonly name: string;
  /** Opens a transport to a fresh backend. The suite closes the transport, then calls `release`. */
  open(): Promise<OpenedTransport>;
}

/** What `open` gives. */
interface OpenedTransport {
  readonly transport: Transport;
  /** Ends what is not the transport's own, such as the HTTP server it spoke to. */
  release?(): Promise<void> | void;
}

/** Everything one subscription saw: the events, and how it ended. */
export interface Seen {
  readonly events: readonly ExchangeEvent[];
  readonly end: 'completed' | GatewayError;
}

/** Declares the tests of one subject in the given suite. */
export function transportConformance(test: Suite, subject: TransportSubject): void {
  const check = checking(test, subject);

  check('reports era, version, name and capabilities from its handshake', async ({ handshake }) => {
    assert.ok(['legacy', 'modern', 'bare'].includes(handshake.era));
    assert.type(handshake.protocolVersion, 'string');
    assert.is.not(handshake.serverInfo.name, '');
    assert.ok(handshake.capabilities.tools);
  });

  check('emits one result and completes', async (transport) => {
    const { events, end } = await see(transport.exchange(callTool('echo', { text: 'hello' })));
    assert.is(end, 'completed');
    assert.is(events.length, 1);
    assert.is(textOf(events[0]), 'hello');
  });

  check('forwards the bytes of a result as the server wrote them', async (transport) => {
    for (const text of ['"é → 🎭" \\ \n\t', 'x'.repeat(100_000), '"},"jsonrpc":"2.0","id":1}']) {
      const { events } = await see(transport.exchange(callTool('echo', { text })));
      const result = resultOf(events[0]);
      const bytes = Buffer.from(result.bytes).toString('utf8');
      assert.is(textOf(events[0]), text);
      assert.is(bytes, JSON.stringify(JSON.parse(bytes)));
      assert.equal(JSON.parse(bytes), result.value);
      assert.equal(JSON.parse(bytes).content, [{ type: 'text', text }]);
    }
  });

  check('emits a JSON-RPC error as an event, not as a failure', async (transport) => {
    const seen = await see(transport.exchange(callTool('error', { code: -32050 })));
    const error = { code: -32050, message: 'an error on purpose', data: { asked: -32050 } };
    assert.equal(seen, { events: [{ kind: 'error', error }], end: 'completed' });
  });

  check('is cold: each subscription sends the request once more', async (transport) => {
    const counting = transport.exchange(callTool('count', {}));
    assert.is(textOf((await see(counting)).events[0]), '1');
    assert.is(textOf((await see(counting)).events[0]), '2');
  });

  check(
    'emits progress and then the result, without a token when the caller sent none',
    async (transport) => {
      const { events, end } = await see(
        transport.exchange({ ...callTool('progress', { steps: 3 }), wantsProgress: true }),
      );
      assert.is(end, 'completed');
      assert.equal(
        events.slice(0, -1),
        [1, 2, 3].map((step) => progressEvent(step, 3)),
      );
      assert.is(textOf(events.at(-1)), 'did 3 steps');
    },
  );

  check('passes on no progress that its caller did not ask for', async (transport) => {
    const { events } = await see(transport.exchange(callTool('progress', { steps: 3 })));
    assert.equal(events.map(textOf), ['did 3 steps']);
  });

  check('restores the progress token of the caller', async (transport) => {
    for (const progressToken of ['my-token', 0]) {
      const request = callTool('progress', { steps: 2 }, { progressToken });
      const { events } = await see(transport.exchange(request));
      assert.equal(
        events.slice(0, -1),
        [1, 2].map((step) => progressEvent(step, 2, { progressToken })),
      );
    }
  });

  check('never mixes up callers that use the same progress token', async (transport) => {
    const steps = Array.from({ length: 20 }, (_, index) => index);
    const requests = steps.map((count) =>
      callTool('progress', { steps: count, ms: 1 }, { progressToken: 1 }),
    );
    const all = await Promise.all(requests.map((request) => see(transport.exchange(request))));
    assert.equal(
      all.map(({ events }) => events.length),
      steps.map((count) => count + 1),
    );
    assert.equal(
      all.map(({ events }) => textOf(events.at(-1))),
      steps.map((count) => `did ${count} steps`),
    );
  });

  check('carries 500 exchanges at the same time', async (transport) => {
    const numbers = Array.from({ length: 500 }, (_, index) => index);
    const all = await Promise.all(numbers.map((a) => see(transport.exchange(callTool('add', { a, b: 1 })))));
    assert.equal(
      all.map(({ events }) => textOf(events[0])),
      numbers.map((a) => String(a + 1)),
    );
  });

  check('cancels on the backend when the caller unsubscribes', async (transport) => {
    await startAndUnsubscribe(
      transport.exchange({ ...callTool('progress', { steps: 100_000, ms: 1 }), wantsProgress: true }),
    );
    await until(
      async () => (await cancelledOn(transport)).length === 1,
      'the backend received the cancellation',
    );
    const { events } = await see(transport.exchange(callTool('echo', { text: 'still here' })));
    assert.is(textOf(events[0]), 'still here');
  });

  check('cancels nothing when the caller unsubscribes after the answer', async (transport) => {
    const seen = await see(transport.exchange(callTool('echo', { text: 'done' })));
    assert.is(seen.end, 'completed');
    assert.equal(await cancelledOn(transport), []);
  });

  check('messages$ emits what belongs to no exchange', async (transport) => {
    const messages: ServerMessage[] = [];
    let completed = false;
    transport.messages$.subscribe({
      next: (message) => messages.push(message),
      complete: () => {
        completed = true;
      },
    });
    const method = 'notifications/tools/list_changed';
    const { events } = await see(transport.exchange(callTool('notify', { method })));
    assert.is(events.length, 1);
    await until(() => messages.length > 0, 'the notification arrived');
    assert.equal(messages, [{ kind: 'notification', method, params: {} }]);
    await transport.close();
    assert.ok(completed);
  });

  check('answers open exchanges when it is closed', async (transport) => {
    const left = ['sleep', 'count'].map((tool) => see(transport.exchange(callTool(tool, { ms: 60_000 }))));
    await see(transport.exchange(callTool('echo', { text: 'the others have been sent by now' })));
    const closing = transport.close();
    const ends = (await Promise.all(left)).map(({ end }) => end);
    await closing;
    assert.equal(
      ends.map(failure),
      ends.map(() => ({ code: 'BACKEND_UNAVAILABLE', delivered: 'unknown' })),
    );
  });

  check('refuses an exchange after it was closed, as undelivered', async (transport) => {
    const before = transport.exchange(callTool('echo', { text: 'made before, subscribed after' }));
    await transport.close();
    for (const exchange of [before, transport.exchange(callTool('echo', { text: 'too late' }))]) {
      const { events, end } = await see(exchange);
      assert.equal(events, []);
      assert.equal(failure(end), { code: 'BACKEND_UNAVAILABLE', delivered: 'no' });
    }
  });

  check('closed$ emits once, to late subscribers as well', async (transport) => {
    const early = collect(transport.closed$);
    await Promise.all([transport.close(), transport.close()]);
    await transport.close();
    const closings = [await early, await collect(transport.closed$)];
    assert.is(closings[0]?.length, 1);
    assert.is(closings[0]?.[0]?.isExpected, true);
    assert.equal(closings[1], closings[0]);
  });

  check('reports diagnostics, open and closed', async (transport) => {
    const open = transport.diagnostics();
    await transport.close();
    for (const diagnostics of [open, transport.diagnostics()]) {
      assert.ok(diagnostics.pid === null || diagnostics.pid > 0);
      assert.instance(diagnostics.stderr, Array);
    }
  });
}

/** The function that declares a test with a transport of the subject, which is closed and released at its end. */
export function checking(test: Suite, subject: TransportSubject) {
  return (sentence: string, body: (transport: Transport) => Promise<void>): void =>
    test(`${subject.name}: ${sentence}`, async () => {
      const { transport, release } = await subject.open();
      try {
        await body(transport);
      } finally {
        await transport.close();
        await release?.();
      }
    });
}

/** A definition to open; say what differs. */
export function instanceDefinition(given: Partial<InstanceDefinition>): InstanceDefinition {
  return {
    id: 'one',
    serverId: 'server-one',
    template: 'fixture',
    transport: 'stdio',
    args: [],
    env: {},
    headers: {},
    weight: 1,
    metadata: {},
    source: 'api',
    createdAt: '2026-01-01T00:00:00.000Z',
    updatedAt: '2026-01-01T00:00:00.000Z',
    ...given,
  };
}

/** What `open` is called with; say what differs. */
export function openOptions(given: Partial<OpenOptions> = {}): OpenOptions {
  return {
    signal: new AbortController().signal,
    clock: systemClock,
    handshakeTimeoutMs: 8_000,
    client: { name: 'stagedoor-spec', version: '0.0.0' },
    network: { isDenied: () => false },
    handlers: new Map(),
    scheduler: new TaskScheduler(),
    history: {},
    ...given,
  };
}

/** A tools/call request. */
export function callTool(name: string, parameters: JsonObject, meta?: JsonObject): ExchangeRequest {
  const params = { name, arguments: parameters, ...(meta === undefined ? {} : { _meta: meta }) };
  return { method: 'tools/call', params };
}

/** Subscribes and waits for the end; never rejects. */
export function see(exchange: Observable<ExchangeEvent>): Promise<Seen> {
  return new Promise((resolve, reject) => {
    const events: ExchangeEvent[] = [];
    exchange.subscribe({
      next: (event) => events.push(event),
      error: (error) => {
        if (error instanceof GatewayError) resolve({ events, end: error });
        else
          reject(new Error('an exchange failed with something else than a GatewayError', { cause: error }));
      },
      complete: () => resolve({ events, end: 'completed' }),
    });
  });
}

/** What matters of a failed end: its code and whether the request can have arrived. */
export function failure(end: Seen['end']): { code: string; delivered: string } | undefined {
  return end === 'completed' ? undefined : { code: end.code, delivered: end.delivered };
}

/** The error of an opening, which fails without anything delivered. */
export async function refusal(opening: Promise<unknown>): Promise<GatewayError> {
  const error = await errorOf(opening);
  assert.equal(failure(error), { code: 'BACKEND_UNAVAILABLE', delivered: 'no' });
  return error;
}

/** The text of a tool result; fails for any other event. */
export function textOf(event: ExchangeEvent | undefined): string {
  const { value } = resultOf(event);
  if (!isJsonObject(value) || !Array.isArray(value.content)) throw new Error('not the result of a tool');
  const [part] = value.content;
  return isJsonObject(part) ? String(part.text) : '';
}

/** Waits for the first event of an exchange, so that it is certainly running, and unsubscribes. */
export function startAndUnsubscribe(exchange: Observable<ExchangeEvent>): Promise<void> {
  return new Promise((resolve, reject) => {
    const subscription = exchange.subscribe({
      next: () => {
        queueMicrotask(() => subscription.unsubscribe());
        resolve();
      },
      error: reject,
    });
  });
}

/** The ids of the requests that were cancelled at the backend. */
export async function cancelledOn(transport: Pick<Transport, 'exchange'>): Promise<readonly unknown[]> {
  const { events } = await see(transport.exchange(callTool('cancelled', {})));
  return JSON.parse(textOf(events[0]));
}

function resultOf(event: ExchangeEvent | undefined) {
  if (event?.kind !== 'result') throw new Error(`expected a result, not ${JSON.stringify(event)}`);
  return event.result;
}

function progressEvent(progress: number, total: number, token: JsonObject = {}): ExchangeEvent {
  const params = { ...token, progress, total, message: `step ${progress}` };
  return { kind: 'notification', method: 'notifications/progress', params };
}

/** Everything that `closed$` emits, until it is complete. */
export function collect(closed$: Observable<Closed>): Promise<readonly Closed[]> {
  return new Promise((resolve, reject) => {
    const seen: Closed[] = [];
    closed$.subscribe({ next: (closed) => seen.push(closed), error: reject, complete: () => resolve(seen) });
  });
}
