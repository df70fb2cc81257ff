// The same requests to the endpoint and to the handler of the official SDK: both answer requests of the modern era with the
// same status and the same code.

import {
  classifyInboundRequest,
  createMcpHandler,
  fromJsonSchema,
  McpServer,
} from '@modelcontextprotocol/server';
import * as assert from 'uvu/assert';
import { suite } from '../helpers/suite.ts';
import { KEY, modernHarness, outcomeOf, VERSION } from './modern/modern-harness.ts';

const test = suite('endpoint like the SDK');

const TOOL = { name: 'add', description: 'adds' };
const envelope = { [KEY.version]: VERSION, [KEY.capabilities]: {} };
const add = { name: 'add', arguments: {} };

const request = (method: string, params?: object) => ({ jsonrpc: '2.0', id: 1, method, params });
const withMeta = (params: object, meta: object) => ({ ...params, _meta: meta });

const BODIES: readonly unknown[] = [
  request('tools/call', withMeta(add, envelope)),
  request('tools/call', add),
  request('tools/call', withMeta(add, {})),
  request('tools/call', withMeta(add, { [KEY.version]: VERSION })),
  request('tools/call', withMeta(add, { ...envelope, [KEY.capabilities]: 'all' })),
  request('tools/call', withMeta(add, { ...envelope, [KEY.version]: 7 })),
  request('tools/call', withMeta(add, { ...envelope, [KEY.version]: '2025-11-25' })),
  request('tools/call', withMeta(add, { ...envelope, [KEY.version]: '2099-01-01' })),
  request('tools/call', withMeta(add, { ...envelope, 'io.modelcontextprotocol/logLevel': 'loud' })),
  request('ping', withMeta({}, envelope)),
  request('initialize', withMeta({}, envelope)),
  request('initialize', {
    protocolVersion: '2025-11-25',
    capabilities: {},
    clientInfo: { name: 'c', version: '1' },
  }),
  { ...request('tools/call', withMeta(add, envelope)), id: null },
  { ...request('tools/call', withMeta(add, envelope)), jsonrpc: '1.0' },
  { jsonrpc: '2.0', method: 'notifications/x', params: withMeta({}, envelope) },
  { jsonrpc: '2.0', method: 'notifications/x' },
  [request('tools/call', withMeta(add, envelope))],
];

const HEADERS: readonly Record<string, string>[] = [undefined, VERSION, '2025-11-25', '2099-01-01'].flatMap(
  (version) =>
    [undefined, 'tools/call', 'ping', 'initialize', 'Tools/Call'].flatMap((method) =>
      [undefined, 'add', 'other', '=?base64?YWRk?=', '=?base64?YWR?='].map((name) => ({
        accept: 'application/json, text/event-stream',
        'content-type': 'application/json',
        ...(version === undefined ? {} : { 'mcp-protocol-version': version }),
        ...(method === undefined ? {} : { 'mcp-method': method }),
        ...(name === undefined ? {} : { 'mcp-name': name }),
      })),
    ),
);

function sdkHandler() {
  const handler = createMcpHandler(
    () => {
      const server = new McpServer({ name: 'sdk', version: '1' });
      const inputSchema = fromJsonSchema<object>({ type: 'object' });
      server.registerTool(TOOL.name, { ...TOOL, inputSchema }, () => ({ content: [] }));
      return server;
    },
    { legacy: 'reject' },
  );
  return async (body: unknown, headers: Record<string, string>): Promise<string> => {
    const sent = new Request('http://localhost/mcp', { method: 'POST', headers, body: JSON.stringify(body) });
    const response = await handler.fetch(sent);
    const text = await response.text();
    const code = text === '' ? undefined : JSON.parse(text).error?.code;
    return code === undefined ? `${response.status}` : `${response.status} ${code}`;
  };
}

/** True for requests that the SDK leaves to its legacy half. It refuses arrays, answers and handshakes with a modern header. */
function isLegacy(body: unknown, headers: Record<string, string>): boolean {
  const { kind } = classifyInboundRequest({
    httpMethod: 'POST',
    body,
    ...(headers['mcp-protocol-version'] === undefined
      ? {}
      : { protocolVersionHeader: headers['mcp-protocol-version'] }),
  });
  return kind === 'legacy';
}

test('answers requests of the modern era with the status and code of the SDK', async () => {
  const ask = sdkHandler();
  const differences: string[] = [];
  let compared = 0;
  for (const body of BODIES) {
    for (const headers of HEADERS) {
      if (isLegacy(body, headers)) continue;
      const { post, backends } = modernHarness();
      const reply = await post(body, headers);
      if (backends.exchanges.length > 0) backends.last.result({ content: [], resultType: 'complete' });
      const [ours, theirs] = [outcomeOf(reply), await ask(body, headers)];
      compared += 1;
      if (ours !== theirs) differences.push(`${ours}, SDK ${theirs}: ${JSON.stringify([body, headers])}`);
    }
  }
  assert.ok(compared > 1_000, `${compared} requests`);
  assert.equal(differences, []);
});

test.run();
