// What backends of the modern era get and say: mirrored parameters, and subscriptions whose answer lasts.

import type { ServerResponse } from 'node:http';
import * as assert from 'uvu/assert';
import type { ExchangeEvent } from '../../../src/domain/exchange.ts';
import type { JsonObject } from '../../../src/domain/json.ts';
import { http } from '../../../src/transports/http/http.ts';
import { callTool, see, until } from '../../conformance/transport.ts';
import { suite } from '../../helpers/suite.ts';
import { answerJson, messageOf, withRawServer } from '../raw-server.ts';
import { httpDefinition, openOptions, withBackend } from './open-http.ts';

const test = suite('http, modern era');

const headers = {
  'mcp-param-region': 'eu',
  'Mcp-Param-Name': '=?base64?w6k=?=',
  authorization: 'Bearer of-the-client',
  'mcp-method': 'tools/list',
  cookie: 'a=b',
};

test('gets the mirrored parameters of the caller, and nothing else of his', async () => {
  await withBackend({ era: 'modern' }, async ({ transport, server }) => {
    const { end } = await see(transport.exchange({ ...callTool('echo', { text: 'x' }), headers }));
    assert.is(end, 'completed');
    const got = server.requests.at(-1)?.headers;
    assert.equal([got?.['mcp-param-region'], got?.['mcp-param-name']], ['eu', '=?base64?w6k=?=']);
    assert.equal(
      [got?.authorization, got?.cookie, got?.['mcp-method']],
      [undefined, undefined, 'tools/call'],
    );
  });
  for (const era of ['legacy', 'bare'] as const) {
    await withBackend({ era }, async ({ transport, server }) => {
      await see(transport.exchange({ ...callTool('echo', { text: 'x' }), headers }));
      assert.is(server.requests.at(-1)?.headers['mcp-param-region'], undefined);
    });
  }
});

/** A modern server that leaves subscriptions open. */
async function listening(
  body: (backend: {
    transport: Awaited<ReturnType<typeof http.open>>;
    streams: ServerResponse[];
    sent: JsonObject[];
  }) => Promise<void>,
): Promise<void> {
  const streams: ServerResponse[] = [];
  const sent: JsonObject[] = [];
  await withRawServer(
    async (request, response) => {
      const message = await messageOf(request);
      const { id, method } = message;
      if (method !== 'subscriptions/listen') {
        const result = {
          supportedVersions: ['2026-07-28'],
          capabilities: { tools: {} },
          resultType: 'complete',
        };
        return answerJson(response, 200, { jsonrpc: '2.0', id, result });
      }
      sent.push(message);
      streams.push(response.writeHead(200, { 'content-type': 'text/event-stream' }));
      response.flushHeaders();
    },
    async ({ url }) => {
      const transport = await http.open(httpDefinition(url), openOptions());
      try {
        await body({ transport, streams, sent });
      } finally {
        await transport.close();
      }
    },
  );
}

const listen = { method: 'subscriptions/listen', params: { notifications: { toolsListChanged: true } } };

test('all that comes on the stream of a subscription is its own, as it came', async () => {
  await listening(async ({ transport, streams, sent }) => {
    const events: ExchangeEvent[] = [];
    const elsewhere: unknown[] = [];
    transport.messages$.subscribe((message) => elsewhere.push(message));
    let ended = false;
    transport
      .exchange(listen)
      .subscribe({ next: (event) => events.push(event), complete: () => (ended = true) });
    await until(() => streams.length === 1, 'it listens');
    const id = sent[0]?.id;
    const params = { _meta: { 'io.modelcontextprotocol/subscriptionId': String(id) }, uri: 'test://one' };
    const methods = [
      'notifications/subscriptions/acknowledged',
      'notifications/tools/list_changed',
      'notifications/resources/updated',
    ];
    for (const method of methods) {
      streams[0]?.write(`: alive\n\ndata: ${JSON.stringify({ jsonrpc: '2.0', method, params })}\n\n`);
    }
    await until(() => events.length === 3, 'they arrived');
    assert.equal(
      events,
      methods.map((method) => ({ kind: 'notification', method, params })),
    );
    assert.equal([elsewhere, ended], [[], false]);
    streams[0]?.end(`data: ${JSON.stringify({ jsonrpc: '2.0', id, result: {} })}\n\n`);
    await until(() => ended, 'it is over');
  });
});

test('a subscription is cancelled by closing its stream', async () => {
  await listening(async ({ transport, streams }) => {
    const subscriptions = Array.from({ length: 20 }, () => transport.exchange(listen).subscribe());
    await until(() => streams.length === 20, 'all listen');
    for (const subscription of subscriptions) subscription.unsubscribe();
    await until(() => streams.every(({ destroyed }) => destroyed), 'the streams are closed');
  });
});

test.run();
