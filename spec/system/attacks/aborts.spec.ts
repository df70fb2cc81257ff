// Clients that leave at any moment: in the middle of their body, while their call waits, in the middle of the answer; over
// every transport, counted by this process and by Redis. Afterwards nothing is held for them: the whole budget of bodies is
// there again, no call is in flight, and each template answers.

import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import * as assert from 'uvu/assert';
import { startHttpServer } from '../../fixtures/http-server.ts';
import { startSseServer } from '../../fixtures/sse-server.ts';
import { Program } from '../../helpers/program.ts';
import { redis } from '../../helpers/services.ts';
import { suite } from '../../helpers/suite.ts';
import { againWith, chosenSeed, Dice } from '../chaos/dice.ts';

const LASTS_MS = 8_000;
const CLIENTS = 24;
const LARGEST_TEXT = 900_000;
/** The least that can be set: all bodies may hold 8 MiB, those of one caller as much as the largest body. */
const MEMORY_BYTES = 64 * 1024 * 1024;
const LARGEST_BODY = 4 * 1024 * 1024;
const PASSWORD = 'correct horse';
const TEMPLATES = ['stdio', 'http', 'sse'] as const;
const stdioServer = fileURLToPath(new URL('../../fixtures/stdio-server.ts', import.meta.url));
const META = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientCapabilities': {},
};

const test = suite('clients that leave at any moment');
const { url: redisUrl, skip } = await redis();
const withRedis = test.needs(redisUrl !== undefined, skip);

test('counted by the process', () => abortEverywhere(undefined));
withRedis('counted by Redis', () => abortEverywhere(redisUrl));

async function abortEverywhere(redisUrl: string | undefined): Promise<void> {
  const http = await startHttpServer({ answers: 'sse' });
  const sse = await startSseServer();
  const env = {
    GATEWAY_AUTH_ENABLED: 'true',
    GATEWAY_ADMIN_PASSWORD: PASSWORD,
    GATEWAY_MEMORY_LIMIT_BYTES: String(MEMORY_BYTES),
    GATEWAY_API_KEY_LIMIT: '1000000',
    ...(redisUrl === undefined ? {} : { GATEWAY_REDIS_URL: redisUrl }),
  };
  const program = new Program(['gateway', 'start', '--port', '0'], { env });
  try {
    const gateway = new Gateway(await program.url());
    await gateway.login();
    const instances = {
      stdio: { command: process.execPath, args: [stdioServer] },
      http: { endpoint: http.url },
      sse: { endpoint: sse.url },
    };
    for (const template of TEMPLATES) await gateway.register(template, instances[template]);
    const keys = await Promise.all([gateway.key(), gateway.key()]);
    const seed = chosenSeed();
    const dice = new Dice(seed);
    const endsAtMs = performance.now() + LASTS_MS;
    const seen = new Map<string, number>();
    const client = async (key: string): Promise<void> => {
      while (performance.now() < endsAtMs) {
        const how = await leaveSomewhere(gateway, key, dice);
        seen.set(how, (seen.get(how) ?? 0) + 1);
      }
    };
    await Promise.all(Array.from({ length: CLIENTS }, (_, index) => client(keys[index % keys.length] ?? '')));
    process.stdout.write(`${againWith(seed)}: ${JSON.stringify(Object.fromEntries([...seen].sort()))}\n`);
    await assertNothingIsHeld(gateway, keys);
  } finally {
    await program.remove();
    await http.close();
    await sse.close();
  }
}

/** One call that is given up at a random byte or moment; resolves with where that was, or with the status that came first. */
async function leaveSomewhere(gateway: Gateway, key: string, dice: Dice): Promise<string> {
  const template = dice.pick(TEMPLATES);
  const size = dice.next() < 0.5 ? 10 : dice.below(LARGEST_TEXT);
  const tool =
    dice.next() < 0.5
      ? { name: 'echo', arguments: { text: 'x'.repeat(size) } }
      : { name: 'sleep', arguments: { ms: dice.below(400), text: 'x'.repeat(size) } };
  const isModern = dice.next() < 0.5;
  const body = JSON.stringify(
    isModern ? { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { ...tool, _meta: META } } : tool,
  );
  const modernHeaders = `MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: ${tool.name}\r\n`;
  const isChunked = dice.next() < 0.3;
  const head =
    `POST /mcp/${template}${isModern ? '' : '/tools/call'} HTTP/1.1\r\nHost: ${gateway.host}\r\nX-API-Key: ${key}\r\n` +
    `Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n${isModern ? modernHeaders : ''}` +
    `${isChunked ? 'Transfer-Encoding: chunked' : `Content-Length: ${body.length}`}\r\n\r\n`;
  const all = isChunked ? `${head}${chunks(body)}` : head + body;
  const moment = dice.next();
  const socket = gateway.connect();
  const answer = new Promise<string>((resolve) => socket.once('data', (data) => resolve(statusOf(data))));
  const closed = new Promise<string>((resolve) => socket.once('close', () => resolve('closed')));
  if (moment < 0.4) {
    socket.write(all.slice(0, dice.below(all.length)));
    await Promise.race([sleep(dice.next() * 30), closed]);
    leave(socket, dice);
    await closed;
    return 'in the body';
  }
  socket.write(all);
  const first = await Promise.race([
    moment < 0.7 ? sleep(dice.next() * 200, 'while it waits') : answer,
    closed,
  ]);
  if (moment >= 0.85) await Promise.race([sleep(dice.next() * 20), closed]);
  leave(socket, dice);
  await closed;
  return first;
}

