// The stream for messages outside of requests: opened, reopened, and given up where it is not offered.

import type { RequestListener } from 'node:http';
import * as assert from 'uvu/assert';
import type { ServerMessage } from '../../../src/domain/mcp/client.ts';
import { systemClock } from '../../../src/domain/time/clock.ts';
import { gatewayExchange } from '../../../src/transports/gateway-requests.ts';
import { BackendEventStream } from '../../../src/transports/http/backend-event-stream.ts';
import { HttpEndpoint } from '../../../src/transports/http/http-endpoint.ts';
import { openSession } from '../../../src/transports/http/sessions/http-session.ts';
import { callTool, openOptions, see, textOf } from '../../conformance/transport.ts';
import { until } from '../../helpers/eventually.ts';
import { suite } from '../../helpers/suite.ts';
import { withRawServer } from '../raw-server.ts';
import { type Answers, result, serving, status } from '../scripted-server.ts';
import { withBackend } from './open-http.ts';

const test = suite('backend event stream');

const changed = 'notifications/tools/list_changed';

/** A legacy server whose GET the spec answers; the stream has short back-offs. */
async function listening(
  onGet: RequestListener,
  body: (backend: {
    stream: BackendEventStream;
    received: unknown[];
    /** After how many messages it said that some may have been missed. */
    resumedAt: number[];
    gets: () => number;
  }) => Promise<void>,
  sessionId: string | undefined = 'abc',
): Promise<void> {
  let gets = 0;
  const headers = sessionId === undefined ? {} : { 'mcp-session-id': sessionId };
  const answers: Answers = {
    GET: (response, { request }) => {
      gets += 1;
      onGet(request, response);
    },
    initialize: result({ protocolVersion: '2025-11-25' }, headers),
    otherwise: status(400),
  };
  await withRawServer(serving(answers), async ({ url }) => {
    const connection = new HttpEndpoint(
      { endpoint: url, headers: {} },
      { isDenied: () => false, clock: systemClock },
    );
    const session = await openSession(connection, openOptions());
    const received: unknown[] = [];
    const resumedAt: number[] = [];
    const waits = { firstMs: 5, longestMs: 20 };
    const ear = {
      session,
      receive: (message: unknown) => void received.push(message),
      sessionLost: () => void received.push('forgotten'),
      resumed: () => void resumedAt.push(received.length),
    };
    const get: ConstructorParameters<typeof BackendEventStream>[0] = (headers, answer) =>
      connection.get(headers, answer, { isLasting: true });
    const stream = new BackendEventStream(get, ear, systemClock, waits);
    stream.start();
    await body({ stream, received, resumedAt, gets: () => gets });
    stream.stop();
    connection.destroy();
  });
}

const event = `data: {"jsonrpc":"2.0","method":"${changed}"}\n\n`;

test('receives messages, with the session id and revision of the handshake in its request', async () => {
  let headers: Record<string, unknown> = {};
  await listening(
    (request, response) => {
      headers = request.headers;
      response.writeHead(200, { 'content-type': 'text/event-stream' }).write(event);
    },
    async ({ received }) => {
      await until(() => received.length === 1, 'the notification arrived');
      assert.equal(received, [{ kind: 'notification', method: changed, params: {} }]);
      assert.is(headers['mcp-session-id'], 'abc');
      assert.is(headers['mcp-protocol-version'], '2025-11-25');
      assert.is(headers.accept, 'text/event-stream');
    },
  );
});

test('reopens a stream that ended, broke, or was refused temporarily', async () => {
  const endings: RequestListener[] = [
    (_, response) => void response.writeHead(200, { 'content-type': 'text/event-stream' }).end(),
    (_, response) => response.socket?.resetAndDestroy(),
    (_, response) => void response.writeHead(409).end(),
    (_, response) => void response.writeHead(503).end(),
  ];
  for (const ending of endings) {
    await listening(ending, async ({ gets, received }) => {
      await until(() => gets() >= 4, 'it came back three times');
      assert.equal(received, [], 'the session is not lost');
    });
  }
});

test('says that messages may have been missed once it is open again, unless the server continues after an event', async () => {
  for (const [id, wanted] of [
    ['', [1, 2]],
    ['id: one\n', []],
  ] as const) {
    let asked = 0;
    await listening(
      (_, response) => {
        asked += 1;
        if (asked === 2) return void response.writeHead(503).end();
        response.writeHead(200, { 'content-type': 'text/event-stream' }).write(`${id}${event}`);
        if (asked < 4) response.end();
      },
      async ({ received, resumedAt }) => {
        await until(() => received.length === 3, 'it came back twice');
        assert.equal(resumedAt, wanted);
      },
    );
  }
});

test('gives up where the stream is not offered', async () => {
  const refusals: RequestListener[] = [
    ...[400, 401, 404, 405, 501].map(
      (status): RequestListener =>
        (_, response) =>
          void response.writeHead(status).end(),
    ),
    (_, response) => void response.writeHead(200, { 'content-type': 'text/html' }).end('<h1>Hello</h1>'),
  ];
  for (const refusal of refusals) {
    await listening(refusal, async ({ gets }) => {
      await until(() => gets() === 1, 'it asked');
      await new Promise((resolve) => setTimeout(resolve, 60));
      assert.is(gets(), 1);
    });
  }
});

