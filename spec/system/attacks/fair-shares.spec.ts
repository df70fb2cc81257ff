// One API key whose slow calls hold every place of an instance, over a real gateway: the calls of other keys succeed all the
// same, and so do health checks. Figures are printed. Source: ADR 41.

import * as assert from 'uvu/assert';
import { type HttpFixture, startHttpServer } from '../../fixtures/http-server.ts';
import { type Caller, caller, newKey, tokenOf } from '../../helpers/caller.ts';
import { eventually } from '../../helpers/gateway-client.ts';
import { AS_IT_COMES, Program } from '../../helpers/program.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('fair shares of a template', { timeoutMs: 240_000 });
const PASSWORD = 'correct horse battery';
/** No machine is so slow that what waits for nothing takes so long, in ms. */
const GENEROUS_MS = 4_000;

interface Harness {
  readonly program: Program;
  readonly backend: HttpFixture;
  readonly url: string;
  readonly admin: Caller;
  close(): Promise<void>;
}

test('calls of another key succeed quickly while one key holds every place, and health checks do', async () => {
  const harness = await start();
  const greedy = new AbortController();
  try {
    const { admin, url } = harness;
    const [mine, other, third] = await Promise.all(
      ['mine', 'other', 'third'].map((name) => newKey(admin, name)),
    );
    assert.ok(mine && other && third);
    for (let call = 0; call < 600; call += 1) void slowCall(url, mine.headers, greedy.signal);
    await inFlight(admin, 256);
    const figures: Record<string, string> = {};
    for (const [name, { headers }] of Object.entries({ other, third })) {
      const calls = caller(url, headers);
      const echo = () => calls('POST /mcp/t/tools/call', { name: 'echo', arguments: { text: 'hello' } });
      const took: number[] = [];
      for (let call = 0; call < 50; call += 1) took.push(await timed(echo));
      took.push(...(await Promise.all(Array.from({ length: 64 }, () => timed(echo)))));
      figures[name] = summary(took);
    }
    for (const path of ['/livez', '/readyz', '/health']) {
      const took: number[] = [];
      for (let time = 0; time < 20; time += 1) took.push(await timed(() => caller(url)(`GET ${path}`)));
      figures[path] = summary(took);
    }
    await inFlight(admin, 256);
    process.stdout.write(`${JSON.stringify(figures)}\n`);
  } finally {
    greedy.abort();
    await harness.close();
  }
});

test('calls of a session whose client is gone for 60 s give their places to calls that wait', async () => {
  const harness = await start();
  const gone = new AbortController();
  try {
    const { admin, url, backend } = harness;
    const mine = await newKey(admin, 'mine');
    const session = { ...mine.headers, ...(await openSession(url, mine.headers)) };
    const streams = await Promise.all(
      Array.from({ length: 256 }, (_, id) => {
        const params = {
          name: 'progress',
          arguments: { steps: 600, ms: 1_000 },
          _meta: { progressToken: id },
        };
        return post(url, session, { jsonrpc: '2.0', id, method: 'tools/call', params }, gone.signal);
      }),
    );
    const first = await eventIdOf(streams[0]);
    await inFlight(admin, 256);
    gone.abort();
    const calls = caller(url, mine.headers);
    const echo = () => calls('POST /mcp/t/tools/call', { name: 'echo', arguments: { text: 'hello' } });
    assert.is((await echo()).status, 429, 'the places are those of its own key');
    const answer = await eventually(echo, ({ status }) => status === 200, 120_000);
    assert.is(answer.status, 200);
    await eventually(
      async () => backend.state.cancelled.length,
      (cancelled) => cancelled > 0,
    );
    assert.ok(backend.state.cancelled.length < 100, 'calls whose places nobody waits for go on');
    await timed(echo);
    const resumed = await fetch(`${url}/mcp/t`, {
      headers: { ...session, Accept: 'text/event-stream', 'Last-Event-ID': first },
      signal: AbortSignal.timeout(30_000),
    });
    assert.match(await resumed.text(), /The call was cancelled: its client was away for over 60 s/);
  } finally {
    gone.abort();
    await harness.close();
  }
});

