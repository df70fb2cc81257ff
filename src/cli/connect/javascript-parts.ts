// What the programs in JavaScript share: the key and the variables as expressions.

import { jsString } from './code-text.ts';
import type { Connection, StdioConnection } from './kind.ts';

/** The key as an expression. */
export function jsKey({ key }: Connection): string {
  return key?.value === undefined ? `process.env.${key?.variable}` : jsString(key.value);
}

/** The member `env` of a program, on a line of its own; empty when it needs none. */
export function jsEnvironment(connection: StdioConnection): string {
  const given = Object.entries(connection.env).map(([name, value]) => `${name}: ${jsString(value)}`);
  const all = connection.key === undefined ? given : [...given, `STAGEDOOR_API_KEY: ${jsKey(connection)}`];
  return all.length === 0 ? '' : `\n  env: { ...process.env, ${all.join(', ')} },`;
}