test('takes a 404 for the loss of the session once the stream was open', async () => {
  let asked = 0;
  await listening(
    (_, response) => {
      asked += 1;
      if (asked === 1) response.writeHead(200, { 'content-type': 'text/event-stream' }).end(event);
      else response.writeHead(404).end('session not found');
    },
    async ({ received, gets }) => {
      await until(() => received.length === 2, 'the session is lost');
      assert.equal([received[1], gets()], ['forgotten', 2]);
    },
  );
});

test('opens no stream at servers without sessions', async () => {
  await listening(
    () => assert.unreachable(),
    async ({ gets }) => {
      await new Promise((resolve) => setTimeout(resolve, 20));
      assert.is(gets(), 0);
    },
    '',
  );
});

test('waits for the retry time of the server, even if it is longer than its own back-off, but not less', async () => {
  let last = 0;
  const gaps: number[] = [];
  await listening(
    (_, response) => {
      gaps.push(performance.now() - last);
      last = performance.now();
      response
        .writeHead(200, { 'content-type': 'text/event-stream' })
        .end(`retry: ${gaps.length > 1 ? 45 : 0}\n\n`);
    },
    ({ gets }) => until(() => gets() >= 4, 'it came back three times'),
  );
  for (const [index, gap] of gaps.slice(1).entries()) assert.ok(gap >= (index === 0 ? 4 : 42), `${gap}`);
});

test('stays closed while it is stopped, and then resumes from the last event id', async () => {
  const from: unknown[] = [];
  await listening(
    (request, response) => {
      from.push(request.headers['last-event-id']);
      response
        .writeHead(200, { 'content-type': 'text/event-stream' })
        .write(`id: e-${from.length}\n${event}`);
    },
    async ({ gets, stream, received }) => {
      await until(() => received.length === 1, 'it listens');
      stream.stop();
      stream.restart();
      await new Promise((resolve) => setTimeout(resolve, 40));
      assert.is(gets(), 1);
      stream.start();
      stream.start();
      await until(() => received.length === 2, 'it listens again');
      stream.restart();
      await until(() => received.length === 3, 'it listens in another session');
      assert.equal(from, [undefined, undefined, undefined]);
      stream.stop();
      stream.start();
      await until(() => received.length === 4, 'it listens where it was');
      assert.equal(from, [undefined, undefined, undefined, 'e-3']);
    },
  );
});

for (const refusal of [400, 404]) {
  test(`resumes from the last event id, until the server refuses that with ${refusal}; the session goes on`, async () => {
    const from: unknown[] = [];
    await listening(
      (request, response) => {
        from.push(request.headers['last-event-id']);
        if (from.length === 2) return void response.writeHead(refusal).end();
        response.writeHead(200, { 'content-type': 'text/event-stream' });
        response.end(
          from.length < 3 ? `id: one\n${event}id: two\ndata: \n\n: unfinished\nid: three\n` : event,
        );
      },
      async ({ received, resumedAt }) => {
        await until(() => received.length === 2, 'it came back');
        assert.is(resumedAt[0], 1);
        assert.is(received.includes('forgotten'), false);
        assert.equal(from.slice(0, 3), [undefined, 'two', undefined]);
      },
    );
  });
}

test('says that messages may have been missed after the session was replaced, also where no stream is offered', async () => {
  for (const offered of [true, false])
    await listening(
      (_, response) => {
        if (!offered) return void response.writeHead(405).end();
        response.writeHead(200, { 'content-type': 'text/event-stream' }).write(`id: one\n${event}`);
      },
      async ({ stream, resumedAt, gets }) => {
        await stream.untilListening;
        await until(() => gets() === 1, 'it listens');
        assert.equal(resumedAt, []);
        stream.restart();
        await until(() => resumedAt.length === 1, 'it says so');
        stream.stop();
        stream.start();
        await stream.untilListening;
        assert.is(resumedAt.length, 1, 'once');
      },
    );
});

test('messages$ emits notifications of the stream, also after the session was replaced', async () => {
  await withBackend({}, async ({ transport, server }) => {
    const messages: ServerMessage[] = [];
    transport.messages$.subscribe((message) => messages.push(message));
    const open = () => [...server.sessions.values()].some(({ stream }) => stream !== undefined);
    await until(open, 'it listens');
    server.notify(changed);
    await until(() => messages.length === 1, 'the notification arrived');
    server.forgetSessions();
    assert.is(
      textOf((await see(gatewayExchange(transport, callTool('echo', { text: 'x' })))).events[0]),
      'x',
    );
    await until(open, 'it listens again');
    server.notify('notifications/resources/list_changed');
    await until(() => messages.length === 2, 'the second notification arrived');
    const found = messages.map(({ method }) => method);
    assert.equal(found, [changed, 'notifications/resources/list_changed']);
  });
});

test('`untilListening` resolves when the stream is open, refused or dropped, and after 250 ms at the latest', async () => {
  let open = (): void => {};
  const onGet: RequestListener = (_request, response) => {
    open = () => response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders();
  };
  await listening(onGet, async ({ stream, gets }) => {
    const slow = stream.untilListening;
    assert.ok(slow);
    await slow;
    stream.stop();
    stream.start();
    const { untilListening } = stream;
    await until(() => gets() === 2, 'it is requested again');
    open();
    await untilListening;
    assert.is(stream.untilListening, undefined);
    stream.stop();
    stream.start();
    const dropped = stream.untilListening;
    stream.stop();
    await dropped;
  });
  const refuse: RequestListener = (_request, response) => void response.writeHead(405).end();
  await listening(refuse, async ({ stream }) => await stream.untilListening);
});

test.run();
