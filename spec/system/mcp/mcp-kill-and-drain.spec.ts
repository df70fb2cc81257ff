// Two hundred sessions over four instances: one instance is killed under load, one is drained, another is drained with sessions
// that may not move, and then the gateway is restarted. Every session continues or gets 404, by `session_failover`; none hangs,
// and none reads the answer of another.

import { setTimeout as delay } from 'node:timers/promises';
import * as assert from 'uvu/assert';
import { everythingProgram } from '../../fixtures/everything-server.ts';
import { type Answer, field } from '../../helpers/clients/caller.ts';
import { eventually } from '../../helpers/eventually.ts';
import { folderOfEach } from '../../helpers/folder.ts';
import {
  change,
  type InstanceBody,
  type McpHarness,
  register,
  startHarness,
} from '../../helpers/programs/mcp-program.ts';
import { canFindProcesses, NO_PROCESSES, readProcessFile } from '../../helpers/programs/processes.ts';
import { suite } from '../../helpers/suite.ts';
import { type FixtureProcess, startFixture } from '../../official-suites/children.ts';
import {
  type CallingSession,
  type CallKind,
  type CallResult,
  keepCalling,
  openSessions,
  share,
  split,
  summary,
  tally,
} from './calling-sessions.ts';

const names = ['one', 'two', 'three', 'four'] as const;
const template = 'crowd';
const path = `/mcp/${template}`;
/** The time under load before and after an event. */
const beforeMs = 250;
const afterMs = 700;

interface Plan {
  readonly title: string;
  readonly transport: 'http' | 'stdio';
  readonly sessions: number;
  readonly kinds: readonly CallKind[];
  /** How the gateway ends before it is started again. */
  readonly signal: 'SIGTERM' | 'SIGKILL';
}

const PLANS: readonly Plan[] = [
  {
    title: '200 sessions over HTTP',
    transport: 'http',
    sessions: 200,
    kinds: ['reads', 'acts', 'reads', 'reads', 'acts'],
    signal: 'SIGTERM',
  },
  {
    title: '200 sessions on shared processes',
    transport: 'stdio',
    sessions: 200,
    kinds: ['reads', 'acts', 'reads', 'reads', 'acts'],
    signal: 'SIGKILL',
  },
  {
    title: '8 sessions with a process each',
    transport: 'stdio',
    sessions: 8,
    kinds: ['asks'],
    signal: 'SIGTERM',
  },
];

const test = suite('journey: kill, drain and restart: sessions continue or get 404', { timeoutMs: 90_000 });
const folder = folderOfEach(test);
const needsProcesses = test.needs(canFindProcesses, NO_PROCESSES);

for (const plan of PLANS) {
  needsProcesses(plan.title, async () => {
    const options = { folder: folder(), env: { GATEWAY_DATABASE_URL: 'sqlite:///gateway.db' } };
    const fixtures = plan.transport === 'http' ? await startFixtures() : [];
    let harness = await startHarness(options);
    try {
      const instances = names.map((id, index) => instanceOf(id, fixtures[index]));
      await register(harness.admin, template, instances, { strategy: 'round_robin' });
      const sessions = await openSessions(harness.wire, path, plan.kinds, plan.sessions);
      await callOnce(sessions);
      const fair = plan.sessions / names.length;
      assert.equal(share(sessions), { one: fair, two: fair, three: fair, four: fair });

      await killed(harness, sessions, fixtures[0]);
      await drained(harness, sessions, plan);
      harness = await startedAgain(harness, sessions, plan, () => startHarness(options));
    } finally {
      await harness.remove();
      for (const fixture of fixtures) await fixture.stop();
    }
  });
}

test.run();

/** `auto`: read-only sessions continue elsewhere; other sessions there get 404; sessions of other instances are not affected. */
async function killed(
  harness: McpHarness,
  sessions: readonly CallingSession[],
  fixture?: FixtureProcess,
): Promise<void> {
  await change(harness.admin, template, { session_failover: 'auto' });
  const pids = fixture === undefined ? pidsNamed(harness, 'one') : [fixture.pid];
  assert.ok(pids.length > 0);
  const { there, elsewhere } = split(sessions, 'one');
  await during(sessions, () => {
    for (const pid of pids) process.kill(pid, 'SIGKILL');
  });
  assert.equal(summary(elsewhere), { ok: elsewhere.length });
  const readers = there.filter(({ kind }) => kind === 'reads');
  const actors = there.filter(({ kind }) => kind !== 'reads');
  assert.equal(summary(readers), readers.length === 0 ? {} : { ok: readers.length });
  const fates = Object.keys(summary(actors));
  const found = fates.filter((fate) => !/^(ok, then )?(broken, then )?lost$/.test(fate));
  assert.equal(found, []);
  // One call at a time was in flight: it broke; the next one may be the first at the instance that finds nothing there.
  for (const { trouble } of sessions) {
    const refused = trouble.filter((error) => error.includes('connection refused'));
    assert.ok(trouble.length - refused.length <= 1 && refused.length <= 1, trouble.join('\n'));
  }
  await goOn(harness, sessions);
}

