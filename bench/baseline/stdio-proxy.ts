// The baseline for case (d): the least work of a Node program between HTTP clients and one stdio process: an
// id counter, one write per tick, splitting at newlines, and the result of the answer cut out as bytes. It
// trusts the backend completely: ids last, no notifications. Prints `listening <port>`.

import { spawn } from 'node:child_process';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { fileURLToPath } from 'node:url';
import { portOf } from '../port.ts';

const backendPath = fileURLToPath(new URL('../backends/stdio.ts', import.meta.url));
const child = spawn(process.execPath, [backendPath], { stdio: ['pipe', 'pipe', 'inherit'] });
const waiting = new Map<number, ServerResponse>();
const headLength = '{"result":'.length;
const tail = ',"jsonrpc":"2.0","id":';
const newline = 0x0a;
let nextId = 1;
let unwritten = '';
let rest: Buffer | undefined;

function ask(body: string, response: ServerResponse): void {
  const id = nextId;
  nextId += 1;
  waiting.set(id, response);
  if (unwritten === '') setImmediate(flush);
  unwritten += `{"jsonrpc":"2.0","id":${id},"method":"tools/call","params":${body}}\n`;
}

function flush(): void {
  child.stdin.write(unwritten);
  unwritten = '';
}

function answer(line: Buffer): void {
  const tailStart = line.lastIndexOf(tail);
  const id = Number(line.toString('latin1', tailStart + tail.length, line.length - 1));
  const response = waiting.get(id);
  waiting.delete(id);
  const result = line.subarray(headLength, tailStart);
  response?.writeHead(200, { 'content-type': 'application/json', 'content-length': result.length });
  response?.end(result);
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
  request.on('end', () => ask(body, response));
});
process.stdout.write(`listening ${await portOf(server.listen(0, '127.0.0.1'))}\n`);
