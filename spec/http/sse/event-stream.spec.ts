import { concat, NEVER, Observable, of, Subject } from 'rxjs';
import * as assert from 'uvu/assert';
import { invalidCredentials } from '../../../src/domain/errors/account-errors.ts';
import { systemClock } from '../../../src/domain/time/clock.ts';
import type { HttpContext } from '../../../src/http/context.ts';
import type { StreamEvent } from '../../../src/http/replies/reply.ts';
import { type EventStreamOptions, EventStreams } from '../../../src/http/sse/event-stream.ts';
import { head, openRaw, readAll, readUntil } from '../../helpers/clients/raw-http.ts';
import { until } from '../../helpers/eventually.ts';
import { headersOf } from '../../helpers/http/app.ts';
import { startMiddlewares } from '../../helpers/http/middlewares.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('event streams');
/** A request whose caller keeps its rights; its client stays. */
const KEEPS_RIGHTS = { onLost: () => () => {} };

async function serve(events$: Observable<StreamEvent>, options?: EventStreamOptions) {
  const streams = new EventStreams(systemClock, options);
  const app = await startMiddlewares((context) => streams.write(context, events$, KEEPS_RIGHTS));
  return { ...app, streams };
}

test('write events in order, their data on one line, and end', async () => {
  const app = await serve(
    of(
      { name: 'progress', data: '{\r\n"b":\r1\n}', instanceId: 'one' },
      { name: 'result', data: Buffer.from('[\r\n"ü",\n\r2]'), instanceId: 'two' },
    ),
  );
  const answer = await app.ask('GET', '/', { headers: { 'x-request-id': 'r1' } });
  assert.is(answer.status, 200);
  assert.is(answer.text, 'event: progress\ndata: {  "b": 1 }\n\nevent: result\ndata: [  "ü",  2]\n\n');
  const names = ['content-type', 'cache-control', 'x-accel-buffering', 'x-request-id', 'x-instance-id'];
  const values = ['text/event-stream', 'no-store, no-transform', 'no', 'r1', 'one'];
  assert.equal(headersOf(answer, ...names), values);
  app.close();
});

test('end with an error event without details when the source fails', async () => {
  const source$ = new Observable<StreamEvent>((subscriber) => {
    subscriber.next({ name: 'progress', data: '{}' });
    subscriber.error(new Error('a secret'));
  });
  let state: HttpContext['state'] | undefined;
  const streams = new EventStreams(systemClock);
  const app = await startMiddlewares((context) => {
    state = context.state;
    return streams.write(context, source$, KEEPS_RIGHTS);
  });
  const { status, text } = await app.ask('GET', '/', { headers: { 'x-request-id': 'r1' } });
  assert.equal([status, state?.errorCode], [200, 'INTERNAL_ERROR']);
  assert.match(
    text,
    /^event: progress\n[\s\S]*event: error\ndata: \{.*"INTERNAL_ERROR","request_id":"r1"\}\n\n$/,
  );
  assert.not.match(text, /secret/);
  app.close();
});

test('leave nothing that waits when their source cannot be made', async () => {
  const alarms = new Set<() => void>();
  const alarm: typeof systemClock.alarm = (_, callback) => {
    alarms.add(callback);
    return () => void alarms.delete(callback);
  };
  const streams = new EventStreams({ ...systemClock, alarm });
  const listeners: number[] = [];
  const app = await startMiddlewares(async (context) => {
    const { res } = context;
    const before = res.listenerCount('close');
    const failing = () => {
      throw new Error('a fault of the route');
    };
    const written = streams.write(context, failing, KEEPS_RIGHTS);
    await written.finally(() => listeners.push(res.listenerCount('close') - before));
  });
  const { outcome } = await app.ask('GET', '/');
  assert.equal([outcome, alarms.size, listeners], ['500 INTERNAL_ERROR', 0, [0]]);
  app.close();
});

test('open after a second without an event, and are kept alive', async () => {
  const app = await serve(NEVER, { keepAliveMs: 1 });
  const socket = await openRaw(app.port);
  socket.write(head('GET /'));
  assert.match(await readUntil(socket, ': keep-alive'), /^HTTP\/1\.1 200 [\s\S]*text\/event-stream/);
  socket.destroy();
  app.close();
});

test('end with an error event when the caller loses access; ended streams are not checked', async () => {
  const streams = new EventStreams(systemClock, { callerCheckMs: 5 });
  const checks = { ended: 0, open: 0 };
  const done = await startMiddlewares(async (context) => {
    context.state.check = () => {
      checks.ended += 1;
      return undefined;
    };
    await streams.write(context, of({ name: 'result', data: '{}' }), KEEPS_RIGHTS);
  });
  await done.ask('GET', '/');
  const atEnd = checks.ended;
  const open = await startMiddlewares((context) => {
    context.state.check = () => {
      checks.open += 1;
      return checks.open < 5 ? undefined : invalidCredentials();
    };
    return streams.write(context, concat(of({ name: 'progress', data: '{}' }), NEVER), KEEPS_RIGHTS);
  });
  assert.match((await open.ask('GET', '/')).text, /event: error\ndata: .*INVALID_CREDENTIALS/);
  assert.is(checks.ended, atEnd);
  for (const app of [done, open]) app.close();
});

test('drop events that a slow client does not read, but never the result', async () => {
  const events$ = new Subject<StreamEvent>();
  const app = await serve(events$);
  const socket = await openRaw(app.port);
  socket.write(head('GET /', { Connection: 'close' }));
  await until(() => events$.observed);
  // Much more than the system buffers, all in one turn: the client has no chance to read meanwhile.
  const data = JSON.stringify('x'.repeat(500_000));
  for (let count = 0; count < 100; count += 1) events$.next({ name: 'log', data });
  events$.next({ name: 'result', data: '{}', isAnswer: true });
  events$.complete();
  const text = await readAll(socket);
  const logs = text.split('event: log').length - 1;
  assert.ok(logs > 0 && logs < 100, `${logs} events were kept`);
  assert.match(text.slice(-200), /event: result/);
  app.close();
});

test.run();
