// `stagedoor gateway status | health | stats`: the state of a running gateway and of its templates; the calls of each instance.

import type { Command, CommandInput } from '../../command.ts';
import { CommandFailure, UsageError } from '../../failures.ts';
import { pause, untilSignal } from '../../foreground/stop-signals.ts';
import { detailLines, duration, printResult, stateWord, type TableColumns, table } from '../../output.ts';
import {
  type Fields,
  fields,
  instancesOf,
  objectsOf,
  shownReasonOf,
  shownStateOf,
} from '../../remote/answers.ts';
import { CLIENT_OPTIONS, TEMPLATE_OPTION, WIDE_OPTION } from '../../remote/client-options.ts';
import { requireGateway } from '../../remote/find-gateway.ts';
import type { Remote } from '../../remote/remote.ts';
import { ofTemplate } from '../../remote/similar-names.ts';
import type { Terminal } from '../../terminal.ts';
import { registryOfTemplate } from '../instances.ts';

/**
 * Shows the state of the gateway. Exit code 0 also for a degraded one: it serves, so scripts that wait for a gateway
 * need not distinguish the two.
 */
export const gatewayStatus: Command = {
  name: 'gateway status',
  summary:
    'Show the state of a gateway; exit code 0 when it is healthy or degraded, 1 when it is unhealthy or not running',
  options: { ...WIDE_OPTION, ...CLIENT_OPTIONS },
  examples: ['gateway status', 'gateway status --url http://gateway.example:8080'],
  run: async (input, terminal) => {
    const gateway = await requireGateway(input, terminal);
    // Health needs no account: a script that only checks the gateway may have none, or one with other permissions.
    const sampling = sampleOf(gateway).catch((error: unknown) => {
      if (error instanceof CommandFailure) return error;
      throw error;
    });
    const [health, sample] = await Promise.all([gateway.health(), sampling]);
    const isLocked = sample instanceof CommandFailure;
    const report = { url: gateway.url, health, ...(isLocked ? {} : { stats: fields(sample.stats) }) };
    const records = isLocked ? [] : instancesOf(sample.registry);
    printResult(input, terminal, report, () => summary(input, terminal, report, records));
    if (isLocked) terminal.note(`only its health is shown: ${sample.message}`);
    return exitCodeOf(health);
  },
};

function exitCodeOf({ status }: Fields): number {
  return status === 'unhealthy' ? 1 : 0;
}

function summary(
  input: CommandInput,
  terminal: Terminal,
  { url, health, stats }: { readonly url: string; readonly health: Fields; readonly stats?: Fields },
  records: readonly Fields[],
): string {
  const nameOf = ({ template_name: template, id }: Fields) => `${template}/${id}`;
  const stateOf = (record: Fields) => stateWord(terminal, shownStateOf(record));
  const lines = detailLines(terminal, [
    ['gateway', url],
    ...healthRows(terminal, health),
    ...(stats === undefined ? [] : trafficRows(stats)),
  ]);
  // Templates without instances have a definition only; `template list` shows them.
  const templates = recordsOf(stats?.templates, 'name').filter(({ total_instances: total }) => total !== 0);
  const failing = records.filter((record) => shownStateOf(record) !== 'healthy');
  return [
    lines,
    ...(templates.length > 0 ? [table(terminal, TEMPLATE_COLUMNS, templates, input)] : []),
    ...(failing.length > 0
      ? [table(terminal, { 'NOT HEALTHY HERE': nameOf, STATE: stateOf, REASON: shownReasonOf }, failing)]
      : []),
  ].join('\n\n');
}

const TEMPLATE_COLUMNS: TableColumns<Fields> = {
  TEMPLATE: 'name',
  HEALTHY: ({ healthy_instances: healthy, total_instances: total }) => `${healthy} of ${total}`,
  STRATEGY: 'load_balancer_strategy',
  SESSIONS: 'sessions',
  'DEDICATED PROCESSES': 'own_processes',
};

