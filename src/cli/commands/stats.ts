// `stagedoor gateway stats`: how many calls each instance had, how fast, how many failed; with --watch again and again.

import { setTimeout as sleep } from 'node:timers/promises';
import { type Fields, fields, instancesOf, shownStateOf } from '../answers.ts';
import { CLIENT_OPTIONS, gatewayOf, WIDE_OPTION } from '../client-options.ts';
import type { CommandDefinition } from '../command.ts';
import { UsageError } from '../failures.ts';
import { type Columns, duration, facts, printResult, stateWord, table } from '../output.ts';
import type { Remote } from '../remote.ts';
import { untilSignal } from '../stop-signals.ts';
import type { Terminal } from '../terminal.ts';

const WATCH_MS = 2_000;

export const stats: CommandDefinition = {
  name: 'gateway stats',
  summary: 'Show calls, times and failures of each instance since the gateway started',
  options: {
    '-w, --watch': 'Show them again every 2 s until Ctrl-C; on a terminal only',
    ...WIDE_OPTION,
    ...CLIENT_OPTIONS,
  },
  examples: ['gateway stats', 'gateway stats --watch', 'gateway stats --json'],
  run: async (input, terminal) => {
    const isWatched = input.has('watch');
    input.refuseBoth('watch', 'json');
    if (isWatched && terminal.columns === undefined) {
      throw new UsageError('--watch requires a terminal; "gateway stats --json" is for programs');
    }
    const gateway = await gatewayOf(input, terminal);
    const first = await sampleOf(gateway);
    if (isWatched) return watch(gateway, terminal, first);
    const isWide = input.has('wide');
    return printResult(input, terminal, first.stats, () => tableOf(terminal, first, undefined, isWide));
  },
};

interface Sample {
  readonly stats: unknown;
  readonly registry: unknown;
  readonly atMs: number;
}

async function sampleOf(gateway: Remote): Promise<Sample> {
  const [stats, registry] = await Promise.all([
    gateway.request('/gateway/stats'),
    gateway.request('/gateway/registry'),
  ]);
  return { stats, registry, atMs: performance.now() };
}

async function watch(gateway: Remote, terminal: Terminal, first: Sample): Promise<number> {
  const { signal, dispose } = untilSignal();
  let [before, now]: readonly [Sample | undefined, Sample] = [undefined, first];
  try {
    while (!signal.aborted) {
      const clock = new Date().toTimeString().slice(0, 8);
      terminal.redraw(`${tableOf(terminal, now, before, true)}\n\n${gateway.url} at ${clock}; Ctrl-C ends`);
      await sleep(WATCH_MS, undefined, { signal }).catch(() => undefined);
      if (!signal.aborted) [before, now] = [now, await sampleOf(gateway)];
    }
    return 0;
  } finally {
    dispose();
  }
}

/** With calls per second when there are two samples. */
function tableOf(terminal: Terminal, now: Sample, before: Sample | undefined, isWide: boolean): string {
  const stats = fields(now.stats);
  const of = fields(stats.instances);
  const inFlight = fields(fields(stats.load_balancer).active_connections);
  const earlier = fields(fields(before?.stats).instances);
  const records = instancesOf(now.registry);
  const countsOf = ({ server_id: id }: Fields) => fields(of[String(id)]);
  const columns: Columns<Fields> = {
    TEMPLATE: 'template_name',
    INSTANCE: 'id',
    STATE: (record) => stateWord(terminal, shownStateOf(record)),
    CALLS: (record) => countsOf(record).requests ?? 0,
    ...(before !== undefined && {
      'PER SECOND': (record) => {
        const { requests } = countsOf(record);
        const earlierRequests = fields(earlier[String(record.server_id)]).requests ?? requests;
        return ((1000 * (Number(requests) - Number(earlierRequests))) / (now.atMs - before.atMs)).toFixed(1);
      },
    }),
    FAILED: (record) => percent(countsOf(record).error_rate),
    TIME: (record) => milliseconds(countsOf(record).average_response_time_ms),
    'IN FLIGHT': ({ server_id: id }) => inFlight[String(id)] ?? 0,
    SESSIONS: (record) => countsOf(record).sessions ?? 0,
  };
  const percentiles = [stats.p50_ms, stats.p95_ms, stats.p99_ms].map(milliseconds).join(', ');
  const summary = facts(terminal, [
    ['uptime', duration(Number(stats.uptime))],
    ['requests', `${stats.total_requests}, ${stats.active_connections} in flight`],
    ['failed', percent(stats.error_rate)],
    ['time', `${milliseconds(stats.average_response_time_ms)} on average; 50, 95, 99 %: ${percentiles}`],
  ]);
  return records.length === 0 ? summary : `${summary}\n\n${table(terminal, columns, records, { isWide })}`;
}

function percent(rate: unknown): string {
  return `${(Number(rate ?? 0) * 100).toFixed(1)} %`;
}

/** Callers that see a part of the gateway get no percentiles. */
function milliseconds(value: unknown): string {
  return typeof value === 'number' ? `${value.toFixed(value < 10 ? 1 : 0)} ms` : '-';
}
