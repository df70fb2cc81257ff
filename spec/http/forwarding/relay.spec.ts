// The answer of another node, passed on to a client over a real socket.

import * as assert from 'uvu/assert';
import { invalidCredentials } from '../../../src/domain/errors/account-errors.ts';
import { nodeUnavailable } from '../../../src/domain/errors/node-errors.ts';
import { type ForwardedAnswer, type Forwarding, NotHolder } from '../../../src/domain/nodes/forwarding.ts';
import { systemClock } from '../../../src/domain/time/clock.ts';
import { ClientGone } from '../../../src/http/client-gone.ts';
import { relay } from '../../../src/http/forwarding/relay.ts';
import { EventStreams } from '../../../src/http/sse/event-stream.ts';
import { headersOf } from '../../helpers/http/app.ts';
import { startMiddlewares } from '../../helpers/http/middlewares.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('relay');

const JSON_HEAD = { 'content-type': 'application/json', 'x-instance-id': 'one', server: 'of the holder' };
const STREAM_HEAD = { 'content-type': 'text/event-stream', 'cache-control': 'no-store' };

interface Holder {
  /** What the holder says. Its methods are called without the object, as peers may wrap them. */
  readonly say: ForwardedAnswer;
  readonly lose: (reason: Error) => void;
  /** The client disconnects. */
  readonly leave: () => void;
  readonly streams: EventStreams;
}

/** Relays what the holder says to one client. `calls`: what the relay did with the forwarding; `failure`: its rejection. */
async function relayed(talk: (holder: Holder) => void | Promise<void>) {
  const calls: string[] = [];
  let failure: unknown;
  const app = await startMiddlewares(async (context) => {
    const streams = new EventStreams(systemClock, { callerCheckMs: 10 });
    const { promise: lost, resolve: lose } = Promise.withResolvers<Error>();
    const leave = () => {
      context.res.destroy();
      lose(new ClientGone());
    };
    const forwarding: Forwarding = {
      isSent: true,
      resume: () => void calls.push('resume'),
      cancel: () => void calls.push('cancel'),
    };
    const job = {
      node: 'b',
      forward: (answer: ForwardedAnswer) => {
        setImmediate(() => void talk({ say: { ...answer }, lose, leave, streams }));
        return forwarding;
      },
      onLost: (listener: (reason: Error) => void) => {
        void lost.then(listener);
        return () => {};
      },
      failure: (error: Error) => error,
      countRefusal: () => void calls.push('count'),
    };
    await relay(context, job, streams).catch((thrown: unknown) => {
      failure = thrown;
      throw thrown;
    });
  });
  const answer = await app.ask('POST', '/').catch(() => undefined);
  app.close();
  return { answer, calls, failure };
}

test('passes on status, body and known headers', async () => {
  const body = '{"a":"ü"}';
  for (const parts of [[body], ['{"a":', '"ü"}']]) {
    const { answer, calls } = await relayed(({ say }) => {
      say.head(200, { ...JSON_HEAD, 'content-length': String(Buffer.byteLength(body)) });
      for (const part of parts) say.data(Buffer.from(part));
      say.end();
    });
    assert.equal([answer?.status, answer?.text], [200, body]);
    const names = ['content-type', 'content-length', 'x-instance-id', 'server'];
    assert.equal(answer && headersOf(answer, ...names), ['application/json', '10', 'one', null]);
    assert.equal(calls, []);
  }
});

test('counts the refusals of the holder, but not those of its limits', async () => {
  for (const [status, counted] of [
    [404, ['count']],
    [429, []],
    [503, []],
  ] as const) {
    const { answer, calls } = await relayed(({ say }) => {
      say.head(status, { ...JSON_HEAD, 'content-length': '2' });
      say.data(Buffer.from('{}'));
      say.end();
    });
    assert.equal([answer?.status, calls], [status, counted]);
  }
});

test('a stream is sent as it comes, and ends when its client loses its rights', async () => {
  const { answer, calls } = await relayed(({ say, streams }) => {
    say.head(200, STREAM_HEAD);
    say.data(Buffer.from('data: 1\n\n'));
    setImmediate(() => streams.close());
  });
  assert.equal([answer?.status, answer?.text, calls], [200, 'data: 1\n\n', ['cancel']]);
});

test('a failure before the head is the error of the request, later it breaks the answer off', async () => {
  const failed = nodeUnavailable('b', 'it has ended', 'no');
  const before = await relayed(({ say }) => say.failed(failed));
  assert.equal([before.answer?.status, before.failure], [503, failed]);
  const after = await relayed(({ say }) => {
    say.head(200, { ...JSON_HEAD, 'content-length': '100' });
    say.data(Buffer.from('{'));
    setImmediate(() => say.failed(failed));
  });
  assert.equal([after.answer, after.failure], [undefined, undefined]);
  const elsewhere = await relayed(({ say }) => say.notHolder(7));
  assert.instance(elsewhere.failure, NotHolder);
});

test('a lost client cancels the request at the holder', async () => {
  const refusal = invalidCredentials();
  const { answer, calls, failure } = await relayed(({ lose }) => lose(refusal));
  assert.equal([answer?.status, calls, failure], [401, ['cancel'], refusal]);
});

test('a client that leaves before the answer is no failure', async () => {
  const { calls, failure } = await relayed(({ leave }) => leave());
  assert.equal([calls, failure], [['cancel'], undefined]);
});

test('a request that no node takes for a while leaves no listeners on its response', async () => {
  const tries = 30;
  const lost = new Set<(reason: Error) => void>();
  const listeners: number[] = [];
  const app = await startMiddlewares(async (context) => {
    const streams = new EventStreams(systemClock);
    const offered = (talk: (say: ForwardedAnswer) => void) => ({
      node: 'b',
      forward: (answer: ForwardedAnswer) => {
        setImmediate(() => talk(answer));
        return { isSent: true, resume: () => {}, cancel: () => {} };
      },
      onLost: (listener: (reason: Error) => void) => {
        lost.add(listener);
        return () => void lost.delete(listener);
      },
      failure: (error: Error) => error,
      countRefusal: () => {},
    });
    const counted = () => ['drain', 'close'].map((name) => context.res.listenerCount(name));
    const before = counted();
    for (let tried = 0; tried < tries; tried += 1)
      await relay(
        context,
        offered((say) => say.notHolder(0)),
        streams,
      ).catch((thrown) => assert.instance(thrown, NotHolder));
    assert.equal([counted(), lost.size], [before, 0]);
    await relay(
      context,
      offered((say) => {
        listeners.push(lost.size);
        say.head(200, JSON_HEAD);
        say.data(Buffer.from('{"a":'));
        say.data(Buffer.from('1}'));
        say.end();
      }),
      streams,
    );
  });
  const { status, text } = await app.ask('POST', '/');
  await app.close();
  assert.equal([status, text, listeners], [200, '{"a":1}', [1]]);
});

test.run();
