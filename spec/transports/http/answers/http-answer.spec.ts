// One HTTP answer: bodies and streams of every kind, cut, late, too large, aborted.

import type { RequestListener, ServerResponse } from 'node:http';
import { setImmediate as turn } from 'node:timers/promises';
import * as assert from 'uvu/assert';
import { ANSWERS_HOLD_TOO_MUCH } from '../../../../src/domain/errors/backend-errors.ts';
import { LIMITS } from '../../../../src/domain/limits.ts';
import type { BackendMessage } from '../../../../src/domain/mcp/jsonrpc.ts';
import { HeldBytes, type InstanceHeldBytes } from '../../../../src/domain/memory/held-bytes.ts';
import { systemClock } from '../../../../src/domain/time/clock.ts';
import type { AnswerEnding } from '../../../../src/transports/http/answers/answer-ending.ts';
import {
  HttpAnswer,
  type Sender,
  type Sending,
} from '../../../../src/transports/http/answers/http-answer.ts';
import { connectionClosed } from '../../../../src/transports/http/answers/http-failures.ts';
import { HttpEndpoint } from '../../../../src/transports/http/http-endpoint.ts';
import { until } from '../../../helpers/eventually.ts';
import { suite } from '../../../helpers/suite.ts';
import { alarmsOf } from '../../../helpers/time/simulated-time.ts';
import { startRawServer, withRawServer } from '../../raw-server.ts';
import { poolOf, postTo } from '../pool-of.ts';

const test = suite('http answer');

interface Seen {
  readonly messages: BackendMessage[];
  readonly answer: HttpAnswer;
  readonly ending: Promise<AnswerEnding>;
}

/** Sends one POST and listens to its answer. */
async function post(
  listener: RequestListener,
  body: (seen: Seen) => Promise<void>,
  memory?: InstanceHeldBytes,
  run?: (task: () => void) => void,
): Promise<void> {
  const server = await startRawServer(listener);
  const pool = poolOf(server);
  try {
    const { promise: ending, resolve } = Promise.withResolvers<AnswerEnding>();
    const messages: BackendMessage[] = [];
    const answer = new HttpAnswer({
      message: (message) => messages.push(message),
      finished: resolve,
    });
    if (memory !== undefined) answer.sentBy(senderWith(memory, run), SENDING);
    pool.dispatch({ text: postTo('/mcp'), answer });
    await body({ messages, answer, ending });
  } finally {
    pool.destroy();
    await server.close();
  }
}

const SENDING: Sending = {
  ...{ path: '/mcp', method: 'POST', headers: {}, body: '', isLasting: false, isRedirected: false },
  jar: undefined,
};

function senderWith(answers: InstanceHeldBytes, run?: (task: () => void) => void): Sender {
  return {
    ...{ origin: '', clock: systemClock, secrets: [], answers, scheduler: run && { run } },
    ...{ send: () => {}, pathOf: () => undefined, keepCookies: () => {} },
  };
}

const resultText = '{"result":{"content":[]},"jsonrpc":"2.0","id":1}';
const complete = (detail: string, isStreamed = false): AnswerEnding => ({
  kind: 'complete',
  detail,
  isStreamed,
});
const kinds = ({ messages }: Seen) => messages.map(({ kind }) => kind);

test('a large body is read in its turn, counts until then, and is not read after an abort', async () => {
  const large = `{"result":{"content":[],"text":"${'x'.repeat(600_000)}"},"jsonrpc":"2.0","id":1}`;
  for (const isAborted of [false, true]) {
    const tasks: (() => void)[] = [];
    const held = new HeldBytes({ totalBytes: 2_000_000, ownerBytes: 2_000_000 }, systemClock.now);
    const run = (task: () => void) => void tasks.push(task);
    const body = async (seen: Seen) => {
      await until(() => tasks.length !== 0);
      assert.equal([kinds(seen), held.bytes > large.length], [[], true]);
      if (isAborted) seen.answer.abort();
      for (const task of tasks) task();
      assert.equal([kinds(seen), held.bytes], [isAborted ? [] : ['result'], 0]);
    };
    await post((_, response) => response.end(large), body, held.of('a'), run);
  }
});

