// `npm run chaos`: one of four instances fails, in each of five ways, twice: for 12 s and for 40 s. A gateway with default settings
// runs in front of them; callers send 10 calls a second to its HTTP API, reads and writes mixed, and as many reads in legacy MCP
// sessions. Then the section `stalls` (stalls.ts). Prints the outcomes; exits 1 when a bar is missed.
// docs/explanation/failing-instances.md explains the figures.

import { setTimeout as delay } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { FAULTS, type Fault, SickServer } from './backends/sick.ts';
import { type StartedGateway, startGateway } from './gateway.ts';
import { initializeBody, openSession } from './open-session.ts';
import { markdownTable } from './report.ts';
import { seeded } from './seeded.ts';
import { type StallRow, stallRows } from './stalls.ts';
import { answerHelp } from './usage.ts';

const STALLS = 'stalls';
const INSTANCES = 4;
const SESSIONS = 8;
const CALLS_PER_SECOND = 10;
const WARM_UP_MS = 3_000;
const SHORT_MS = 12_000;
const LONG_MS = 40_000;
/** The bar, plus a second until the next call. */
const REUSED_AFTER_SHORT_MS = 15_000;
const REUSED_AFTER_LONG_MS = 61_000;

interface Outcome {
  /** Time since the failure of the instance, in ms. */
  readonly sentMs: number;
  readonly isSafe: boolean;
  readonly isFailed: boolean;
  readonly tookMs: number;
}

/** The outcomes of one kind of caller, from one failure until the instance was used again. */
interface Row {
  readonly fault: Fault;
  readonly caller: 'HTTP API' | 'session';
  readonly sickSeconds: number;
  readonly calls: number;
  /** Percentage of the calls sent in that period: from 3 s on, in the first 12 s, later. */
  readonly failedAfter3s: number;
  readonly failedFirst12s: number;
  readonly failedLater: number;
  readonly safeFailed: number;
  readonly duplicates: number;
  readonly slowestSafeMs: number;
  /** Seconds from the end of the failure to the first answered call at the instance; null: never. */
  readonly usedAgainSeconds: number | null;
  readonly missed: readonly string[];
}

type Send = (tool: string, key: string) => Promise<boolean>;

interface Harness {
  readonly fault: Fault;
  readonly fleets: Readonly<Record<'rest' | 'sessions', { servers: SickServer[]; urls: string[] }>>;
  readonly gateway: StartedGateway;
}

/** The timeout of a call is shorter than the faults, so that also calls that hang to their end are measured. */
const SETTINGS = {
  GATEWAY_AUTH_ENABLED: 'false',
  GATEWAY_AUDIT_CALLS: 'false',
  GATEWAY_LOG_LEVEL: 'error',
  GATEWAY_CALL_TIMEOUT: '30',
};

async function openHarness(fault: Fault): Promise<Harness> {
  const fleets = { rest: await fleet(), sessions: await fleet() };
  const http = { rest: fleets.rest.urls, sessions: fleets.sessions.urls };
  return { fault, fleets, gateway: await startGateway({ http, stdio: {} }, SETTINGS) };
}

async function rowsOf({ fault, fleets, gateway }: Harness, seed: number): Promise<Row[]> {
  const random = seeded(seed * 31 + FAULTS.indexOf(fault));
  try {
    let sessions: readonly Readonly<Record<string, string>>[] = [];
    const openSessions = async () => {
      const url = `${gateway.origin}/mcp/sessions`;
      sessions = await Promise.all(Array.from({ length: SESSIONS }, () => openSession(url, initializeBody)));
    };
    const viaRest: Send = (name, key) =>
      sent(`${gateway.origin}/mcp/rest/tools/call`, { name, arguments: { key } }, {});
    let turn = 0;
    const viaSession: Send = (name, key) => {
      turn += 1;
      const params = { name, arguments: { key } };
      const body = { jsonrpc: '2.0', id: turn, method: 'tools/call', params };
      return sent(`${gateway.origin}/mcp/sessions`, body, sessions[turn % SESSIONS] ?? {});
    };
    const columns = await Promise.all([
      observe(fault, 'HTTP API', fleets.rest.servers, viaRest, random, 0.5, async () => {}),
      observe(fault, 'session', fleets.sessions.servers, viaSession, random, 1, openSessions),
    ]);
    return columns.flat();
  } finally {
    await gateway.stop();
    for (const server of [...fleets.rest.servers, ...fleets.sessions.servers]) server.stop();
  }
}

