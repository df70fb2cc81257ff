// A modern MCP server over HTTP whose clients subscribe to the resource news://all: `node bench/backends/news.ts --ports=2` prints
// `listening <port> <port>`. All ports are one server.
//   read {token}   answers it   tell {token}   updates the part news://all/<token> of the resource, for all subscriptions

import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { parseArgs } from 'node:util';
import { NEWS } from '../cluster/heard-news.ts';
import { portOf } from '../port.ts';

interface Message {
  readonly id?: number | string;
  readonly method?: string;
  readonly params?: { readonly name?: string; readonly arguments?: { readonly token?: string } };
}

const { values } = parseArgs({
  options: {
    ports: { type: 'string', default: '1' },
    host: { type: 'string', default: '127.0.0.1' },
    name: { type: 'string', default: 'news' },
  },
});
/** With the id of their subscription. */
const streams = new Map<ServerResponse, string>();
const inputSchema = { type: 'object', properties: { token: { type: 'string' } }, required: ['token'] };
const cached = { ttlMs: 0, cacheScope: 'private' };

const ports = Array.from({ length: Number(values.ports) }, () =>
  portOf(createServer({ keepAliveTimeout: 120_000 }, receive).listen(0, values.host)),
);
process.stdout.write(`listening ${(await Promise.all(ports)).join(' ')}\n`);

function receive(request: IncomingMessage, response: ServerResponse): void {
  const chunks: Buffer[] = [];
  request.on('data', (chunk: Buffer) => chunks.push(chunk));
  request.on('end', () => {
    if (request.method !== 'POST') return response.writeHead(405).end();
    const message: Message = JSON.parse(Buffer.concat(chunks).toString());
    const { id, method } = message;
    if (id === undefined) return response.writeHead(202).end();
    if (method === 'subscriptions/listen') return listen(String(id), response);
    const text = JSON.stringify({ jsonrpc: '2.0', id, ...answerTo(message) });
    return response.writeHead(200, { 'content-type': 'application/json' }).end(text);
  });
}

function listen(id: string, response: ServerResponse): void {
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  streams.set(response, id);
  response.on('close', () => streams.delete(response));
  send(response, 'notifications/subscriptions/acknowledged', {
    notifications: { resourceSubscriptions: [NEWS] },
  });
}

function send(stream: ServerResponse, method: string, params: object): void {
  const _meta = { 'io.modelcontextprotocol/subscriptionId': streams.get(stream) };
  stream.write(`data: ${JSON.stringify({ jsonrpc: '2.0', method, params: { ...params, _meta } })}\n\n`);
}

function answerTo({ method, params }: Message): object {
  if (method === 'server/discover') {
    const capabilities = { tools: {}, resources: { subscribe: true } };
    const serverInfo = { name: values.name, version: '1.0.0' };
    return { result: { ...cached, supportedVersions: ['2026-07-28'], capabilities, serverInfo } };
  }
  if (method === 'tools/list')
    return {
      result: { ...cached, tools: [{ name: 'read', inputSchema, annotations: { readOnlyHint: true } }] },
    };
  if (method === 'resources/list') return { result: { ...cached, resources: [{ uri: NEWS, name: 'news' }] } };
  if (method !== 'tools/call') return { error: { code: -32601, message: 'Method not found' } };
  const token = params?.arguments?.token ?? '';
  if (params?.name === 'tell')
    for (const stream of streams.keys())
      send(stream, 'notifications/resources/updated', { uri: `${NEWS}/${token}` });
  return { result: { resultType: 'complete', content: [{ type: 'text', text: token }] } };
}