test('a request that is aborted before there was a connection is never written', async () => {
  const arrived: unknown[] = [];
  const server = await startRawServer(({ url }, response) => {
    arrived.push(url);
    response.end(resultText);
  });
  const pool = poolOf(server, 1);
  const answer = new HttpAnswer({
    message: () => assert.unreachable(),
    finished: () => assert.unreachable(),
  });
  pool.dispatch({ text: postTo('/withdrawn'), answer });
  assert.not.ok(answer.isSent);
  answer.abort();
  // It waits for the same connection.
  await new Promise<unknown>((finished) => {
    const next = new HttpAnswer({ message: () => {}, finished });
    pool.dispatch({ text: postTo('/needed'), answer: next });
  });
  assert.equal(arrived, ['/needed']);
  pool.destroy();
  await server.close();
});

test('an answer that is aborted later may end by itself before', async () => {
  const { promise: gone, resolve } = Promise.withResolvers<void>();
  const listener: RequestListener = (_, response) => {
    response.on('close', resolve);
    response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders();
  };
  const { clock, ring } = alarmsOf(LIMITS.backgroundMs);
  await withRawServer(listener, async ({ url }) => {
    const endpoint = new HttpEndpoint({ endpoint: url, headers: {} }, { isDenied: () => false, clock });
    const began = Promise.withResolvers<void>();
    const answer = new HttpAnswer({
      began: began.resolve,
      message: () => assert.unreachable(),
      finished: () => assert.unreachable(),
    });
    endpoint.get({}, answer);
    await began.promise;
    answer.abortLater();
    assert.ok(await Promise.race([gone.then(() => false), turn().then(() => true)]));
    ring();
    await gone;
    endpoint.destroy();
  });
});

for (const type of ['application/json', 'text/event-stream']) {
  test(`holds memory until its end, and fails when that is needed before: ${type}`, async () => {
    const held = new HeldBytes({ totalBytes: 100_000, ownerBytes: 100_000 }, systemClock.now);
    let last: ServerResponse | undefined;
    const stall: RequestListener = (_, response) => {
      last = response.writeHead(200, { 'content-type': type });
      last.write(`data: ${'x'.repeat(50_000)}`);
    };
    const ends = async ({ ending }: Seen) => {
      await until(() => held.bytes >= 50_000);
      last?.end();
      await ending;
      assert.is(held.bytes, 0);
    };
    await post(stall, ends, held.of('a'));
    await post(
      stall,
      async ({ ending }) => {
        await until(() => held.bytes >= 50_000);
        const other = held.hold('other', () => {});
        other.set(80_000);
        assert.equal(await ending, {
          kind: 'broken',
          failure: connectionClosed(ANSWERS_HOLD_TOO_MUCH, true),
        });
        assert.is(held.bytes, 80_000);
      },
      held.of('a'),
    );
  });
}

for (const [what, head, body] of [
  ['cannot be decoded', { 'content-encoding': 'gzip' }, Buffer.from('no such session')],
  ['is too large', { 'content-type': 'application/json' }, Buffer.alloc(LIMITS.backendMessageBytes + 1, ' ')],
] as const)
  test(`reports the status of a refusal whose text ${what}`, async () => {
    const listener: RequestListener = (_, response) => {
      response.on('error', () => {});
      response.writeHead(404, head).end(body);
    };
    await post(listener, async ({ ending }) => {
      const { kind, status } = Object(await ending);
      assert.equal([kind, status], ['refused', 404]);
    });
  });

test('reports each event of a stream when it arrives', async () => {
  let stream: ServerResponse | undefined;
  const listener: RequestListener = (_, response) => {
    stream = response;
    response.writeHead(200, { 'content-type': 'Text/Event-Stream; charset=utf-8', 'mcp-session-id': 'abc' });
    response.write('id: 1\ndata: \n\nevent: ping\ndata: {}\n\ndata: nonsense\n\n');
    response.write('data: {"jsonrpc":"2.0","method":"notifications/message","params":{}}\n\n');
  };
  await post(listener, async (seen) => {
    await until(() => seen.messages.length !== 0);
    assert.equal(kinds(seen), ['notification']);
    assert.is(seen.answer.sessionId, 'abc');
    stream?.end(`data: ${resultText}\n\n`);
    assert.equal(await seen.ending, complete('ended its event stream without an answer', true));
    assert.equal(kinds(seen), ['notification', 'result']);
  });
});

test('breaks off, and closes the connection, when one event exceeds the limit', async () => {
  const endless: RequestListener = (_, response) => {
    const piece = Buffer.alloc(4 * 1024 * 1024, 'x');
    response.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: {');
    const more = (): void => {
      if (!response.destroyed) response.write(piece, more);
    };
    more();
  };
  await post(endless, async ({ ending }) => {
    const end = await ending;
    assert.ok(end.kind === 'broken');
    assert.match(end.failure.message, `more than ${LIMITS.backendMessageBytes} bytes`);
  });
});

test.run();
