// `stagedoor gateway audit`: the audit log of a running gateway, newest entries first.

import { AGE_MS, type Command, PAST_TIME, timeOf } from '../../command.ts';
import { printResult, type TableColumns, table } from '../../output.ts';
import { type Fields, fields } from '../../remote/answers.ts';
import { CLIENT_OPTIONS, WIDE_OPTION } from '../../remote/client-options.ts';
import { requireGateway } from '../../remote/find-gateway.ts';
import { pagedEntries } from '../../remote/paged-entries.ts';

/** The most entries of one output, and its default. */
const MAX_PRINTED = 100_000;
const SHOWN = 50;

const FILTERS = ['actor', 'action', 'template', 'tool', 'view', 'outcome', 'status'] as const;
/** Options with a time, and the filters of the API that they are. */
const TIMES = { since: 'from', until: 'to' } as const;

export const gatewayAudit: Command = {
  name: 'gateway audit',
  summary: 'Show the audit log: changes, logins and calls of tools',
  options: {
    '-n, --limit <number>': `Newest entries to show; default ${SHOWN}`,
    '--actor <name>': 'Entries of this user or key: its id, or its name',
    '--action <text>': 'Entries of this action, such as tools/call or "POST /auth/login"',
    '--template <name>': 'Calls of this template',
    '--tool <name>': 'Calls of this tool',
    '--view <name>': 'Calls through this view',
    '--outcome <word>': 'Calls with this outcome: result, tool_error, error, failed, cancelled',
    '--status <number>': 'Entries with this HTTP status',
    '--since <time>': `Entries of this time or later: ${PAST_TIME}`,
    '--until <time>': 'Entries before this time',
    ...WIDE_OPTION,
    ...CLIENT_OPTIONS,
  },
  examples: [
    'gateway audit',
    'gateway audit --template search --outcome failed --since 1h',
    'gateway audit --actor ada --limit 1000 --json',
  ],
  run: async (input, terminal) => {
    const limit = input.number('limit', { minimum: 1, maximum: MAX_PRINTED }) ?? SHOWN;
    const query = new URLSearchParams();
    for (const name of FILTERS) {
      const value = input.text(name);
      if (value !== undefined) query.set(name, value);
    }
    for (const [name, filter] of Object.entries(TIMES)) {
      const value = input.text(name);
      if (value !== undefined) query.set(filter, timeOf(name, value, AGE_MS));
    }
    const bounds = { query, most: limit };
    const entries = await pagedEntries(
      await requireGateway(input, terminal),
      '/gateway/audit',
      'entries',
      bounds,
    );
    return printResult(input, terminal, entries, () =>
      entries.length === 0 ? 'no entries' : table(terminal, COLUMNS, entries, input),
    );
  },
};

const COLUMNS: TableColumns<Fields> = {
  TIME: 'at',
  ACTOR: 'actor_name',
  ACTION: 'action',
  SUBJECT: ({ subject, call }) =>
    fields(call).tool === undefined ? subject : `${fields(call).template}/${fields(call).tool}`,
  INSTANCE: ({ call }) => fields(call).instance_id,
  STATUS: 'status',
  OUTCOME: ({ call }) => fields(call).outcome,
  MS: ({ call }) => fields(call).duration_ms,
  SUPPRESSED: 'suppressed',
};
