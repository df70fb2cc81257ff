// The baseline of the paths over HTTP: the least work of a Node program between a client and three HTTP backends.
// node:http in, undici dispatch out, round robin; no parsing, no checks, no limits, hardly any errors. The body of
// `…/tools/call` becomes the params of a call; any other body, and the headers of MCP, are passed on as they are. `node
// bench/baseline/http-proxy.ts --backends=http://127.0.0.1:1/mcp,…` prints `listening <port>`.

import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { parseArgs } from 'node:util';
import { Pool } from 'undici';
import { portOf } from '../port.ts';

const { values } = parseArgs({ options: { backends: { type: 'string', default: '' } } });
const backends = values.backends.split(',').map((endpoint) => {
  const { origin, pathname } = new URL(endpoint);
  return { pool: new Pool(origin), pathname };
});
const requestHeaders = {
  'content-type': 'application/json',
  accept: 'application/json, text/event-stream',
};
const protocolHeaders = ['mcp-session-id', 'mcp-protocol-version', 'mcp-method', 'mcp-name'];
let turn = 0;

function forward(request: IncomingMessage, body: string, response: ServerResponse): void {
  const backend = backends[turn % backends.length];
  if (backend === undefined) throw new Error('--backends is empty');
  turn += 1;
  let status = 502;
  const answerHeaders: Record<string, string | number> = { 'content-type': 'application/json' };
  const chunks: Buffer[] = [];
  const isRest = request.url?.endsWith('/tools/call');
  backend.pool.dispatch(
    {
      path: backend.pathname,
      method: 'POST',
      headers: isRest ? requestHeaders : { ...requestHeaders, ...protocolHeadersOf(request) },
      body: isRest ? `{"jsonrpc":"2.0","id":${turn},"method":"tools/call","params":${body}}` : body,
    },
    {
      onRequestStart() {},
      onResponseStart(_, statusCode, headers) {
        status = statusCode;
        const session = headers['mcp-session-id'];
        if (typeof session === 'string') answerHeaders['mcp-session-id'] = session;
      },
      onResponseData(_, chunk) {
        chunks.push(chunk);
      },
      onResponseEnd() {
        const [first] = chunks;
        const answer = chunks.length === 1 && first !== undefined ? first : Buffer.concat(chunks);
        answerHeaders['content-length'] = answer.length;
        response.writeHead(status, answerHeaders).end(answer);
      },
      onResponseError(_, error) {
        response.writeHead(502).end(error.message);
      },
    },
  );
}

function protocolHeadersOf({ headers }: IncomingMessage): Record<string, string> {
  const found: Record<string, string> = {};
  for (const name of protocolHeaders) {
    const value = headers[name];
    if (typeof value === 'string') found[name] = value;
  }
  return found;
}

const server = createServer({ keepAliveTimeout: 120_000 }, (request: IncomingMessage, response) => {
  let body = '';
  request.setEncoding('utf8');
  request.on('data', (chunk: string) => {
    body += chunk;
  });
  request.on('end', () => forward(request, body, response));
});
process.stdout.write(`listening ${await portOf(server.listen(0, '127.0.0.1'))}\n`);