function healthRows(terminal: Terminal, health: Fields): (readonly [string, unknown])[] {
  const { healthy, total } = fields(health.instances);
  return [
    ['status', stateWord(terminal, String(health.status))],
    ['version', `API ${health.version}, stagedoor ${health.build}`],
    ['uptime', duration(Number(health.uptime))],
    ['database', health.database],
    ['instances', `${healthy} of ${total} healthy`],
  ];
}

function trafficRows(stats: Fields): (readonly [string, string])[] {
  const { open, max, lost, moved } = fields(stats.sessions);
  const processes = fields(stats.own_processes);
  return [
    ['requests', `${stats.total_requests}, ${stats.active_connections} in flight`],
    ['sessions', `${open} of at most ${max}, ${moved} moved, ${lost} lost`],
    ['dedicated processes', `${processes.running} running, ${processes.lost} lost`],
  ];
}

/** The values of an object, each with its key as an additional field. */
function recordsOf(values: unknown, field: string): readonly Fields[] {
  return Object.entries(fields(values)).map(([key, value]) => ({ ...fields(value), [field]: key }));
}

/** Shows the health of the gateway, which needs no account, or that of a template, which does. */
export const gatewayHealth: Command = {
  name: 'gateway health',
  positionals: '[template]',
  summary:
    'Show the health of the gateway, or of a template and its instances; exit code 1 when it is unhealthy or not running',
  options: CLIENT_OPTIONS,
  examples: ['gateway health', 'gateway health everything', 'gateway health --json'],
  run: async (input, terminal) => {
    const [template] = input.positionals;
    const gateway = await requireGateway(input, terminal);
    if (template === undefined) {
      const answer = await gateway.health();
      printResult(input, terminal, answer, () => detailLines(terminal, healthRows(terminal, answer)));
      return exitCodeOf(answer);
    }
    const path = `/mcp/${encodeURIComponent(template)}/health`;
    const answer = fields(await ofTemplate(gateway, template, () => gateway.request(path)));
    printResult(input, terminal, answer, () => templateHealth(terminal, template, answer));
    return exitCodeOf(answer);
  },
};

function templateHealth(terminal: Terminal, template: string, answer: Fields): string {
  const records = recordsOf(answer.instances, 'id');
  const { healthy_instances: healthy, total_instances: total } = answer;
  const title = `${template}: ${healthy} of ${total} healthy`;
  const withheld = objectsOf(answer.withheld).map(
    ({ list, name, reason }) => `withheld from ${String(list)} at /mcp: ${String(name)} (${String(reason)})`,
  );
  if (records.length === 0) return [title, ...withheld].join('\n');
  const columns: TableColumns<Fields> = {
    INSTANCE: 'id',
    STATE: (record) => stateWord(terminal, shownStateOf(record)),
    LATENCY: ({ latency_ms: ms }) => (typeof ms === 'number' ? `${ms} ms` : ''),
    REASON: shownReasonOf,
  };
  return [title, table(terminal, columns, records), ...withheld].join('\n');
}

const WATCH_MS = 2_000;

export const gatewayStats: Command = {
  name: 'gateway stats',
  summary: 'Show calls, times and failures of each instance since the gateway started',
  options: {
    '-w, --watch': 'Show them again every 2 s until Ctrl-C; on a terminal only',
    ...TEMPLATE_OPTION,
    ...WIDE_OPTION,
    ...CLIENT_OPTIONS,
  },
  examples: ['gateway stats', 'gateway stats --template search --watch', 'gateway stats --json'],
  run: async (input, terminal) => {
    const isWatched = input.has('watch');
    input.refuseBoth('watch', 'json');
    if (isWatched && terminal.columns === undefined) {
      throw new UsageError('--watch requires a terminal; "gateway stats --json" is for programs');
    }
    const gateway = await requireGateway(input, terminal);
    const template = input.text('template');
    const first = await sampleOf(gateway, { template });
    if (isWatched) return untilSignal((signal) => watch(gateway, terminal, first, signal));
    const shown = template === undefined ? first.stats : partOf(first, template);
    return printResult(input, terminal, shown, () => tableOf(terminal, first, { input }));
  },
};

