// One exchange against a backend that misbehaves: what the caller receives, and that the next call works.

import * as assert from 'uvu/assert';
import { GatewayError } from '../../../src/domain/errors/errors.ts';
import type { Transport } from '../../../src/transports/transport.ts';
import {
  callTool,
  failure,
  type Seen,
  see,
  startAndUnsubscribe,
  textOf,
} from '../../conformance/transport.ts';
import type { FailureName } from '../../fixtures/http-failures.ts';
import type { HttpServerOptions } from '../../fixtures/http-options.ts';
import type { HttpFixture } from '../../fixtures/http-server.ts';
import { until } from '../../helpers/eventually.ts';
import { suite } from '../../helpers/suite.ts';
import {
  type Answer,
  type Answers,
  discovered,
  initialized,
  refused,
  serving,
  status,
} from '../scripted-server.ts';
import { withBackend, withRawTransport } from './open-http.ts';

const test = suite('http call');

const echo = (text: string) => callTool('echo', { text });
const suspicious = ({ end }: Seen) => end instanceof GatewayError && end.facts.health === 'suspicious';
const calls = (server: HttpFixture) => server.count('tools/call');

/** Runs a body in the eras that differ on the wire, and proves afterwards that the next call works. */
async function inEachEra(
  body: (backend: { transport: Transport; server: HttpFixture }) => Promise<void>,
): Promise<void> {
  const variants: HttpServerOptions[] = [
    { answers: 'sse' },
    { answers: 'json', sessions: false },
    { era: 'modern' },
    { era: 'bare' },
  ];
  for (const options of variants) {
    await withBackend(options, async (backend) => {
      await body(backend);
      const { events } = await see(backend.transport.exchange(echo('the next call')));
      assert.is(textOf(events[0]), 'the next call', JSON.stringify(options));
    });
  }
}

const expected: readonly [FailureName, 'no' | 'unknown', suspicious: boolean, words: string][] = [
  ['html', 'unknown', true, 'other than'],
  ['not-json', 'unknown', true, 'other than'],
  ['empty', 'unknown', true, 'empty body'],
  ['wrong-id', 'unknown', true, 'other than'],
  ['500', 'unknown', true, 'answered 500'],
  ['502-html', 'unknown', true, 'answered 502'],
  ['503', 'unknown', true, 'answered 503'],
  ['401', 'no', false, 'answered 401'],
  ['redirect', 'no', true, 'register that address'],
  ['reset', 'unknown', true, 'connection'],
  ['reset-midway', 'unknown', true, 'connection'],
  ['truncated-sse', 'unknown', true, 'without an answer'],
];

test('a request that may not be sent any more when there is a connection for it is not', async () => {
  await inEachEra(async ({ transport, server }) => {
    const asked: boolean[] = [];
    const mayBeSent = () => {
      asked.push(true);
      return false;
    };
    const seen = await see(transport.exchange({ ...echo('hello'), mayBeSent }));
    assert.equal([seen.events, failure(seen.end)], [[], { code: 'BACKEND_UNAVAILABLE', delivered: 'no' }]);
    assert.equal([suspicious(seen), asked, calls(server)], [false, [true], 0]);
  });
});

for (const [how, delivered, doubtful, words] of expected) {
  test(`a backend that answers ${how} is unavailable, delivered: ${delivered}`, async () => {
    await inEachEra(async ({ transport, server }) => {
      server.failNext(how, { method: 'tools/call' });
      const seen = await see(transport.exchange(echo('hello')));
      assert.equal(seen.events, []);
      assert.equal(failure(seen.end), { code: 'BACKEND_UNAVAILABLE', delivered });
      assert.is(suspicious(seen), doubtful);
      assert.ok(seen.end instanceof GatewayError);
      assert.match(seen.end.message, words);
      assert.is(calls(server), 1);
      assert.is(server.redirected.length, 0);
    });
  });
}

test('an error with a status that is not a success has the status and the wait that its server asked for', async () => {
  const refuse = refused(401, -32001);
  const answers: Answers = {
    initialize: initialized,
    'tools/call': (response, asked) => refuse(response.setHeader('retry-after', '7'), asked),
  };
  await withRawTransport(serving(answers), async (transport) => {
    const { events } = await see(transport.exchange(echo('hello')));
    const error = { code: -32001, message: 'no' };
    assert.equal(events, [{ kind: 'error', error, refusal: { status: 401, waitMs: 7_000 } }]);
  });
});

const LEGACY = { initialize: initialized };
const MODERN = { 'server/discover': discovered };
const ERRORS: readonly [name: string, refuse: Answer, expected: string, greeting?: Answers][] = [
  ['an error with 400 is the answer', refused(400, -32602), 'answer -32602'],
  ['an error with 500 is the answer', refused(500, -32603), 'answer -32603'],
  ['an error with 503 may come from a proxy', refused(503, -32603), 'unknown'],
  ['without an error there is no answer', status(400), 'no'],
  ['an error about another request is not an answer', refused(400, -32602, 1_000), 'no'],
  ['an error without an id is not an answer', refused(400, -32602, null), 'no'],
  ['-32020 without an id is a missing header', refused(400, -32020, null), 'answer -32020'],
  ['-32020 with 404 and no id is not an answer', refused(404, -32020, null), 'no'],
  ['-32020 in the legacy era without an id is not an answer', refused(400, -32020, null), 'no', LEGACY],
];

