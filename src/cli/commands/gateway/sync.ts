// `stagedoor gateway sync`: the gateway registers and removes instances to match engines, clusters and the registry file.

import type { Command } from '../../command.ts';
import { printable, printResult, table } from '../../output.ts';
import { elementsOf, type Fields, fields, objectsOf } from '../../remote/answers.ts';
import { CLIENT_OPTIONS } from '../../remote/client-options.ts';
import { requireGateway } from '../../remote/find-gateway.ts';
import type { Terminal } from '../../terminal.ts';

/** The longest wait for all engines and clusters together, in ms. */
const SYNC_MS = 60_000;

export const gatewaySync: Command = {
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
    const gateway = await requireGateway(input, terminal);
    const body = { dry_run: input.has('dry-run'), namespace };
    const answer = await gateway.request('/gateway/sync', { method: 'POST', body, timeoutMs: SYNC_MS });
    const done = fields(answer);
    printResult(input, terminal, answer, () => summary(terminal, done));
    const hasReached = elementsOf(done.reached).length > 0;
    const report = hasReached ? terminal.note : terminal.complain;
    for (const warning of elementsOf(done.warnings)) report(`warning: ${printable(String(warning))}`);
    return hasReached ? 0 : 1;
  },
};

const ROWS = ['added', 'changed', 'removed', 'skipped'] as const;

function summary(terminal: Terminal, done: Fields): string {
  const rows: Fields[] = [
    ...ROWS.flatMap((action) => objectsOf(done[action]).map((each) => ({ ...each, action }))),
    ...elementsOf(done.settings).map((template) => ({
      action: 'changed',
      template_name: template,
      reason: 'settings of the template',
    })),
  ];
  const unchanged = elementsOf(done.unchanged).length;
  const counts = [...ROWS.map((what) => `${objectsOf(done[what]).length} ${what}`), `${unchanged} unchanged`];
  const last = `${counts.join(', ')}${done.dry_run === true ? '; nothing was changed (--dry-run)' : ''}`;
  if (rows.length === 0) return last;
  const columns = {
    ACTION: 'action',
    TEMPLATE: 'template_name',
    INSTANCE: 'instance_id',
    NAME: 'name',
    REASON: 'reason',
  };
  return `${table(terminal, columns, rows)}\n\n${last}`;
}