/** The statistics of one template and of its instances. */
function partOf({ stats, registry }: GatewaySample, template: string): Fields {
  const { templates, instances } = fields(stats);
  const counts = instancesOf(registry).map(({ server_id: id }) => [id, fields(instances)[String(id)]]);
  return {
    templates: { [template]: fields(templates)[template] },
    instances: Object.fromEntries(counts),
  };
}

interface GatewaySample {
  /** The template whose instances are shown; undefined: all, and their sums. */
  readonly template: string | undefined;
  readonly stats: unknown;
  readonly registry: unknown;
  readonly atMs: number;
}

async function sampleOf(
  gateway: Remote,
  { template, signal }: { template?: string | undefined; signal?: AbortSignal } = {},
): Promise<GatewaySample> {
  const paths = ['/gateway/stats', '/gateway/registry'];
  const [stats, registry] = await Promise.all(paths.map((path) => gateway.request(path, { signal })));
  return { template, stats, registry: registryOfTemplate(registry, template), atMs: performance.now() };
}

async function watch(
  gateway: Remote,
  terminal: Terminal,
  first: GatewaySample,
  signal: AbortSignal,
): Promise<number> {
  let [before, now]: readonly [GatewaySample | undefined, GatewaySample] = [undefined, first];
  try {
    while (!signal.aborted) {
      const clock = new Date().toTimeString().slice(0, 8);
      terminal.redraw(`${tableOf(terminal, now, { before })}\n\n${gateway.url} at ${clock}; Ctrl-C ends`);
      await pause(WATCH_MS, signal);
      if (!signal.aborted) [before, now] = [now, await sampleOf(gateway, { ...first, signal })];
    }
    return 0;
  } catch (error) {
    if (signal.aborted) return 0;
    throw error;
  }
}

/** The table of instances; with calls per second when there are two samples. */
function tableOf(
  terminal: Terminal,
  now: GatewaySample,
  { before, input }: { before?: GatewaySample | undefined; input?: CommandInput },
): string {
  const stats = fields(now.stats);
  const counts = fields(stats.instances);
  const inFlight = fields(fields(stats.load_balancer).active_connections);
  const earlier = fields(fields(before?.stats).instances);
  const records = instancesOf(now.registry);
  const countsOf = ({ server_id: id }: Fields) => fields(counts[String(id)]);
  const columns: TableColumns<Fields> = {
    TEMPLATE: 'template_name',
    INSTANCE: 'id',
    STATE: (record) => stateWord(terminal, shownStateOf(record)),
    CALLS: (record) => countsOf(record).requests ?? 0,
    ...(before !== undefined && {
      'PER SECOND': (record) => {
        const requests = Number(countsOf(record).requests ?? 0);
        const base = Number(fields(earlier[String(record.server_id)]).requests ?? requests);
        // Another instance of this name counts from zero.
        const more = requests < base ? requests : requests - base;
        return ((1000 * more) / (now.atMs - before.atMs)).toFixed(1);
      },
    }),
    FAILED: (record) => percent(countsOf(record).error_rate),
    TIME: (record) => milliseconds(countsOf(record).average_response_time_ms),
    'IN FLIGHT': ({ server_id: id }) => inFlight[String(id)] ?? 0,
    SESSIONS: (record) => countsOf(record).sessions ?? 0,
  };
  const percentiles = [stats.p50_ms, stats.p95_ms, stats.p99_ms].map(milliseconds).join(', ');
  const rows = table(terminal, columns, records, input);
  if (now.template !== undefined) return rows;
  const summary = detailLines(terminal, [
    ['uptime', duration(Number(stats.uptime))],
    ['requests', `${stats.total_requests}, ${stats.active_connections} in flight`],
    ['failed', percent(stats.error_rate)],
    ['time', `${milliseconds(stats.average_response_time_ms)} on average; 50, 95, 99 %: ${percentiles}`],
  ]);
  return records.length === 0 ? summary : `${summary}\n\n${rows}`;
}

function percent(rate: unknown): string {
  return `${(Number(rate ?? 0) * 100).toFixed(1)} %`;
}

/** A duration with its unit. Callers that see only a part of the gateway get no percentiles. */
function milliseconds(value: unknown): string {
  return typeof value === 'number' ? `${value.toFixed(value < 10 ? 1 : 0)} ms` : '-';
}
