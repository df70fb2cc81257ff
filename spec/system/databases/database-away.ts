// A real gateway on a real database behind a connection that can be cut and silenced, and the steps of losing it. Used by
// database-away.spec.ts.

import { setTimeout as delay } from 'node:timers/promises';
import * as assert from 'uvu/assert';
import { startHttpServer } from '../../fixtures/http-server.ts';
import { stdioServerPath } from '../../fixtures/programs.ts';
import {
  type Answer,
  type Caller,
  caller,
  field,
  listed,
  newKey,
  repeatRequests,
  statusAndCode,
  toolText,
} from '../../helpers/clients/caller.ts';
import { untilStatus } from '../../helpers/eventually.ts';
import { type ServerLine, serverLine } from '../../helpers/network/server-line.ts';
import { PASSWORD, startGuarded } from '../../helpers/programs/mcp-program.ts';
import { canFindProcesses, NO_PROCESSES } from '../../helpers/programs/processes.ts';
import type { Program } from '../../helpers/programs/program.ts';
import { freshDatabase, type Service } from '../../helpers/services/services.ts';
import type { Suite } from '../../helpers/suite.ts';
import type { together } from '../../helpers/together.ts';

/** The answer to callers that cannot be served while the database is unavailable. */
export const away = [503, 'DATABASE_UNAVAILABLE'] as const;

/** The facts in the answer to a change that was not made. */
const undone = ['The database does not answer. Nothing was changed.', undefined, '5'] as const;

/** Longest time until /health shows it: the gateway waits 2 s for the database, and its answer is cached for 1 s. */
const toldWithinMs = 4_000;
/** Longest time of a call with cached credentials: below the 5 s that the database has for an answer. */
const callWithinMs = 4_500;
/** After a change all credentials are verified once more; that may be in progress when the database goes, and takes 5 s. */
const beingAskedAbout = 2;
/** Longest time of a refused change or query: the 11 s of docs/guides/databases.md, and 5 s to verify its caller again. */
const refusedWithinMs = 16_000;
/** Longest time of the recovery. */
const mendedWithinMs = 10_000;
const graceSeconds = 3;
/** Longest further time of a shutdown: last answers, last entries of the audit log, the connections. */
const lastWritingsMs = 8_000;

/** The parts that a test works with. */
export interface Harness {
  readonly gateway: Program;
  readonly line: ServerLine;
  readonly anybody: Caller;
  /** With a token that was verified. */
  readonly admin: Caller;
  /** With a key that was verified. */
  readonly key: Caller;
  /** With a valid key that was never used. */
  readonly newcomer: Caller;
  /** Registers a cleanup that runs after the test; the last one first. */
  readonly onEnd: (end: () => Promise<unknown>) => void;
}

/** Declares tests that each get a harness on this server, which is removed after the test; all tests begin together. */
export function onHarness(
  test: Suite,
  declare: ReturnType<typeof together>,
  service: Service,
): (name: string, body: (harness: Harness) => Promise<void>) => void {
  const why = canFindProcesses ? service.skip : NO_PROCESSES;
  const isPossible = canFindProcesses && service.url !== undefined;
  return (name, body) =>
    (isPossible ? declare : test.needs(false, why))(name, async () => {
      const ends: (() => Promise<unknown>)[] = [];
      try {
        await body(await open(service, (end) => ends.unshift(end)));
      } finally {
        for (const end of ends) await end();
      }
    });
}

/** All steps of one loss, which `trouble` begins: which requests are served and refused, and the recovery. */
export async function loseAndFind(harness: Harness, trouble: () => unknown): Promise<void> {
  const { gateway, line, anybody, admin, key, newcomer } = harness;
  const [child, ...more] = gateway.descendants();
  assert.ok(child);
  assert.equal(more, []);
  const before = { instances: await listed(admin), users: (await admin('GET /auth/users')).body };

  const call = { name: 'name' };
  const traffic = repeatRequests([key, admin].map((known) => () => known('POST /mcp/far/tools/call', call)));
  await trouble();
  await tellsThatItIsAway(harness);

  // The child dies while the database is unavailable.
  process.kill(child, 'SIGKILL');
  // The queue would exceed the time limit if each change waited for all those before it.
  const queue = Array.from({ length: 8 }, (_, index) => [
    () => admin('POST /gateway/register', far(`lost-${index}`, 'http://127.0.0.1:1')),
    () => admin('PATCH /gateway/instances/far/one', { weight: index + 2 }),
    () => admin('DELETE /gateway/deregister/far/one'),
  ]).flat();
  const others = [
    () => admin('POST /auth/users', { username: 'ada', email: 'ada@localhost', password: PASSWORD }),
    () => admin('POST /auth/api-keys', { name: 'lost', permissions: ['tools:call'] }),
    () => admin('GET /auth/api-keys'),
    () => admin('GET /gateway/audit'),
    () => anybody('POST /auth/login', { username: 'admin', password: PASSWORD }),
    () => newcomer('POST /mcp/far/tools/call', call),
  ];
  const refusals = await Promise.all(
    [...queue, ...others].map(async (ask, index) => {
      await delay(index * 50); // they arrive while others wait
      return ask();
    }),
  );
  assert.equal(refusals.map(statusAndCode), Array(refusals.length).fill(away));
  inTime('a refusal', refusals, refusedWithinMs);
  // No change reached the database.
  const facts = refusals.map((answer) => [
    field(answer, 'detail'),
    field(answer, 'delivered'),
    answer.headers.get('retry-after'),
  ]);
  assert.equal(facts, Array(refusals.length).fill(undone));

  const signs = await Promise.all([anybody('GET /livez'), anybody('GET /readyz')]);
  assert.equal(
    signs.map(({ status }) => status),
    [200, 200],
  );
  inTime('/livez or /readyz', signs, callWithinMs);
  const restarted = await untilStatus(200, () => key('POST /mcp/near/tools/call', { name: 'pid' }));
  assert.equal(gateway.descendants(), [Number(toolText(restarted))]);

  await line.mend();
  await tellsThatItIsBack(harness);
  // From here on the database stays available, even for work that waited for the old connections.
  const looks = repeatRequests([() => admin('GET /auth/users')]);
  const calls = (await traffic.stop()).toSorted((one, other) => other.tookMs - one.tookMs);
  assert.equal(new Set(calls.map(({ status }) => status)), new Set([200]));
  // Their number depends on the speed of the machine.
  assert.ok(calls.length >= 10, `only ${calls.length} calls`);
  inTime('a call of somebody who is asked about', calls.slice(0, beingAskedAbout), refusedWithinMs);
  inTime('a call', calls.slice(beingAskedAbout), callWithinMs);

  assert.equal(Object.keys(await listed(admin)), Object.keys(before.instances));
  assert.equal((await admin('GET /auth/users')).body, before.users);
  assert.is((await newcomer('POST /mcp/far/tools/call', call)).status, 200);
  const late = await startHttpServer({ name: 'late' });
  harness.onEnd(() => late.close());
  assert.is((await admin('POST /gateway/register?wait=10', far('late', late.url))).status, 201);
  const seen = await looks.stop();
  assert.equal(new Set(seen.map(({ status }) => status)), new Set([200]));
  const states = Object.entries(await listed(admin)).map(([name, { state }]) => `${name} is ${state}`);
  assert.equal(states, ['far/late is healthy', 'far/one is healthy', 'near/one is healthy']);
  assert.equal(gateway.descendants(), [Number(toolText(restarted))]);
}

