// `stagedoor gateway sync`: has a running gateway look for containers and pods that serve its templates, and read its registry
// file again.
// The gateway asks the engines, because it is the one that reaches the instances: ADR 59.

import { type Fields, fields, itemsOf, listOf } from '../answers.ts';
import { CLIENT_OPTIONS, gatewayOf } from '../client-options.ts';
import type { CommandDefinition } from '../command.ts';
import { printResult, table } from '../output.ts';
import type { Terminal } from '../terminal.ts';

/** Longest wait for all engines and clusters, in ms; each has less. */
const SYNC_MS = 60_000;

export const sync: CommandDefinition = {
  name: 'gateway sync',
  summary:
    'Register and remove instances to match Docker, Podman, Kubernetes and the registry file; exit code 1 when no source answers',
  options: {
    '--dry-run': 'Show what would change, and change nothing',
    '--namespace <name>': "Kubernetes namespace to search; default the gateway's own setting, mcp-servers",
    '--all-namespaces': 'Search every Kubernetes namespace',
    ...CLIENT_OPTIONS,
  },
  examples: ['gateway sync', 'gateway sync --dry-run', 'gateway sync --namespace tools --json'],
  run: async (input, terminal) => {
    input.refuseBoth('all-namespaces', 'namespace');
    const namespace = input.has('all-namespaces') ? '*' : input.text('namespace');
    const gateway = await gatewayOf(input, terminal);
    const body = { dry_run: input.has('dry-run'), namespace };
    const answer = await gateway.request('/gateway/sync', { method: 'POST', body, timeoutMs: SYNC_MS });
    const done = fields(answer);
    printResult(input, terminal, answer, () => summary(terminal, done));
    for (const warning of itemsOf(done.warnings)) terminal.complain(`warning: ${warning}`);
    return itemsOf(done.reached).length > 0 ? 0 : 1;
  },
};

const ROWS = ['added', 'changed', 'removed', 'skipped'] as const;

function summary(terminal: Terminal, done: Fields): string {
  const rows: Fields[] = [
    ...ROWS.flatMap((action) => listOf(done[action]).map((each) => ({ ...each, action }))),
    ...itemsOf(done.settings).map((template) => ({
      ...{ action: 'changed', template_name: template, reason: 'settings of the template' },
    })),
  ];
  const unchanged = itemsOf(done.unchanged).length;
  const counts = [...ROWS.map((what) => `${listOf(done[what]).length} ${what}`), `${unchanged} unchanged`];
  const last = `${counts.join(', ')}${done.dry_run === true ? '; nothing was changed (--dry-run)' : ''}`;
  if (rows.length === 0) return last;
  const columns = {
    ...{
      ACTION: 'action',
      TEMPLATE: 'template_name',
      INSTANCE: 'instance_id',
      NAME: 'name',
      REASON: 'reason',
    },
  };
  return `${table(terminal, columns, rows)}\n\n${last}`;
}
