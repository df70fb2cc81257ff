// Calls whose event stream the backend closes before the answer: reported once per interruption, polled for, answered.

import type { ServerResponse } from 'node:http';
import * as assert from 'uvu/assert';
import type { ExchangeEvent } from '../../../src/domain/calls/exchange-event.ts';
import { ANSWERS_HOLD_TOO_MUCH } from '../../../src/domain/errors/backend-errors.ts';
import { GatewayError } from '../../../src/domain/errors/errors.ts';
import { HeldBytes } from '../../../src/domain/memory/held-bytes.ts';
import { systemClock } from '../../../src/domain/time/clock.ts';
import type { OpenOptions } from '../../../src/transports/open-options.ts';
import type { Transport } from '../../../src/transports/transport.ts';
import { openFor } from '../../conformance/conversation.ts';
import { callTool, failure, see, textOf } from '../../conformance/transport.ts';
import { until } from '../../helpers/eventually.ts';
import { suite } from '../../helpers/suite.ts';
import { type Answers, refused, result, SESSION, serving, status } from '../scripted-server.ts';
import { withBackend, withRawTransport } from './open-http.ts';

const test = suite('http polling');

const interrupted = (retryMs: number | undefined): ExchangeEvent => ({ kind: 'interrupted', retryMs });
const resultOf = (id: unknown, text: string): string =>
  `data: ${JSON.stringify({ jsonrpc: '2.0', id, result: { content: [{ type: 'text', text }] } })}\n\n`;

interface Polled {
  readonly transport: Transport;
  /** The Last-Event-ID and the time of each poll. */
  readonly polls: readonly { readonly from: unknown; readonly atMs: number }[];
  readonly cancelled: readonly unknown[];
}

interface Behaviour {
  readonly sessions?: boolean;
  /** The connection is reset after the beginning, instead of an orderly end of the stream. */
  readonly breaks?: boolean;
  readonly open?: Partial<OpenOptions>;
}

/** A legacy server that starts the answer of every call with `begin`; polls are answered by the functions in turn. */
async function polling(
  begin: string,
  answers: readonly ((response: ServerResponse, id: unknown) => void)[],
  body: (backend: Polled) => Promise<void>,
  { sessions = true, breaks = false, open = {} }: Behaviour = {},
): Promise<void> {
  const polls: { from: unknown; atMs: number }[] = [];
  const cancelled: unknown[] = [];
  let calledId: unknown;
  const behaviour: Answers = {
    DELETE: status(200),
    GET: (response, { request }) => {
      const from = request.headers['last-event-id'];
      if (from === undefined) return void response.writeHead(405).end();
      polls.push({ from, atMs: performance.now() });
      answers[Math.min(polls.length, answers.length) - 1]?.(response, calledId);
    },
    'notifications/cancelled': (response, { params }) => {
      cancelled.push(params);
      response.writeHead(202).end();
    },
    'server/discover': status(400),
    initialize: result({ protocolVersion: '2025-11-25' }, sessions ? SESSION : {}),
    ping: status(404), // the session is lost
    otherwise: (response, { id }) => {
      calledId = id;
      if (breaks) stream(response).write(begin, () => response.socket?.resetAndDestroy());
      else stream(response).end(begin);
    },
  };
  await withRawTransport(serving(behaviour), (transport) => body({ transport, polls, cancelled }), open);
}

function stream(response: ServerResponse): ServerResponse {
  return response.writeHead(200, { 'content-type': 'text/event-stream' });
}

const call = callTool('slow', {});

test('reports the interruption, waits for the retry time, and returns the answer', async () => {
  const began = performance.now();
  await polling(
    'id: p-1\nretry: 60\ndata: \n\n',
    [(response, id) => stream(response).end(`id: p-2\n${resultOf(id, 'at last')}`)],
    async ({ transport, polls }) => {
      const { events, end } = await see(transport.exchange(call));
      assert.equal([events[0], events.length, end], [interrupted(60), 2, 'completed']);
      assert.is(textOf(events[1]), 'at last');
      const found = polls.map(({ from }) => from);
      assert.equal(found, ['p-1']);
      assert.ok(Number(polls[0]?.atMs) - began >= 55);
    },
  );
});

test('polls from the latest event id after each end of the stream, and passes on messages meanwhile', async () => {
  const log = { jsonrpc: '2.0', method: 'notifications/message', params: { level: 'info', data: 'working' } };
  await polling(
    'id: a\nretry: 1\ndata: \n\n',
    [
      (response) => stream(response).end(`id: b\ndata: ${JSON.stringify(log)}\n\n`),
      (response) => stream(response).end('id: c\nretry: 2\ndata: \n\n'),
      (response, id) => stream(response).end(`id: d\n${resultOf(id, 'done')}`),
    ],
    async ({ transport, polls }) => {
      const { events } = await see(transport.exchange(call));
      assert.equal(events.slice(0, -1), [
        interrupted(1),
        { kind: 'notification', method: log.method, params: log.params },
        interrupted(1),
        interrupted(2),
      ]);
      assert.is(textOf(events.at(-1)), 'done');
      const found = polls.map(({ from }) => from);
      assert.equal(found, ['a', 'b', 'c']);
    },
    { sessions: false },
  );
});

