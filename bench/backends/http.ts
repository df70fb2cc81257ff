// A fast fake MCP server over Streamable HTTP with JSON answers: `node bench/backends/http.ts --ports=3 --era=legacy`.
// One process listens on several ports, one per instance, so that the machine does not switch between backends. Prints
// `listening <port> <port> …`. It starts a session at initialize and, as a fake, never checks its id.

import { randomUUID } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { parseArgs } from 'node:util';
import { portOf } from '../port.ts';
import { answerTo, type Era, type Incoming } from './answer.ts';

function serve(request: IncomingMessage, response: ServerResponse): void {
  if (request.method !== 'POST') {
    request.resume();
    response.writeHead(request.method === 'DELETE' ? 200 : 405).end();
    return;
  }
  let body = '';
  request.setEncoding('utf8');
  request.on('data', (chunk: string) => {
    body += chunk;
  });
  request.on('end', () => {
    const message: Incoming = JSON.parse(body);
    const text = answerTo(message, era);
    if (text === undefined) {
      response.writeHead(202).end();
      return;
    }
    const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) };
    const isFirst = message.method === 'initialize';
    response.writeHead(200, isFirst ? { ...headers, 'mcp-session-id': randomUUID() } : headers);
    response.end(text);
  });
}

const { values } = parseArgs({
  options: { ports: { type: 'string', default: '1' }, era: { type: 'string', default: 'legacy' } },
});
const era: Era = values.era === 'modern' ? 'modern' : 'legacy';
const ports = Array.from({ length: Number(values.ports) }, async () => {
  const server = createServer({ keepAliveTimeout: 120_000 }, serve);
  return portOf(server.listen(0, '127.0.0.1'));
});
process.stdout.write(`listening ${(await Promise.all(ports)).join(' ')}\n`);