async function fleet(): Promise<{ servers: SickServer[]; urls: string[] }> {
  const servers = Array.from({ length: INSTANCES }, () => new SickServer());
  return { servers, urls: await Promise.all(servers.map((server) => server.start())) };
}

/** Observes both failures, one after the other. */
async function observe(
  fault: Fault,
  caller: Row['caller'],
  servers: readonly SickServer[],
  send: Send,
  random: () => number,
  safeShare: number,
  /** Runs before each failure: the session of the previous one has moved. */
  prepare: () => Promise<void>,
): Promise<Row[]> {
  const [gray] = servers;
  if (gray === undefined) throw new Error('there is no instance');
  const pending: Promise<void>[] = [];
  let outcomes: Outcome[] = [];
  let sickAtMs = Number.POSITIVE_INFINITY;
  let isOver = false;
  let count = 0;
  await prepare();
  const sending = (async () => {
    while (!isOver) {
      await delay((1_000 / CALLS_PER_SECOND) * (0.5 + random()));
      const isSafe = random() < safeShare;
      const startMs = performance.now();
      const into = outcomes;
      count += 1;
      const call = send(isSafe ? 'read' : 'write', `${isSafe ? 'r' : 'w'}${count}`).then((isAnswered) => {
        into.push({
          sentMs: startMs - sickAtMs,
          isSafe,
          isFailed: !isAnswered,
          tookMs: performance.now() - startMs,
        });
      });
      pending.push(call);
    }
  })();
  const rows: Row[] = [];
  await delay(WARM_UP_MS);
  for (const [sickMs, reuseMs] of [
    [SHORT_MS, REUSED_AFTER_SHORT_MS],
    [LONG_MS, REUSED_AFTER_LONG_MS],
  ] as const) {
    await prepare();
    outcomes = [];
    sickAtMs = performance.now();
    gray.fault = fault;
    await delay(sickMs);
    gray.fault = undefined;
    const wellAtMs = performance.now();
    const usedAgainMs = await firstUse(gray, wellAtMs, reuseMs);
    await delay(2_000);
    await Promise.all(pending.splice(0)); // calls that hang have a timeout
    rows.push(rowOf(fault, caller, sickMs, outcomes, duplicatesOf(servers), usedAgainMs, reuseMs));
  }
  isOver = true;
  await sending;
  await Promise.all(pending);
  return rows;
}

async function firstUse(server: SickServer, afterMs: number, withinMs: number): Promise<number | null> {
  while (performance.now() < afterMs + withinMs + 2_000) {
    const used = server.answeredAtMs.find((atMs) => atMs >= afterMs);
    if (used !== undefined) return used - afterMs;
    await delay(50);
  }
  return null;
}

function rowOf(
  fault: Fault,
  caller: Row['caller'],
  sickMs: number,
  outcomes: readonly Outcome[],
  duplicates: number,
  usedAgainMs: number | null,
  reuseMs: number,
): Row {
  const during = outcomes.filter(({ sentMs }) => sentMs >= 0);
  const failedIn = (fromMs: number, toMs: number) => {
    const those = during.filter(({ sentMs }) => sentMs >= fromMs && sentMs < toMs);
    return those.length === 0 ? 0 : (100 * those.filter(({ isFailed }) => isFailed).length) / those.length;
  };
  const safe = during.filter(({ isSafe }) => isSafe);
  const figures = {
    failedAfter3s: failedIn(3_000, Number.POSITIVE_INFINITY),
    failedFirst12s: failedIn(0, 12_000),
    failedLater: failedIn(12_000, Number.POSITIVE_INFINITY),
    safeFailed: safe.filter(({ isFailed }) => isFailed).length,
    duplicates,
    usedAgainSeconds: usedAgainMs === null ? null : usedAgainMs / 1_000,
  };
  const isHanging = fault.startsWith('hang');
  // A session whose client did more than read stays at its instance; these clients only read, and must see no failure.
  const isReused = caller === 'session' || (usedAgainMs !== null && usedAgainMs <= reuseMs);
  const missed = [
    ...(isHanging || figures.failedAfter3s <= 3 ? [] : ['over 3 % failed after 3 s']),
    ...(!isHanging || figures.failedFirst12s <= 8 ? [] : ['over 8 % failed in the first 12 s']),
    ...(!isHanging || figures.failedLater <= 1 ? [] : ['over 1 % failed later']),
    ...(figures.safeFailed === 0 ? [] : ['safe calls failed']),
    ...(duplicates === 0 ? [] : ['unsafe calls were carried out twice']),
    ...(isReused ? [] : [`not used again within ${reuseMs / 1_000} s`]),
  ];
  return {
    fault,
    caller,
    sickSeconds: sickMs / 1_000,
    calls: during.length,
    ...figures,
    slowestSafeMs: Math.max(0, ...safe.map(({ tookMs }) => tookMs)),
    missed,
  };
}

