// Makes what registers an instance out of a template definition.
// It creates no folder and registers nothing; which program npx stands for is launch.ts.

import { splitCommand } from '../domain/command.ts';
import type { InstanceInput } from '../domain/instance.ts';
import type { TemplateDefinition } from './definition.ts';
import { fillPlaceholders, type PlaceholderValues } from './placeholders.ts';
import { mappedSettings, type SettingValues, withDefaults } from './settings.ts';

/**
 * The input that registers an instance of a template, placeholders filled. A command is split into words before they are
 * filled, so a folder with spaces in its path stays one word. `settings` and the defaults of others become words behind those
 * of the command, variables and headers. Environment and words are given to a command only, headers to an endpoint.
 */
export function instanceInputOf(
  template: TemplateDefinition,
  values: PlaceholderValues,
  settings: SettingValues = {},
): InstanceInput {
  const { endpoint, transport, environment = {} } = template;
  // The command of an image is run in its containers, which the gateway does not start.
  const command = template.docker_image === undefined ? template.command : undefined;
  const fill = (text: string) => fillPlaceholders(text, values);
  const filled = (texts: Readonly<Record<string, string>>) =>
    Object.fromEntries(Object.entries(texts).map(([name, text]) => [name, fill(text)]));
  const mapped = mappedSettings(template, withDefaults(template, settings));
  const way = {
    ...(endpoint === undefined ? {} : { endpoint }),
    ...(transport === undefined ? {} : { transport }),
    ...(endpoint === undefined || isEmpty(mapped.headers) ? {} : { headers: filled(mapped.headers) }),
  };
  if (command === undefined) return way;
  const [program = '', ...args] = [...wordsOf(template), ...mapped.args].map(fill);
  const variables = filled({ ...environment, ...mapped.env });
  return { ...way, command: program, args, ...(isEmpty(variables) ? {} : { env_vars: variables }) };
}

function isEmpty(texts: object): boolean {
  return Object.keys(texts).length === 0;
}

/** Reading the definition proved that its command can be split. */
function wordsOf({ command = '', args }: TemplateDefinition): readonly string[] {
  if (args !== undefined) return [command, ...args];
  const split = splitCommand(command);
  return 'words' in split ? split.words : [command];
}
