// Where the commands about templates find them: at a gateway, or in the folder of definitions that a gateway started here
// would read.

import { type Fields, fields } from './answers.ts';
import { CLIENT_OPTIONS, gatewayOf } from './client-options.ts';
import type { OptionDefinition } from './command.ts';
import type { CommandInput } from './command-input.ts';
import { CommandFailure } from './failures.ts';
import type { Terminal } from './terminal.ts';

/** Options of the commands that show templates. */
export const TEMPLATE_OPTIONS: readonly OptionDefinition[] = [
  { flags: '--local', description: 'Read the definitions of this machine; no gateway is asked' },
  { flags: '--templates-dir <folder>', description: 'With --local: the folder of definitions' },
  ...CLIENT_OPTIONS,
];

/** All templates, or those with a tag, sorted by id. */
export async function templatesOf(
  input: CommandInput,
  terminal: Terminal,
  tag: string | undefined,
): Promise<readonly Fields[]> {
  if (input.switch('local')) {
    const records = await localTemplates(input, terminal);
    return records.filter(({ tags }) => tag === undefined || (Array.isArray(tags) && tags.includes(tag)));
  }
  const gateway = await gatewayOf(input, terminal);
  const query = new URLSearchParams({ include_details: 'true', ...(tag === undefined ? {} : { tag }) });
  const { details } = fields(await gateway.request(`/gateway/templates?${query}`));
  return Array.isArray(details) ? details.map(fields) : [];
}

/** One template. Throws CommandFailure when there is none. */
export async function templateOf(input: CommandInput, terminal: Terminal, id: string): Promise<Fields> {
  if (!input.switch('local')) {
    const gateway = await gatewayOf(input, terminal);
    return fields(await gateway.request(`/gateway/templates/${encodeURIComponent(id)}`));
  }
  const records = await localTemplates(input, terminal);
  const found = records.find((record) => record.id === id);
  if (found !== undefined) return found;
  const { nearMiss } = await import('../config/nearest.ts');
  const meant = nearMiss(
    id,
    records.map((record) => String(record.id)),
  );
  const advice =
    meant === undefined ? '"stagedoor template list --local" shows all' : `did you mean "${meant}"?`;
  throw new CommandFailure(`there is no template "${id}"; ${advice}`);
}

async function localTemplates(input: CommandInput, terminal: Terminal): Promise<readonly Fields[]> {
  const [{ readSettings }, { readCatalogue }, { withoutSecrets }] = await Promise.all([
    import('./setting-options.ts'),
    import('../templates/catalogue.ts'),
    import('../templates/settings.ts'),
  ]);
  const { templatesFolder } = readSettings(input, terminal);
  const { templates, problems } = await readCatalogue(templatesFolder);
  for (const problem of problems) terminal.complain(`warning: ${problem}`);
  return templates.map(({ environment, command, args, endpoint, config_schema, ...shown }) => ({
    ...shown,
    ...(config_schema === undefined ? {} : { config_schema: withoutSecrets(config_schema) }),
  }));
}