/** Writes that were carried out more than once, at any instance. */
function duplicatesOf(servers: readonly SickServer[]): number {
  const counts = new Map<string, number>();
  for (const { carriedOut } of servers) {
    for (const [key, times] of carriedOut) counts.set(key, (counts.get(key) ?? 0) + times);
  }
  return [...counts].filter(([key, times]) => key.startsWith('w') && times > 1).length;
}

/** True when the call was answered without an error. */
async function sent(url: string, body: object, headers: Readonly<Record<string, string>>): Promise<boolean> {
  try {
    const response = await fetch(url, {
      method: 'POST',
      headers: {
        'Content-Type': 'application/json',
        Accept:
          headers['Mcp-Session-Id'] === undefined
            ? 'application/json'
            : 'application/json, text/event-stream',
        ...headers,
      },
      body: JSON.stringify(body),
    });
    const text = await response.text();
    return response.ok && text.includes('"done"');
  } catch {
    return false; // the caller got no answer, whatever broke
  }
}

function tableOf(rows: readonly Row[]): string {
  const head = [
    ...['fault', 'caller', 'fault for', 'calls', 'failed: sent after 3 s', 'in the first 12 s', 'later'],
    ...['safe failed', 'duplicates', 'slowest safe', 'used again after', 'missed'],
  ];
  return markdownTable(
    head,
    rows.map((row) => [
      row.fault,
      row.caller,
      `${row.sickSeconds} s`,
      String(row.calls),
      ...[row.failedAfter3s, row.failedFirst12s, row.failedLater].map((percent) => `${percent.toFixed(1)} %`),
      String(row.safeFailed),
      String(row.duplicates),
      `${(row.slowestSafeMs / 1_000).toFixed(1)} s`,
      row.usedAgainSeconds === null ? '-' : `${row.usedAgainSeconds.toFixed(1)} s`,
      row.missed.length === 0 ? 'nothing' : row.missed.join('; '),
    ]),
  );
}

function stallTable(rows: readonly StallRow[]): string {
  return markdownTable(
    ['fleet', 'phase', 'took', 'longest turn', 'CPU in it', 'collections', 'slowest /livez', 'missed'],
    rows.map(({ fleet, phase, seconds, missed, ...row }) => [
      ...[fleet, phase, `${seconds.toFixed(1)} s`],
      ...[row.longestTurnMs, row.turnCpuMs, row.turnCollectionsMs, row.slowestLivezMs].map(
        (ms) => `${ms.toFixed(0)} ms`,
      ),
      missed.length === 0 ? 'nothing' : missed.join('; '),
    ]),
  );
}

for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1)); // ends the children, too
answerHelp(`npm run chaos -- [options]
  --only A   one of ${[...FAULTS, STALLS].join(', ')}
  --seed N   other times and another mix (default 1)
  --json     figures only
Exits with 1 when a bar is missed.
`);
const { values } = parseArgs({
  options: { seed: { type: 'string', default: '1' }, only: { type: 'string' }, json: { type: 'boolean' } },
});
const isWanted = (section: string): boolean => values.only === undefined || values.only === section;
const wanted = FAULTS.filter(isWanted);
if (wanted.length === 0 && !isWanted(STALLS))
  throw new Error(`--only knows ${[...FAULTS, STALLS].join(', ')}`);
const harnesses: Harness[] = [];
for (const fault of wanted) harnesses.push(await openHarness(fault));
const faults = (await Promise.all(harnesses.map((harness) => rowsOf(harness, Number(values.seed))))).flat();
const stalls = isWanted(STALLS) ? await stallRows() : [];
const tables = [
  ...(faults.length === 0 ? [] : [tableOf(faults)]),
  ...(stalls.length === 0 ? [] : [stallTable(stalls)]),
];
const printed = values.json ? JSON.stringify({ faults, stalls }, undefined, 2) : tables.join('\n\n');
process.stdout.write(`${printed}\n`);
process.exitCode = [...faults, ...stalls].some(({ missed }) => missed.length > 0) ? 1 : 0;