test('keeps polling a backend whose stream breaks, or that answers a poll with 5xx', async () => {
  await polling(
    'id: a\nretry: 1\ndata: \n\n',
    [
      (response) => void response.socket?.resetAndDestroy(),
      (response) => void response.writeHead(503).end(),
      (response) => void response.writeHead(429).end(),
      (response, id) => stream(response).end(resultOf(id, 'done')),
    ],
    async ({ transport, polls }) => {
      const { events, end } = await see(transport.exchange(call));
      // The backend did not ask to be polled: no interruption is reported, so that the call may still be made elsewhere.
      assert.equal([events.map(textOf), end, polls.length], [['done'], 'completed', 4]);
    },
    { breaks: true },
  );
});

test('does not poll again for a message that the gateway broke off', async () => {
  const held = new HeldBytes({ totalBytes: 100_000, ownerBytes: 100_000 }, systemClock.now);
  await polling(
    'id: a\nretry: 1\ndata: \n\n',
    [(response) => void stream(response).write(`data: ${'x'.repeat(200_000)}`)],
    async ({ transport, polls }) => {
      const { end } = await see(transport.exchange(call));
      assert.equal(failure(end), { code: 'BACKEND_UNAVAILABLE', delivered: 'unknown' });
      assert.match(String(end), ANSWERS_HOLD_TOO_MUCH);
      assert.is(polls.length, 1);
    },
    { open: { answers: held.of('a') } },
  );
});

test('fails the call with unknown delivery as soon as the backend refuses connections', async () => {
  const sse = { ids: true, priming: true, early: true };
  await withBackend({ era: 'legacy', answers: 'sse', sse }, async ({ transport, server }) => {
    const seen = see(transport.exchange(callTool('sleep', { ms: 60_000 })));
    await until(
      () => server.requests.some(({ message }) => message?.method === 'tools/call'),
      'it is called',
    );
    await server.refuse();
    const { events, end } = await seen;
    assert.ok(end instanceof GatewayError);
    assert.equal([events, failure(end)], [[], { code: 'BACKEND_UNAVAILABLE', delivered: 'unknown' }]);
    const { health, reason, retryAfterSeconds } = end.facts;
    assert.equal([health, reason, retryAfterSeconds], ['unreachable', 'connection refused', undefined]);
  });
});

test('fails with unknown delivery when the stream cannot be resumed', async () => {
  for (const status of [400, 404, 405]) {
    await polling(
      'id: a\nretry: 1\ndata: \n\n',
      [(response) => void response.writeHead(status).end()],
      async ({ transport }) => {
        const { events, end } = await see(transport.exchange(call));
        assert.equal(events, [interrupted(1)]);
        assert.equal(failure(end), { code: 'BACKEND_UNAVAILABLE', delivered: 'unknown' });
        assert.ok(end instanceof GatewayError);
        assert.match(end.message, 'without an answer');
      },
    );
  }
});

test('does not poll for a stream whose events have no ids', async () => {
  for (const begin of ['retry: 1\ndata: \n\n', 'id: \ndata: \n\n', 'id: unfinished\n']) {
    await polling(begin, [], async ({ transport, polls }) => {
      const { events, end } = await see(transport.exchange(call));
      assert.equal([events, polls], [[], []]);
      assert.is(failure(end)?.delivered, 'unknown');
    });
  }
});

test('stops polling when the caller leaves, and cancels the call at the backend', async () => {
  await polling(
    'id: a\nretry: 1\ndata: \n\n',
    [(response) => void stream(response).flushHeaders()],
    async ({ transport, polls, cancelled }) => {
      const subscription = transport.exchange(call).subscribe();
      await until(() => polls.length === 1, 'it polls');
      subscription.unsubscribe();
      await until(() => cancelled.length === 1, 'the call was cancelled at the backend');
      const waiting = transport.exchange(call).subscribe(() => waiting.unsubscribe());
      await until(() => cancelled.length === 2, 'the second call was cancelled at the backend');
      await new Promise((resolve) => setTimeout(resolve, 30));
      assert.is(polls.length, 1);
    },
  );
});

for (const [what, answer, closings] of [
  ['404 ends', status(404), [{ reason: 'it forgot the session', isExpected: false }]],
  ['400, as for an unknown event, does not end', refused(400, -32000, null), []],
] as const) {
  test(`a poll that is answered with ${what} the conversation of a client`, async () => {
    await polling(
      'id: a\nretry: 1\ndata: \n\n',
      [(response) => void answer(response, Object({}))],
      async ({ transport }) => {
        const conversation = await openFor(transport);
        const order: unknown[] = [];
        conversation.closed$.subscribe((closed) => order.push(closed));
        const { end } = await see(conversation.exchange(call));
        assert.equal([...order, failure(end)?.delivered], [...closings, 'unknown']);
      },
    );
  });
}

test('a call whose session was replaced fails, and does not poll in the new one', () =>
  polling(
    'id: a\nretry: 500\ndata: \n\n',
    [(response) => void stream(response).flushHeaders()],
    async ({ transport, polls }) => {
      const first = see(transport.exchange(call));
      await see(transport.exchange({ method: 'ping' }));
      assert.equal(failure((await first).end), { code: 'BACKEND_UNAVAILABLE', delivered: 'unknown' });
      assert.is(polls.length, 0);
    },
  ));

test.run();
