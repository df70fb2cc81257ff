// `stagedoor gateway status | health`: the state of a running gateway and of its templates; one word for scripts and monitors.

import { type Fields, fields, instancesOf, shownReasonOf, shownStateOf } from '../answers.ts';
import { CLIENT_OPTIONS, gatewayOf, ofTemplate, WIDE_OPTION } from '../client-options.ts';
import type { CommandDefinition } from '../command.ts';
import { NotLoggedIn } from '../failures.ts';
import { type Columns, duration, facts, printResult, stateWord, table } from '../output.ts';
import type { Remote } from '../remote.ts';
import type { Terminal } from '../terminal.ts';

/** Exit code 0 also for a degraded gateway: it serves, so scripts that wait for a gateway need not distinguish the two. */
export const status: CommandDefinition = {
  name: 'gateway status',
  summary:
    'Show the state of a gateway; exit code 0 when it is healthy or degraded, 1 when it is unhealthy or not running',
  options: { ...WIDE_OPTION, ...CLIENT_OPTIONS },
  examples: ['gateway status', 'gateway status --url http://gateway.example:8080'],
  run: async (input, terminal) => {
    const gateway = await gatewayOf(input, terminal);
    const [health, { stats, registry, locked }] = await Promise.all([gateway.health(), detailsOf(gateway)]);
    const report: GatewayReport = { url: gateway.url, health, ...(stats && { stats }) };
    const isWide = input.has('wide');
    printResult(input, terminal, report, () => summary(terminal, report, instancesOf(registry), isWide));
    if (locked !== undefined) terminal.note(`only its health is shown: ${locked}`);
    return SERVING.includes(String(report.health.status)) ? 0 : 1;
  },
};

const SERVING: readonly string[] = ['healthy', 'degraded'];

interface GatewayReport {
  readonly url: string;
  readonly health: Fields;
  /** Absent without a login. */
  readonly stats?: Fields;
}

/** Health needs no account: a script that only checks the gateway has none. */
async function detailsOf(gateway: Remote): Promise<{
  readonly stats?: Fields;
  readonly registry?: unknown;
  readonly locked?: string;
}> {
  try {
    const [stats, registry] = await Promise.all([
      gateway.request('/gateway/stats'),
      gateway.request('/gateway/registry'),
    ]);
    return { stats: fields(stats), registry };
  } catch (error) {
    if (error instanceof NotLoggedIn) return { locked: error.message };
    throw error;
  }
}

function summary(
  terminal: Terminal,
  { url, health, stats }: GatewayReport,
  records: readonly Fields[],
  isWide: boolean,
): string {
  const instances = fields(health.instances);
  const stateOf = (record: Fields) => stateWord(terminal, shownStateOf(record));
  const lines = facts(terminal, [
    ['gateway', url],
    ['status', stateWord(terminal, String(health.status))],
    ['version', `API ${health.version}, stagedoor ${health.build}`],
    ['uptime', duration(Number(health.uptime))],
    ['database', String(health.database)],
    ['instances', `${instances.healthy} of ${instances.total} healthy`],
    ['requests', stats && `${stats.total_requests}, ${stats.active_connections} in flight`],
    ...clientFacts(stats),
  ]);
  const templates: readonly Fields[] = Object.entries(fields(stats?.templates)).map(([name, template]) => ({
    ...fields(template),
    name,
  }));
  const elsewhere = records.filter(isElsewhere);
  const failing = records.filter((record) => shownStateOf(record) !== 'healthy' && !isElsewhere(record));
  return [
    lines,
    ...(templates.length > 0 ? [table(terminal, TEMPLATE_COLUMNS, templates, { isWide })] : []),
    ...(failing.length > 0
      ? [table(terminal, { 'NOT HEALTHY': nameOf, STATE: stateOf, REASON: shownReasonOf }, failing)]
      : []),
    ...(elsewhere.length > 0 ? [table(terminal, { ELSEWHERE: nameOf, NODE: 'node_id' }, elsewhere)] : []),
  ].join('\n\n');
}

