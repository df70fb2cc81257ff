// One request, one promise: what it resolves with, and that it always does.

import * as assert from 'uvu/assert';
import { HttpConnection } from '../../../src/transports/http/http-connection.ts';
import { ask, type SentRequest } from '../../../src/transports/http/http-handshake.ts';
import { suite } from '../../helpers/suite.ts';
import { answerJson, withRawServer } from '../raw-server.ts';

const test = suite('http ask');

const request = { id: 1, method: 'initialize' };
const never = new AbortController().signal;

async function asking(url: string, signal: AbortSignal = never): Promise<SentRequest> {
  const connection = new HttpConnection({ endpoint: url, headers: {}, deniedNetworks: [] });
  try {
    return await ask((answer) => connection.post('{}', {}, answer), request, signal);
  } finally {
    await connection.destroy();
  }
}

test('resolves with the message that answers the id, and the session id beside it', async () => {
  const error = { code: -32601, message: 'no' };
  await withRawServer(
    (_, response) => answerJson(response, 200, { jsonrpc: '2.0', id: 1, error }, { 'mcp-session-id': 'abc' }),
    async ({ url }) => {
      const answer = { kind: 'error', id: 1, error };
      assert.equal(await asking(url), { kind: 'answered', answer, sessionId: 'abc' });
    },
  );
});

test('does not wait for the end of a stream that has answered', async () => {
  await withRawServer(
    (_, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write(
        'data: {"jsonrpc":"2.0","id":7,"result":{}}\n\ndata: {"jsonrpc":"2.0","id":1,"result":{}}\n\n',
      );
    },
    async ({ url }) => {
      const asked = await asking(url);
      assert.ok(asked.kind === 'answered');
      assert.is(asked.answer.id, 1);
    },
  );
});

test('resolves as broken when the request itself comes back', async () => {
  await withRawServer(
    (_, response) => answerJson(response, 200, { jsonrpc: '2.0', ...request }),
    async ({ url }) => {
      const asked = await asking(url);
      assert.ok(asked.kind === 'broken');
      assert.is(asked.failure.message, 'The backend is unavailable: it returns what it is sent.');
    },
  );
});

test('resolves with the ending when the answer is not in it', async () => {
  await withRawServer(
    (_, response) => void response.writeHead(405).end(),
    async ({ url }) => {
      assert.equal(await asking(url), {
        kind: 'refused',
        status: 405,
        error: undefined,
        sessionId: undefined,
      });
    },
  );
});

test('resolves as broken when the signal ends the wait, before or while it lasts', async () => {
  const arrived = Promise.withResolvers<void>();
  const gone = Promise.withResolvers<void>();
  await withRawServer(
    (_, response) => {
      response.on('close', gone.resolve);
      arrived.resolve();
    },
    async ({ url }) => {
      const early = await asking(url, AbortSignal.abort());
      assert.ok(early.kind === 'broken');
      assert.is(early.failure.delivered, 'no');
      const patience = new AbortController();
      const asked = asking(url, patience.signal);
      await arrived.promise;
      patience.abort();
      const late = await asked;
      assert.ok(late.kind === 'broken');
      assert.is(late.failure.delivered, 'unknown');
      await gone.promise;
    },
  );
});

test.run();