function leave(socket: Socket, dice: Dice): void {
  if (dice.next() < 0.5) socket.resetAndDestroy();
  else socket.destroy();
}

function chunks(body: string): string {
  const half = Math.floor(body.length / 2);
  const chunk = (text: string): string => `${text.length.toString(16)}\r\n${text}\r\n`;
  return `${chunk(body.slice(0, half))}${chunk(body.slice(half))}0\r\n\r\n`;
}

function statusOf(data: Buffer): string {
  return /^HTTP\/1.1 (\d+)/.exec(data.toString('latin1', 0, 20))?.[1] ?? 'no status';
}

async function assertNothingIsHeld(gateway: Gateway, keys: readonly string[]): Promise<void> {
  const patienceEndsAtMs = performance.now() + 20_000;
  for (const template of TEMPLATES) {
    let inFlight: unknown[] = [];
    do {
      const { instances } = await gateway.get(`/mcp/${template}/health`);
      inFlight = Object.values(Object(instances)).map((instance) => Object(instance).in_flight);
      if (inFlight.every((count) => count === 0)) break;
      await sleep(100);
    } while (performance.now() < patienceEndsAtMs);
    assert.ok(inFlight.length > 0);
    assert.ok(
      inFlight.every((count) => count === 0),
      `${template}: ${inFlight} calls are still in flight`,
    );
  }
  // The largest body fits only when nothing of its caller is held; both together only when nothing at all is.
  for (const template of TEMPLATES) {
    const empty = JSON.stringify({ name: 'sleep', arguments: { ms: 1_000, text: '' } });
    const text = 'x'.repeat(LARGEST_BODY - empty.length);
    const body = { name: 'sleep', arguments: { ms: 1_000, text } };
    const statuses = await Promise.all(keys.map((key) => gateway.call(template, key, body)));
    assert.equal(
      statuses,
      keys.map(() => 200),
      template,
    );
  }
}

/** The gateway as its administrator and its callers see it. */
class Gateway {
  readonly url: string;
  readonly host: string;
  #token = '';

  constructor(url: string) {
    this.url = url;
    this.host = new URL(url).host;
  }

  async login(): Promise<void> {
    while ((await fetch(`${this.url}/readyz`)).status !== 200) await sleep(50);
    this.#token = String(
      (await this.#post('/auth/login', { username: 'admin', password: PASSWORD })).access_token,
    );
  }

  async register(template_name: string, instance: object): Promise<void> {
    await this.#post('/gateway/register?wait=30', {
      template_name,
      instance: { id: template_name, ...instance },
    });
  }

  async key(): Promise<string> {
    return String((await this.#post('/auth/api-keys', { name: 'spec', permissions: ['tools:call'] })).key);
  }

  async get(path: string): Promise<Readonly<Record<string, unknown>>> {
    const answer = await fetch(this.url + path, { headers: { authorization: `Bearer ${this.#token}` } });
    return Object(await answer.json());
  }

  async call(template: string, key: string, body: object): Promise<number> {
    const headers = { 'content-type': 'application/json', 'x-api-key': key };
    const text = JSON.stringify(body);
    const answer = await fetch(`${this.url}/mcp/${template}/tools/call`, {
      method: 'POST',
      headers,
      body: text,
    });
    await answer.arrayBuffer();
    return answer.status;
  }

  connect(): Socket {
    const { hostname, port } = new URL(this.url);
    return connect(Number(port), hostname).on('error', () => {});
  }

  async #post(path: string, body: object): Promise<Readonly<Record<string, unknown>>> {
    const headers = {
      'content-type': 'application/json',
      ...(this.#token === '' ? {} : { authorization: `Bearer ${this.#token}` }),
    };
    const answer = await fetch(this.url + path, { method: 'POST', headers, body: JSON.stringify(body) });
    assert.ok(answer.ok, `${path}: ${answer.status}`);
    return Object(await answer.json());
  }
}

test.run();