const TEMPLATE_COLUMNS: Columns<Fields> = {
  TEMPLATE: 'name',
  HEALTHY: ({ healthy_instances: healthy, total_instances: total }) => `${healthy} of ${total}`,
  STRATEGY: 'load_balancer_strategy',
  SESSIONS: ({ sessions }) => sessions ?? 0,
  'OWN PROCESSES': ({ own_processes: processes }) => processes ?? 0,
};

/** What MCP clients have open; a gateway of an older version does not report it. */
function clientFacts(stats: Fields = {}): (readonly [string, string])[] {
  const { open, max, parked, lost: lostSessions, moved } = fields(stats.sessions);
  const { running, lost: lostProcesses } = fields(stats.own_processes);
  if (open === undefined || running === undefined) return [];
  const parts = [
    `${open} of at most ${max}`,
    ...(typeof parked === 'number' ? [`${parked} parked`] : []),
    `${moved} moved`,
    `${lostSessions} lost`,
  ];
  return [
    ['sessions', parts.join(', ')],
    ['own processes', `${running} running, ${lostProcesses} lost`],
  ];
}

function nameOf({ template_name: template, id }: Fields): string {
  return `${template}/${id}`;
}

/**
 * True for a program that another gateway on the same database runs: only that gateway knows its health. Here it is
 * stopped; a reason without a node is a different one, and callers without gateway:write get no reason.
 */
function isElsewhere(record: Fields): boolean {
  const { state, node_id: node } = record;
  const reason = shownReasonOf(record);
  return state === 'stopped' && typeof node === 'string' && (reason === '' || reason.endsWith(`"${node}"`));
}

/** The health of the gateway needs no account; the health of a template does. */
export const health: CommandDefinition = {
  name: 'gateway health',
  positionals: '[template]',
  summary:
    'Show the health of the gateway, or of a template and its instances; exit code 1 when it is unhealthy or not running',
  options: CLIENT_OPTIONS,
  examples: ['gateway health', 'gateway health everything', 'gateway health --json'],
  run: async (input, terminal) => {
    const [template] = input.positionals;
    const gateway = await gatewayOf(input, terminal);
    const answer =
      template === undefined
        ? await gateway.health()
        : fields(
            await ofTemplate(gateway, template, () =>
              gateway.request(`/mcp/${encodeURIComponent(template)}/health`),
            ),
          );
    printResult(input, terminal, answer, () =>
      template === undefined ? gatewayHealth(terminal, answer) : templateHealth(terminal, template, answer),
    );
    return answer.status === 'unhealthy' ? 1 : 0;
  },
};

function gatewayHealth(terminal: Terminal, answer: Fields): string {
  const instances = fields(answer.instances);
  return facts(terminal, [
    ['status', stateWord(terminal, String(answer.status))],
    ['database', String(answer.database)],
    ['instances', `${instances.healthy} of ${instances.total} healthy`],
    ['uptime', duration(Number(answer.uptime))],
  ]);
}

function templateHealth(terminal: Terminal, template: string, answer: Fields): string {
  const records: readonly Fields[] = Object.entries(fields(answer.instances)).map(([id, record]) => ({
    ...fields(record),
    id,
  }));
  const { healthy_instances: healthy, total_instances: total } = answer;
  const title = `${template}: ${healthy} of ${total} healthy`;
  if (records.length === 0) return title;
  const columns: Columns<Fields> = {
    INSTANCE: 'id',
    STATE: (record) => stateWord(terminal, shownStateOf(record)),
    LATENCY: ({ latency_ms: ms }) => (typeof ms === 'number' ? `${ms} ms` : ''),
    REASON: shownReasonOf,
  };
  return `${title}\n${table(terminal, columns, records)}`;
}
