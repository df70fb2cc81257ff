// The load generator, a separate process: N connections, each with one request in flight, for a fixed time.
// `node bench/load.ts --url=… --body=… --connections=16 --seconds=3 --warm-up-seconds=0.5 --pid=123` prints a
// line of JSON (`LoadResult`). With `--session-body=…` each connection first opens an MCP session, at `--session-url=…` if that is
// given. `--other-pid=…`: a second process whose CPU is measured. CPU time excludes the warm-up.

import { createHistogram } from 'node:perf_hooks';
import { setTimeout as delay } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { openConnection, type Shot } from './load-connection.ts';
import { openSession } from './open-session.ts';
import { cpuMicroseconds, residentBytes } from './process-usage.ts';

/** The measurements of one run. CPU and memory belong to the process of `--pid`. */
export interface LoadResult {
  readonly requests: number;
  /** Answers that were not 200, and connections that broke. */
  readonly failures: number;
  readonly requestsPerSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly cpuMicrosecondsPerCall: number | null;
  /** Of the process of `--other-pid`. */
  readonly otherCpuMicrosecondsPerCall: number | null;
  readonly residentBytes: number | null;
  /** CPU of the generator itself, to check that it is not the bottleneck. */
  readonly loadMicrosecondsPerCall: number;
}

const { values } = parseArgs({
  options: {
    url: { type: 'string', default: '' },
    body: { type: 'string', default: '' },
    headers: { type: 'string', default: '{}' },
    'session-body': { type: 'string', default: '' },
    'session-url': { type: 'string', default: '' },
    connections: { type: 'string', default: '16' },
    seconds: { type: 'string', default: '3' },
    'warm-up-seconds': { type: 'string', default: '0.5' },
    pid: { type: 'string' },
    'other-pid': { type: 'string' },
  },
});

function shotOf(target: string, body: string, headers: Readonly<Record<string, string>>): Shot {
  const { hostname, port, host, pathname } = new URL(target);
  const lines = [
    `POST ${pathname} HTTP/1.1`,
    `Host: ${host}`,
    'Content-Type: application/json',
    'Accept: application/json, text/event-stream',
    `Content-Length: ${Buffer.byteLength(body)}`,
    ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
  ];
  return { host: hostname, port: Number(port), request: Buffer.from(`${lines.join('\r\n')}\r\n\r\n${body}`) };
}

let phase: 'warm-up' | 'measured' | 'over' = 'warm-up';
let requests = 0;
let failures = 0;
const latencies = createHistogram();

/** The request of one connection: in a new session, if the case needs one. */
async function ownShot(): Promise<Shot> {
  const headers: Readonly<Record<string, string>> = JSON.parse(values.headers);
  const sessionBody = values['session-body'];
  if (sessionBody === '') return shotOf(values.url, values.body, headers);
  const session = await openSession(values['session-url'] || values.url, sessionBody, headers);
  return shotOf(values.url, values.body, { ...headers, ...session });
}

for (let count = 0; count < Number(values.connections); count += 1) {
  openConnection(await ownShot(), {
    answered(startedMs, finishedMs, isGood) {
      if (!isGood) failures += 1;
      if (phase !== 'measured') return;
      requests += 1;
      // In whole microseconds, at least one.
      latencies.record(Math.max(1, Math.round((finishedMs - startedMs) * 1000)));
    },
    broken() {
      failures += 1;
    },
    goesOn: () => phase !== 'over',
  });
}

const [pid, otherPid] = [values.pid, values['other-pid']].map((text) =>
  text === undefined ? undefined : Number(text),
);
const cpuNow = () => [pid, otherPid].map((one) => (one === undefined ? undefined : cpuMicroseconds(one)));

await delay(Number(values['warm-up-seconds']) * 1000);
phase = 'measured';
const startedMs = performance.now();
const cpuBefore = cpuNow();
const ownBefore = process.cpuUsage();
await delay(Number(values.seconds) * 1000);
const cpuAfter = cpuNow();
const own = process.cpuUsage(ownBefore);
const tookSeconds = (performance.now() - startedMs) / 1000;
phase = 'over';

const [cpu = null, otherCpu = null] = cpuAfter.map((after, index) => {
  const before = cpuBefore[index];
  return before === undefined || after === undefined ? null : (after - before) / requests;
});
const result: LoadResult = {
  requests,
  failures,
  requestsPerSecond: requests / tookSeconds,
  p50Ms: latencies.percentile(50) / 1000,
  p99Ms: latencies.percentile(99) / 1000,
  cpuMicrosecondsPerCall: cpu,
  otherCpuMicrosecondsPerCall: otherCpu,
  residentBytes: (pid === undefined ? undefined : residentBytes(pid)) ?? null,
  loadMicrosecondsPerCall: (own.user + own.system) / requests,
};
process.stdout.write(`${JSON.stringify(result)}\n`, () => process.exit(0));
