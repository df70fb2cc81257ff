// Makes what registers an instance out of a template definition.
// It creates no folder and registers nothing; which program npx stands for is launch.ts.

import { splitCommand } from '../domain/command-words.ts';
import type { InstanceInput } from '../domain/instance.ts';
import type { TemplateDefinition } from './definition.ts';
import { fillPlaceholders, type PlaceholderValues } from './placeholders.ts';

/**
 * The input that registers an instance of a template, placeholders filled. A command is split into words before they are
 * filled, so a folder with spaces in its path stays one word. The environment is given to a command only.
 */
export function instanceInputOf(template: TemplateDefinition, values: PlaceholderValues): InstanceInput {
  const { command, endpoint, transport, environment = {} } = template;
  const fill = (text: string) => fillPlaceholders(text, values);
  const way = {
    ...(endpoint === undefined ? {} : { endpoint }),
    ...(transport === undefined ? {} : { transport }),
  };
  if (command === undefined) return way;
  const [program = '', ...args] = wordsOf(template).map(fill);
  const variables = Object.entries(environment).map(([name, text]) => [name, fill(text)]);
  return {
    ...way,
    command: program,
    args,
    ...(variables.length === 0 ? {} : { env_vars: Object.fromEntries(variables) }),
  };
}

/** Reading the definition proved that its command can be split. */
function wordsOf({ command = '', args }: TemplateDefinition): readonly string[] {
  if (args !== undefined) return [command, ...args];
  const split = splitCommand(command);
  return 'words' in split ? split.words : [command];
}