/** `always`: all sessions continue with the same id. `never`: all sessions there get 404. */
async function drained(
  harness: McpHarness,
  sessions: readonly CallingSession[],
  { transport }: Plan,
): Promise<void> {
  if (transport === 'stdio') await healthyAgain(harness, names.length);
  for (const [id, failover, outcome] of [
    ['two', 'always', 'ok'],
    ['three', 'never', 'lost'],
  ] as const) {
    await change(harness.admin, template, { session_failover: failover });
    const { there, elsewhere } = split(sessions, id);
    assert.ok(there.length > 0, `nobody is at ${id}`);
    await during(sessions, () => command(harness, id, 'drain'));
    assert.equal(summary(elsewhere), { ok: elsewhere.length });
    // Calls in flight succeed in both cases: draining waits for them.
    assert.equal(summary(there), outcome === 'ok' ? { ok: there.length } : { 'ok, then lost': there.length });
    await goOn(harness, sessions);
    assert.is(share(sessions)[id], undefined, 'nobody is left there');
    await command(harness, id, 'resume');
  }
}

/** No session survives a restart of the gateway: every id gets 404, and every client can initialize again. */
async function startedAgain(
  harness: McpHarness,
  sessions: readonly CallingSession[],
  { signal }: Plan,
  start: () => Promise<McpHarness>,
): Promise<McpHarness> {
  for (const session of sessions) session.results = [];
  const quiet = keepCalling(sessions);
  await delay(beforeMs);
  harness.program.signal(signal);
  const end = await harness.program.end(20_000);
  await quiet();
  assert.equal(end, signal === 'SIGTERM' ? { code: 0, signal: null } : { code: null, signal });
  assert.equal(await harness.program.survivors(), []);
  const isWrong = (results: CallResult): boolean =>
    /^not its own|^progress of somebody|no answer within/.test(results);
  const found = sessions.flatMap(({ results }) => results.filter(isWrong));
  assert.equal(found, []);
  await harness.remove();

  const next = await start();
  try {
    await healthyAgain(next, names.length - 1);
    const old = await Promise.all(
      sessions.map(({ client }) => next.wire.exchange(path, { headers: client.headers, body: ping })),
    );
    assert.equal(tally(old.map(({ status, messages }) => `${status} ${messages[0]?.error?.code}`)), {
      '404 -32001': sessions.length,
    });
    for (const session of sessions) await session.open(next.wire);
    await callOnce(sessions);
    assert.is(new Set(sessions.map(({ client }) => client.sessionId)).size, sessions.length);
  } catch (error) {
    await next.remove();
    throw error;
  }
  return next;
}

const ping = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping' });

/** Runs `act` under load. */
async function during(sessions: readonly CallingSession[], act: () => unknown): Promise<void> {
  for (const session of sessions) session.results = [];
  const quiet = keepCalling(sessions);
  await delay(beforeMs);
  await act();
  await delay(afterMs);
  await quiet();
  // On a busy machine some sessions have made no call since.
  await Promise.all(sessions.map((session) => session.results.at(-1) === 'lost' || session.callNext()));
}

/** Talkers that lost their session open a new one; then all calls succeed, and the others keep their session id. */
async function goOn({ wire }: McpHarness, sessions: readonly CallingSession[]): Promise<void> {
  const ids = sessions.map(({ client }) => client.sessionId);
  const lost = sessions.filter(({ results }) => results.at(-1) === 'lost');
  await Promise.all(lost.map((session) => session.open(wire)));
  await callOnce(sessions);
  for (const [index, session] of sessions.entries()) {
    assert.is(session.client.sessionId !== ids[index], lost.includes(session));
  }
}

/** All sessions make a call at once; asserts that each succeeds. */
async function callOnce(sessions: readonly CallingSession[]): Promise<void> {
  assert.equal(tally(await Promise.all(sessions.map((session) => session.callNext()))), {
    ok: sessions.length,
  });
}

function instanceOf(id: string, fixture: FixtureProcess | undefined): InstanceBody {
  if (fixture !== undefined) return { id, endpoint: fixture.url };
  return { id, ...everythingProgram({ name: id, era: 'legacy' }) };
}

function startFixtures(): Promise<FixtureProcess[]> {
  return Promise.all(names.map((name) => startFixture({ name, era: 'legacy' })));
}

async function command({ admin }: McpHarness, id: string, verb: 'drain' | 'resume'): Promise<void> {
  assert.is((await admin(`POST /gateway/instances/${template}/${id}/${verb}`, {})).status, 200);
}

async function healthyAgain({ admin }: McpHarness, count: number): Promise<void> {
  const isWell = (answer: Answer) => Number(field(answer, 'healthy_instances')) >= count;
  const answer = await eventually(() => admin(`GET ${path}/health`), isWell, 20_000);
  assert.ok(isWell(answer), JSON.stringify(answer.body));
}

/** Every process of an instance, dedicated ones included. */
function pidsNamed({ program }: McpHarness, name: string): number[] {
  return program.descendants().filter((pid) => {
    const words = readProcessFile(pid, 'cmdline').split('\0');
    return words[words.indexOf('--name') + 1] === name;
  });
}
