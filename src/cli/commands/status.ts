// `stagedoor gateway status`: how a running gateway is, and each of its templates.

import { CLIENT_OPTIONS, gatewayOf } from '../client-options.ts';
import type { CommandDefinition } from '../command.ts';
import { type Fields, fields, instancesOf, reasonOf } from '../remote.ts';
import type { Terminal } from '../terminal.ts';

/** Row of the command table. Exit code 1 when no gateway answers or the gateway says that it is unhealthy. */
export const status: CommandDefinition = {
  name: 'gateway status',
  positionals: '',
  summary: 'Show how a gateway is doing; exit code 1 when it is not running or not healthy',
  options: CLIENT_OPTIONS,
  run: async (input, terminal) => {
    const { json } = await import('../output.ts');
    const gateway = await gatewayOf(input, terminal);
    const [health, stats, registry] = await Promise.all([
      gateway.look('/gateway/health'),
      gateway.request('/gateway/stats'),
      gateway.request('/gateway/registry'),
    ]);
    const seen: Seen = { url: gateway.url, health: fields(health), stats: fields(stats) };
    const failing = instancesOf(registry).filter(({ healthy }) => healthy === false);
    terminal.print(input.switch('json') ? json(seen) : await summary(terminal, seen, failing));
    return seen.health.status === 'unhealthy' ? 1 : 0;
  },
};

interface Seen {
  readonly url: string;
  readonly health: Fields;
  readonly stats: Fields;
}

async function summary(
  terminal: Terminal,
  { url, health, stats }: Seen,
  failing: readonly Fields[],
): Promise<string> {
  const { duration, facts, stateWord, table } = await import('../output.ts');
  const instances = fields(health.instances);
  const lines = facts([
    ['gateway', url],
    ['status', stateWord(terminal, String(health.status))],
    ['version', `API ${health.version}, stagedoor ${health.build}`],
    ['uptime', duration(Number(health.uptime))],
    ['database', String(health.database)],
    ['instances', `${instances.healthy} of ${instances.total} healthy`],
    ['requests', `${stats.total_requests}, ${stats.active_connections} in flight`],
  ]);
  const rows = Object.entries(fields(stats.templates)).map(([name, template]) => {
    const { healthy_instances, total_instances, load_balancer_strategy } = fields(template);
    return [name, `${healthy_instances} of ${total_instances}`, String(load_balancer_strategy)];
  });
  const reasons = failing.map((record) => [
    `${record.template_name}/${record.id}`,
    stateWord(terminal, String(record.state)),
    reasonOf(record),
  ]);
  return [
    lines,
    ...(rows.length > 0 ? [table(terminal, ['TEMPLATE', 'HEALTHY', 'STRATEGY'], rows)] : []),
    ...(reasons.length > 0 ? [table(terminal, ['NOT HEALTHY', 'STATE', 'REASON'], reasons)] : []),
  ].join('\n\n');
}
