// The baseline for case (c): the least work of a Node program between a client and three HTTP backends.
// node:http in, undici dispatch out, round robin; no parsing, no checks, no limits, hardly any errors. `node
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
const answerHeaders = { 'content-type': 'application/json' };
let turn = 0;

function forward(body: string, response: ServerResponse): void {
  const backend = backends[turn % backends.length];
  if (backend === undefined) throw new Error('--backends is empty');
  turn += 1;
  let status = 502;
  const chunks: Buffer[] = [];
  backend.pool.dispatch(
    {
      path: backend.pathname,
      method: 'POST',
      headers: requestHeaders,
      body: `{"jsonrpc":"2.0","id":${turn},"method":"tools/call","params":${body}}`,
    },
    {
      onRequestStart() {},
      onResponseStart(_, statusCode) {
        status = statusCode;
      },
      onResponseData(_, chunk) {
        chunks.push(chunk);
      },
      onResponseEnd() {
        const [first] = chunks;
        const answer = chunks.length === 1 && first !== undefined ? first : Buffer.concat(chunks);
        response.writeHead(status, { ...answerHeaders, 'content-length': answer.length }).end(answer);
      },
      onResponseError(_, error) {
        response.writeHead(502).end(error.message);
      },
    },
  );
}

const server = createServer({ keepAliveTimeout: 120_000 }, (request: IncomingMessage, response) => {
  let body = '';
  request.setEncoding('utf8');
  request.on('data', (chunk: string) => {
    body += chunk;
  });
  request.on('end', () => forward(body, response));
});
process.stdout.write(`listening ${await portOf(server.listen(0, '127.0.0.1'))}\n`);