test.run();

/** A gateway with accounts and one HTTP instance of template `t`. */
async function start(): Promise<Harness> {
  const backend = await startHttpServer({ answers: 'sse' });
  const env = { ...AS_IT_COMES, GATEWAY_ADMIN_PASSWORD: PASSWORD };
  const program = new Program(['gateway', 'start', '--port', '0'], { env });
  const url = await program.url();
  const credentials = await eventually(
    () => tokenOf(url, 'admin', PASSWORD).catch(() => undefined),
    (token) => token !== undefined,
  );
  assert.ok(credentials);
  const admin = caller(url, credentials);
  const instance = { id: 'one', endpoint: backend.url };
  const registered = await admin('POST /gateway/register?wait=30', { template_name: 't', instance });
  assert.is(registered.status, 201, JSON.stringify(registered.body));
  const close = async () => {
    await program.remove();
    await backend.close();
  };
  return { program, backend, url, admin, close };
}

/** Reports progress for ten minutes. Its caller takes no notice. */
async function slowCall(url: string, headers: Record<string, string>, signal: AbortSignal): Promise<void> {
  try {
    const response = await fetch(`${url}/mcp/t/tools/call`, {
      method: 'POST',
      headers: { ...headers, 'Content-Type': 'application/json', Accept: 'text/event-stream' },
      body: JSON.stringify({ name: 'progress', arguments: { steps: 600, ms: 1_000 } }),
      signal,
    });
    await response.text();
  } catch {
    // It is cut at the end of the test, or refused meanwhile.
  }
}

/** Waits until at least so many calls are at the instance. */
async function inFlight(admin: Caller, calls: number): Promise<void> {
  const count = async () => {
    const { body } = await admin('GET /mcp/t/health');
    return Number(Object(body).instances?.one?.in_flight);
  };
  const reached = await eventually(count, (now) => now >= calls);
  assert.ok(reached >= calls, `${reached} are in flight`);
}

/** How long a request took; fails when it was not answered with 200, or took too long. */
async function timed(ask: () => ReturnType<Caller>): Promise<number> {
  const { status, body, tookMs } = await ask();
  assert.is(status, 200, JSON.stringify(body));
  assert.ok(tookMs < GENEROUS_MS, `it took ${tookMs} ms`);
  return tookMs;
}

function summary(took: readonly number[]): string {
  const sorted = took.toSorted((one, another) => one - another);
  const at = (part: number) => Math.round(sorted[Math.floor(part * (sorted.length - 1))] ?? 0);
  return `p50 ${at(0.5)} ms, p95 ${at(0.95)} ms, most ${at(1)} ms of ${took.length}`;
}

function post(
  url: string,
  headers: Record<string, string>,
  message: object,
  signal?: AbortSignal,
): Promise<Response> {
  return fetch(`${url}/mcp/t`, {
    method: 'POST',
    headers: {
      ...headers,
      'Content-Type': 'application/json',
      Accept: 'application/json, text/event-stream',
    },
    body: JSON.stringify(message),
    signal: signal ?? AbortSignal.timeout(30_000),
  });
}

async function openSession(url: string, headers: Record<string, string>): Promise<Record<string, string>> {
  const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 's', version: '1' } };
  const opened = await post(url, headers, { jsonrpc: '2.0', id: 'i', method: 'initialize', params });
  await opened.text();
  const id = opened.headers.get('mcp-session-id');
  assert.is(opened.status, 200);
  return { 'Mcp-Session-Id': id ?? '', 'MCP-Protocol-Version': '2025-11-25' };
}

/** The first id on an event stream. */
async function eventIdOf(response: Response | undefined): Promise<string> {
  let text = '';
  const decoder = new TextDecoder();
  for await (const chunk of response?.body ?? []) {
    text += decoder.decode(chunk, { stream: true });
    const [, id] = /^id: ?(\S+)$/m.exec(text) ?? [];
    if (id !== undefined) return id;
  }
  throw new Error(`there was no id in ${text}`);
}
