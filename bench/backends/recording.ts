// An MCP server that records each call that it carries out, before it answers: one line of JSON at the end of a file.
// `node bench/backends/recording.ts --name=a --record=FILE` speaks over standard input and output; with `--ports=2` it listens on as
// many ports (of `--host`) instead and prints `listening <port> <port>`. `--deaf` ignores the end of its input and SIGTERM.
//   read {token}   is annotated as safe to repeat   write {token}   is not   Both take `ms`, the time until the answer.
//   ask {token}   over HTTP only: asks the client first (elicitation), and is not safe to repeat

import { randomUUID } from 'node:crypto';
import { appendFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { createInterface } from 'node:readline';
import { setTimeout as delay } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { type CarriedOut, nowMs } from '../cluster/history.ts';
import { portOf } from '../port.ts';

interface Message {
  readonly id?: number | string;
  readonly method?: string;
  readonly result?: { readonly action?: string };
  readonly params?: {
    readonly name?: string;
    readonly arguments?: { readonly token?: string; readonly ms?: number };
  };
}

const { values } = parseArgs({
  options: {
    name: { type: 'string', default: 'recording' },
    record: { type: 'string', default: '' },
    ports: { type: 'string' },
    host: { type: 'string', default: '127.0.0.1' },
    deaf: { type: 'boolean', default: false },
  },
});

const inputSchema = {
  type: 'object',
  properties: { token: { type: 'string' }, ms: { type: 'integer' } },
  required: ['token'],
};
/** Questions without an answer yet, by id. */
const asked = new Map<string, (answer: string) => void>();

const TOOLS = [
  { name: 'read', inputSchema, annotations: { readOnlyHint: true } },
  { name: 'write', inputSchema, annotations: { readOnlyHint: false, idempotentHint: false } },
  ...(values.ports === undefined ? [] : [{ name: 'ask', inputSchema }]),
];

if (values.ports === undefined) serveLines();
else await serveHttp(Number(values.ports));

function serveLines(): void {
  if (values.deaf) process.on('SIGTERM', () => undefined);
  const lines = createInterface({ input: process.stdin });
  lines.on('line', (line) => {
    void answerTo(JSON.parse(line)).then((answer) => {
      if (answer !== undefined) process.stdout.write(`${answer}\n`);
    });
  });
  lines.on('close', () => {
    if (values.deaf) setInterval(() => undefined, 60_000);
    else process.exit(0);
  });
}

async function serveHttp(count: number): Promise<void> {
  const ports = Array.from({ length: count }, () =>
    portOf(createServer({ keepAliveTimeout: 120_000 }, receive).listen(0, values.host)),
  );
  process.stdout.write(`listening ${(await Promise.all(ports)).join(' ')}\n`);
}

function receive(request: IncomingMessage, response: ServerResponse): void {
  const chunks: Buffer[] = [];
  request.on('data', (chunk: Buffer) => chunks.push(chunk));
  request.on('end', () => {
    if (request.method !== 'POST') {
      response.writeHead(request.method === 'DELETE' ? 200 : 405).end();
      return;
    }
    const message: Message = JSON.parse(Buffer.concat(chunks).toString());
    if (message.params?.name === 'ask') {
      askFirst(message, response);
      return;
    }
    if (message.method === undefined) asked.get(String(message.id))?.(String(message.result?.action));
    void answerTo(message).then((answer) => {
      if (answer === undefined) return response.writeHead(202).end();
      const session = message.method === 'initialize' ? { 'mcp-session-id': randomUUID() } : {};
      return response.writeHead(200, { 'content-type': 'application/json', ...session }).end(answer);
    });
  });
}

/** The question and the answer are events of one stream. */
function askFirst({ id, params }: Message, response: ServerResponse): void {
  const { token = '' } = params?.arguments ?? {};
  carryOut(token, 'ask');
  const send = (message: object): void =>
    void response.write(`data: ${JSON.stringify({ jsonrpc: '2.0', ...message })}\n\n`);
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  const questionId = randomUUID();
  asked.set(questionId, (action) => {
    asked.delete(questionId);
    send({
      id,
      result: {
        content: [
          { type: 'text', text: token },
          { type: 'text', text: action },
        ],
      },
    });
    response.end();
  });
  response.on('close', () => asked.delete(questionId));
  const requestedSchema = { type: 'object', properties: {} };
  send({ id: questionId, method: 'elicitation/create', params: { message: token, requestedSchema } });
}

function carryOut(token: string, tool: string): void {
  const record: CarriedOut = { token, tool, pid: process.pid, atMs: nowMs() };
  appendFileSync(values.record, `${JSON.stringify(record)}\n`);
}

/** The text of the answer; undefined for a message that is not a request. */
async function answerTo({ id, method, params }: Message): Promise<string | undefined> {
  if (id === undefined || method === undefined) return undefined;
  return JSON.stringify({ jsonrpc: '2.0', id, ...(await outcomeOf(method, params)) });
}

async function outcomeOf(method: string, params: Message['params']): Promise<object> {
  if (method === 'initialize') {
    const serverInfo = { name: values.name, version: '1.0.0' };
    return { result: { protocolVersion: '2025-11-25', capabilities: { tools: {} }, serverInfo } };
  }
  if (method === 'ping') return { result: {} };
  if (method === 'tools/list') return { result: { tools: TOOLS } };
  if (method !== 'tools/call') return { error: { code: -32601, message: 'Method not found' } };
  const { token = '', ms = 0 } = params?.arguments ?? {};
  carryOut(token, String(params?.name));
  if (ms > 0) await delay(ms);
  return { result: { content: [{ type: 'text', text: token }] } };
}
