// The bridge between one client and an endpoint that fails. The endpoint is a small HTTP server; whole programs are in
// spec/system/clients/bridge.spec.ts.

import type { RequestListener } from 'node:http';
import * as assert from 'uvu/assert';
import { Bridge } from '../../../src/cli/bridge/bridge.ts';
import { GatewayLink } from '../../../src/cli/bridge/gateway-link.ts';
import { eventually } from '../../helpers/eventually.ts';
import { initialize } from '../../helpers/http-mcp.ts';
import { suite } from '../../helpers/suite.ts';
import { serverFor } from '../commands/against-gateway.ts';

const test = suite('the bridge');
const serve = serverFor(test);
const INITIALIZED = '{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}';
const CHANGED = '{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}';

async function open(listener: RequestListener) {
  const url = await serve(listener);
  const [lines, said]: [string[], string[]] = [[], []];
  const log = (text: string) => void said.push(text);
  const link = new GatewayLink(`${url}/mcp/x`, () => ({ headers: {}, refused: String }), log, 50);
  const bridge = new Bridge({ link, write: async (line) => void lines.push(line), log });
  return { bridge, lines, said };
}

test('opens the stream of the server again after the gateway was away or busy for too long', async () => {
  let streams = 0;
  const { bridge, lines, said } = await open((request, response) => {
    if (request.method === 'DELETE') response.end();
    else if (request.method === 'POST') {
      request.resume();
      response.writeHead(200, { 'mcp-session-id': 's', 'content-type': 'application/json' });
      response.end(streams === 0 && lines.length === 0 ? INITIALIZED : '');
    } else {
      streams += 1;
      if (streams < 3) request.socket.destroy();
      else if (streams === 3) response.writeHead(503).end();
      else response.writeHead(200, { 'content-type': 'text/event-stream' }).write(`data: ${CHANGED}\n\n`);
    }
  });
  try {
    bridge.receive(JSON.stringify(initialize()));
    bridge.receive('{"jsonrpc":"2.0","method":"notifications/initialized"}');
    assert.ok(await eventually(async () => lines.includes(CHANGED), Boolean), said.join('\n'));
    assert.match(said.join('\n'), 'cannot be reached');
  } finally {
    await bridge.close({ isImmediate: true });
  }
});

test('answers a request with an error, and passes nothing on, when the address is no gateway', async () => {
  const { bridge, lines } = await open((_, response) => {
    response.writeHead(200, { 'content-type': 'text/html' }).end('<html>\n<p>Welcome</p>');
  });
  bridge.receive(JSON.stringify(initialize()));
  await bridge.close();
  assert.is(lines.length, 1, lines.join('\n'));
  const { id, error } = JSON.parse(lines[0] ?? '');
  assert.equal([id, typeof error.message], [0, 'string']);
});

test('passes on the refusal of a session that is unknown as soon as it is open', async () => {
  let opened = 0;
  const { bridge, lines } = await open(async (request, response) => {
    const body = (await request.toArray()).join('');
    if (!body.includes('"initialize"')) {
      response.writeHead(body.includes('initialized') ? 202 : 404);
      return response.end('{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"unknown session"}}');
    }
    opened += 1;
    response.writeHead(200, { 'mcp-session-id': `s${opened}` });
    return response.end(INITIALIZED);
  });
  bridge.receive(JSON.stringify(initialize()));
  bridge.receive('{"jsonrpc":"2.0","method":"notifications/initialized"}');
  bridge.receive('{"jsonrpc":"2.0","id":1,"method":"tools/list"}');
  assert.ok(await eventually(async () => lines.length === 2, Boolean), lines.join('\n'));
  const { id, error } = JSON.parse(lines[1] ?? '');
  assert.equal([id, error.code, opened], [1, -32001, 2]);
  await bridge.close({ isImmediate: true });
});

test.run();