for (const [name, refuse, expected, greeting = MODERN] of ERRORS)
  test(`what a refusal means: ${name}`, async () => {
    await withRawTransport(serving({ ...greeting, 'tools/call': refuse }), async (transport) => {
      // Nothing is repaired for a request that was sent again.
      const { events, end } = await see(transport.exchange({ ...echo('hello'), isResent: true }));
      const [event] = events;
      const answer = event?.kind === 'error' ? `answer ${event.error.code}` : undefined;
      assert.is(answer ?? (end instanceof GatewayError && end.delivered), expected);
    });
  });

test('the first of two answers counts', async () => {
  await inEachEra(async ({ transport, server }) => {
    server.failNext('two-answers', { method: 'tools/call' });
    const { events, end } = await see(transport.exchange(echo('hello')));
    assert.is(end, 'completed');
    assert.equal(events.map(textOf), ['the first']);
  });
});

test('an answer above the limit of one message fails the call, and the next call works', async () => {
  await withBackend({}, async ({ transport, server }) => {
    server.failNext('huge', { method: 'tools/call', bytes: 70 * 1024 * 1024 });
    const { end } = await see(transport.exchange(echo('hello')));
    assert.equal(failure(end), { code: 'BACKEND_UNAVAILABLE', delivered: 'unknown' });
    assert.is(textOf((await see(transport.exchange(echo('next')))).events[0]), 'next');
  });
});

test('a refused connection is unreachable and undelivered; the instance serves again when it is back', async () => {
  await inEachEra(async ({ transport, server }) => {
    await server.refuse();
    const seen: Seen[] = [];
    // A connection that was just closed may still count as open: then it is unknown whether the call arrived.
    await until(async () => {
      const latest = await see(transport.exchange(echo('hello')));
      seen.push(latest);
      return failure(latest.end)?.delivered === 'no';
    }, 'the connection is refused');
    const end = seen.at(-1)?.end;
    assert.ok(end instanceof GatewayError);
    assert.is(end.code, 'BACKEND_UNAVAILABLE');
    assert.is(end.facts.health, 'unreachable');
    assert.is((end.cause as NodeJS.ErrnoException).code, 'ECONNREFUSED');
    await server.listenAgain();
  });
});

test('a legacy server gets notifications/cancelled for a cancelled call, a modern one sees the stream close', async () => {
  const request = { ...callTool('progress', { steps: 100_000, ms: 1 }), wantsProgress: true };
  for (const [asked, expected] of [
    [request, 'no caller waits for the answer'],
    [{ ...request, canceller: { cancelReason: 'too slow' } }, 'too slow'],
  ] as const) {
    await withBackend({ answers: 'sse' }, async ({ transport, server }) => {
      await startAndUnsubscribe(transport.exchange(asked));
      await until(() => server.state.cancelled.length === 1, 'the cancellation arrived');
      const reported = server.requests.find(({ message }) => message?.method === 'notifications/cancelled');
      const { requestId, reason } = Object(reported?.message?.params);
      assert.equal([requestId, reason], [server.state.cancelled[0], expected]);
    });
  }
  await withBackend({ era: 'modern', answers: 'sse' }, async ({ transport, server }) => {
    await startAndUnsubscribe(transport.exchange(request));
    await until(() => server.state.cancelled.length === 1, 'the cancellation arrived');
    assert.not.ok(server.requests.some(({ message }) => message?.method === 'notifications/cancelled'));
  });
});

test('a call that is cancelled before it was sent leads to no notification', async () => {
  await withBackend({}, async ({ transport, server }) => {
    const before = server.requests.length;
    const subscription = transport.exchange(echo('hello')).subscribe();
    subscription.unsubscribe();
    assert.is(textOf((await see(transport.exchange(echo('next')))).events[0]), 'next');
    const methods = server.requests.slice(before).map(({ message }) => message?.method);
    assert.equal(methods.filter(Boolean), ['tools/call']);
  });
});

test('log lines and custom notifications on the stream of a call go to that call', async () => {
  await withBackend({ answers: 'sse' }, async ({ transport }) => {
    transport.messages$.subscribe();
    const texts = ['a', 'b', 'c', 'd'];
    for (const method of ['notifications/message', 'notifications/vendor']) {
      const calls = texts.map((data) =>
        see(transport.exchange(callTool('notify', { method, params: { data } }))),
      );
      const received = (await Promise.all(calls)).map(({ events }) => events[0]);
      const sent = texts.map((data) => ({ kind: 'notification', method, params: { data } }));
      assert.equal(received, sent);
    }
  });
});

test('ignores messages that match no exchange', async () => {
  await withBackend({ answers: 'sse' }, async ({ transport }) => {
    const { events } = await see(
      transport.exchange(callTool('misbehave', { how: 'unknown-id-then-answer' })),
    );
    assert.is(textOf(events[0]), 'the real answer');
  });
});

test('a list that is refused leaves no stream open, although the backend does not end it', async () => {
  let isOpen = true;
  const list: Answer = (response, { id }) => {
    const tools = `[{"name":"a","_meta":[${'0,'.repeat(1_000_000)}0]}]`;
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.write(`data: {"jsonrpc":"2.0","id":${id},"result":{"tools":${tools}}}\n\n`);
    response.on('close', () => (isOpen = false));
  };
  await withRawTransport(serving({ initialize: initialized, 'tools/list': list }), async (transport) => {
    assert.is(
      failure((await see(transport.exchange({ method: 'tools/list' }))).end)?.code,
      'BACKEND_UNAVAILABLE',
    );
    await until(() => !isOpen);
  });
});

test.run();
