// Clients that disconnect at any moment: within their body, while their call waits, within the answer; over every transport,
// with rate limits in the process and in Redis. Afterwards nothing is held for them: the whole budget of bodies is free
// again, no call is in flight, and each template answers.

import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import * as assert from 'uvu/assert';
import { startHttpServer } from '../../fixtures/http-server.ts';
import { stdioServerPath } from '../../fixtures/programs.ts';
import { startSseServer } from '../../fixtures/sse-server.ts';
import { caller, field, newKey } from '../../helpers/clients/caller.ts';
import { ModernClient, POST_HEADERS } from '../../helpers/clients/mcp-client.ts';
import { Wire } from '../../helpers/clients/mcp-wire.ts';
import { head } from '../../helpers/clients/raw-http.ts';
import { againWith, chosenSeed, Dice } from '../../helpers/dice.ts';
import { becomes } from '../../helpers/eventually.ts';
import { type McpHarness, register, startGuarded } from '../../helpers/programs/mcp-program.ts';
import { redis } from '../../helpers/services/services.ts';
import { suite } from '../../helpers/suite.ts';

const LASTS_MS = 5_000;
const CLIENTS = 24;
const MAX_TEXT_LENGTH = 900_000;
/** The minimum of the setting: all bodies may hold 8 MiB, those of one caller as much as the largest body. */
const MEMORY_BYTES = 64 * 1024 * 1024;
const MAX_BODY_BYTES = 4 * 1024 * 1024;
const TEMPLATES = ['stdio', 'http', 'sse'] as const;
type Headers = Readonly<Record<string, string>>;

const test = suite('clients that disconnect at any moment');
const { url: redisUrl, skip } = await redis();
const withRedis = test.needs(redisUrl !== undefined, skip);

test('leave no bytes and no calls held, with rate limits in the process', () => abortEverywhere(undefined));
withRedis('leave no bytes and no calls held, with rate limits in Redis', () => abortEverywhere(redisUrl));

async function abortEverywhere(redisUrl: string | undefined): Promise<void> {
  const http = await startHttpServer({ answers: 'sse' });
  const sse = await startSseServer();
  const env = {
    GATEWAY_MEMORY_LIMIT_BYTES: String(MEMORY_BYTES),
    GATEWAY_API_KEY_LIMIT: '1000000',
    ...(redisUrl === undefined ? {} : { GATEWAY_REDIS_URL: redisUrl }),
  };
  const harness = await startGuarded({ env });
  try {
    const instances = {
      stdio: { command: process.execPath, args: [stdioServerPath] },
      http: { endpoint: http.url },
      sse: { endpoint: sse.url },
    };
    for (const id of TEMPLATES) await register(harness.admin, id, [{ id, ...instances[id] }]);
    const keys = await Promise.all(['one', 'two'].map((name) => newKey(harness.admin, name)));
    const seed = chosenSeed();
    const dice = new Dice(seed);
    const endsAtMs = performance.now() + LASTS_MS;
    const seen = new Map<string, number>();
    const client = async (headers: Headers): Promise<void> => {
      while (performance.now() < endsAtMs) {
        const how = await leaveSomewhere(harness.url, headers, dice);
        seen.set(how, (seen.get(how) ?? 0) + 1);
      }
    };
    const clients = Array.from({ length: CLIENTS }, (_, index) => client(keys[index % 2]?.headers ?? {}));
    await Promise.all(clients);
    process.stdout.write(`${againWith(seed)}: ${JSON.stringify(Object.fromEntries([...seen].sort()))}\n`);
    await assertNothingIsHeld(
      harness,
      keys.map(({ headers }) => headers),
    );
  } finally {
    await harness.remove();
    await http.close();
    await sse.close();
  }
}

/** A call whose client disconnects at a random byte or moment; resolves with the place, or with the status that came first. */
async function leaveSomewhere(url: string, credentials: Headers, dice: Dice): Promise<string> {
  const template = dice.pick(TEMPLATES);
  const text = 'x'.repeat(dice.next() < 0.5 ? 10 : dice.below(MAX_TEXT_LENGTH));
  const tool =
    dice.next() < 0.5
      ? { name: 'echo', arguments: { text } }
      : { name: 'sleep', arguments: { ms: dice.below(400), text } };
  const isModern = dice.next() < 0.5;
  const modern = new ModernClient(new Wire(url), '').request('tools/call', tool);
  const body = isModern ? modern.body : JSON.stringify(tool);
  const isChunked = dice.next() < 0.3;
  const path = `POST /mcp/${template}${isModern ? '' : '/tools/call'}`;
  const length = isChunked ? { 'Transfer-Encoding': 'chunked' } : { 'Content-Length': String(body.length) };
  const request = head(path, { ...(isModern ? modern.headers : POST_HEADERS), ...credentials, ...length });
  const all = request + (isChunked ? chunks(body) : body);
  const moment = dice.next();
  const socket = connect(Number(new URL(url).port), '127.0.0.1').on('error', () => {});
  const answer = new Promise<string>((resolve) => {
    socket.once('data', (data) =>
      resolve(/^HTTP\/1.1 (\d+)/.exec(data.toString('latin1', 0, 20))?.[1] ?? 'none'),
    );
  });
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

async function assertNothingIsHeld({ admin, url }: McpHarness, keys: readonly Headers[]): Promise<void> {
  for (const template of TEMPLATES) {
    const look = async () =>
      Object(field(await admin(`GET /mcp/${template}/health`), 'instances'))[template].in_flight;
    await becomes(look, 0, 20_000);
  }
  // The largest body fits only if nothing of its caller is held; both together fit only if nothing at all is held.
  for (const template of TEMPLATES) {
    const empty = JSON.stringify({ name: 'sleep', arguments: { ms: 1_000, text: '' } });
    const text = 'x'.repeat(MAX_BODY_BYTES - empty.length);
    const body = { name: 'sleep', arguments: { ms: 1_000, text } };
    const calls = keys.map((headers) => caller(url, headers)(`POST /mcp/${template}/tools/call`, body));
    assert.equal(
      (await Promise.all(calls)).map(({ status }) => status),
      [200, 200],
      template,
    );
  }
}

test.run();