/** Asserts that both health routes report the loss in time. */
export async function tellsThatItIsAway({ anybody }: Harness): Promise<void> {
  const health = await untilStatus(503, () => anybody('GET /health'), toldWithinMs);
  const { status, database, error_code, detail, request_id } = Object(health.body);
  assert.equal([status, database, error_code], ['unhealthy', 'disconnected', away[1]]);
  assert.equal([typeof detail, request_id], ['string', health.headers.get('x-request-id')]);
  const gateway = await anybody('GET /gateway/health');
  assert.equal(
    [gateway.status, field(gateway, 'status'), field(gateway, 'database')],
    [200, 'unhealthy', 'disconnected'],
  );
}

/** Asserts that /health reports the recovery in time, and that a query of the database succeeds. */
export async function tellsThatItIsBack({ anybody, admin }: Harness): Promise<void> {
  const health = await untilStatus(200, () => anybody('GET /health'), mendedWithinMs);
  assert.equal([field(health, 'status'), field(health, 'database')], ['healthy', 'connected']);
  assert.is((await admin('GET /auth/users')).status, 200);
}

/** Asserts that SIGTERM ends the gateway with exit code 0 in time, and that no process is left. */
export async function endsInTime({ gateway }: Harness): Promise<void> {
  gateway.signal('SIGTERM');
  const end = await gateway.end(graceSeconds * 1_000 + lastWritingsMs);
  assert.equal(end, { code: 0, signal: null }, gateway.err.slice(-1_000));
  assert.equal(await gateway.survivors(), []);
}

/** A registration of an instance with an endpoint. */
export function far(id: string, endpoint: string) {
  return { template_name: 'far', instance: { id, endpoint } };
}

/** A gateway with an admin, two keys and two instances, on a new database behind a connection that can be cut. */
async function open(service: Service, onEnd: Harness['onEnd']): Promise<Harness> {
  assert.ok(service.url);
  const database = await freshDatabase(service);
  onEnd(() => database.drop());
  const line = await serverLine(database.url);
  onEnd(() => line.close());
  const backend = await startHttpServer({ name: 'one' });
  onEnd(() => backend.close());
  const guarded = await startGuarded({
    env: {
      GATEWAY_DATABASE_URL: line.url,
      GATEWAY_SECRET_KEY: 'a secret of this journey, 32 bytes or more',
      GATEWAY_GRACE_SECONDS: String(graceSeconds),
    },
  });
  onEnd(guarded.remove);
  const { url, admin, program: gateway } = guarded;
  const anybody = caller(url);
  const key = caller(url, (await newKey(admin, 'known')).headers);
  const newcomer = caller(url, (await newKey(admin, 'newcomer')).headers);
  const near = { id: 'one', command: process.execPath, args: [stdioServerPath, '--name=one'] };
  for (const body of [far('one', backend.url), { template_name: 'near', instance: near }]) {
    const made = await admin('POST /gateway/register?wait=20', body);
    assert.equal([made.status, field(made, 'healthy')], [201, true]);
  }
  assert.is((await key('POST /mcp/far/tools/call', { name: 'name' })).status, 200);
  return { gateway, line, anybody, admin, key, newcomer, onEnd };
}

function inTime(what: string, answers: readonly Answer[], withinMs: number): void {
  const slowestMs = Math.max(...answers.map(({ tookMs }) => tookMs));
  assert.ok(slowestMs < withinMs, `${what} took ${slowestMs} ms`);
}
