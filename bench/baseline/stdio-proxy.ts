// The baseline of the paths over stdio: the least work of a Node program between HTTP clients and one stdio process: an
// id counter, one write per tick, splitting at newlines. The body of `…/tools/call` becomes the params of a call, and the
// result of the answer is cut out as bytes; in any other request and its answer only the id is replaced. It trusts both
// sides completely: ids first in requests, last in answers, no notifications of the backend. `node
// bench/baseline/stdio-proxy.ts --era=legacy` prints `listening <port>`.

import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { fileURLToPath } from 'node:url';
import { portOf } from '../port.ts';

const backendPath = fileURLToPath(new URL('../backends/stdio.ts', import.meta.url));
const child = spawn(process.execPath, [backendPath, ...process.argv.slice(2)], {
  stdio: ['pipe', 'pipe', 'inherit'],
});
/** The answers that are awaited; `clientId` is the text of the id of a JSON-RPC request. */
const waiting = new Map<number, { readonly response: ServerResponse; readonly clientId?: string }>();
const requestHead = '{"jsonrpc":"2.0","id":';
const headLength = '{"result":'.length;
const tail = ',"jsonrpc":"2.0","id":';
const newline = 0x0a;
let nextId = 1;
let unwritten = '';
let rest: Buffer | undefined;

function call(params: string, response: ServerResponse): void {
  write(`,"method":"tools/call","params":${params}}\n`, { response });
}

function pass(message: string, response: ServerResponse): void {
  if (!message.startsWith(requestHead)) {
    response.writeHead(202).end(); // a notification
    return;
  }
  const idEnd = message.indexOf(',', requestHead.length);
  if (message.includes('"method":"initialize"')) response.setHeader('mcp-session-id', randomUUID());
  write(`${message.slice(idEnd)}\n`, { response, clientId: message.slice(requestHead.length, idEnd) });
}

function write(rest: string, caller: { response: ServerResponse; clientId?: string }): void {
  const id = nextId;
  nextId += 1;
  waiting.set(id, caller);
  if (unwritten === '') setImmediate(flush);
  unwritten += requestHead + id + rest;
}

function flush(): void {
  child.stdin.write(unwritten);
  unwritten = '';
}

function answer(line: Buffer): void {
  const tailStart = line.lastIndexOf(tail);
  const id = Number(line.toString('latin1', tailStart + tail.length, line.length - 1));
  const { response, clientId } = waiting.get(id) ?? {};
  waiting.delete(id);
  const end = tailStart + tail.length;
  const bytes =
    clientId === undefined
      ? line.subarray(headLength, tailStart)
      : Buffer.concat([line.subarray(0, end), Buffer.from(`${clientId}}`)]);
  response?.writeHead(200, { 'content-type': 'application/json', 'content-length': bytes.length });
  response?.end(bytes);
}

child.stdout.on('data', (chunk: Buffer) => {
  const bytes = rest === undefined ? chunk : Buffer.concat([rest, chunk]);
  let start = 0;
  for (let end = bytes.indexOf(newline); end !== -1; end = bytes.indexOf(newline, start)) {
    answer(bytes.subarray(start, end));
    start = end + 1;
  }
  rest = start === bytes.length ? undefined : bytes.subarray(start);
});
// The proxy is useless without its backend.
child.on('exit', () => process.exit(1));

const server = createServer({ keepAliveTimeout: 120_000 }, (request: IncomingMessage, response) => {
  let body = '';
  request.setEncoding('utf8');
  request.on('data', (chunk: string) => {
    body += chunk;
  });
  request.on('end', () => (request.url?.endsWith('/tools/call') ? call : pass)(body, response));
});
process.stdout.write(`listening ${await portOf(server.listen(0, '127.0.0.1'))}\n`);
