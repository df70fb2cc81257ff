// Fills in the placeholders of an entry of a registry document: `${env:NAME}`, `${NAME}`, `${NAME:-default}` and
// `${userHome}`, as MCP clients write them. No placeholder is passed on literally, but those in the script of a
// shell. Source: ADR 65.
// biome-ignore-all lint/suspicious/noTemplateCurlyInString: placeholders

import { homedir } from 'node:os';
import { pathTo } from '../../domain/errors/validation.ts';
import { splitCommand, type Variables } from '../../domain/instances/command.ts';
import { isOwnVariable } from '../../domain/instances/secret-names.ts';
import { isJsonObject } from '../../domain/json/json.ts';

/**
 * The fields of a registration with all placeholders filled in. `problems` has a line for each text that cannot be filled in; it
 * names the variable, never a value. `locate` is the path of a field in the document.
 */
export function withoutPlaceholders(
  fields: Readonly<Record<string, unknown>>,
  variables: Variables,
  locate: (field: string) => string,
): { readonly filled: Record<string, unknown>; readonly problems: readonly string[] } {
  const problems: string[] = [];
  const fill = (value: unknown, path: string, inScript = false): unknown => {
    if (typeof value !== 'string' || !value.includes('${')) return value;
    return value.replaceAll(PLACEHOLDER, (found, name: string | undefined) => {
      if (found === '$${') return '${';
      const { text, problem } = textFor(found, name, variables, inScript);
      if (problem !== undefined) problems.push(`${path}: ${problem}`);
      return text ?? found;
    });
  };
  const filled: Record<string, unknown> = { ...splitWords(fields) };
  const isShell = typeof filled.command === 'string' && SHELL.test(filled.command);
  for (const [field, value] of Object.entries(filled)) {
    const path = locate(field);
    if (['command', 'working_dir', 'endpoint'].includes(field)) filled[field] = fill(value, path);
    else if (field === 'args' && Array.isArray(value)) {
      const script = isShell
        ? value.findIndex((word) => typeof word === 'string' && RUNS_TEXT.test(word))
        : -1;
      filled[field] = value.map((word, index) => fill(word, path, script >= 0 && index > script));
    } else if (['env_vars', 'headers', 'auth'].includes(field) && isJsonObject(value)) {
      const members = Object.entries(value).map(([name, each]) => [name, fill(each, pathTo(path, name))]);
      filled[field] = Object.fromEntries(members);
    }
  }
  return { filled, problems };
}

/** The text as a document has to write it, so that a placeholder in it is read literally. */
export function escapePlaceholders(text: string): string {
  return text.replaceAll('${', '$$${');
}

const PLACEHOLDER = /\$\$\{|\$\{([^{}]*)\}|\$\{/g;
const VARIABLE = /^(?<env>env:)?(?<name>[A-Za-z_][\w.-]*?)(?::-(?<standard>.*))?$/s;
const SHELL = /(?:^|[/\\])(?:ba|da|z|k|a|fi)?sh(?:\.exe)?$/;
/** The option after which the text of a script follows: `-c`, `-lc`. */
const RUNS_TEXT = /^-[a-z]*c$/;

/** `inScript`: the shell reads `${NAME}` itself, so only the forms of MCP clients are placeholders. */
function textFor(
  found: string,
  written: string | undefined,
  variables: Variables,
  inScript: boolean,
): { readonly text?: string; readonly problem?: string } {
  const { env, name, standard } = written?.match(VARIABLE)?.groups ?? {};
  if (inScript && env === undefined && !written?.startsWith('input:')) return { text: found };
  if (written?.startsWith('input:'))
    return { problem: `"${found}" asks a person; write \${env:NAME} instead` };
  if (name === undefined) return { problem: `"${found}" cannot be filled in; "$\${" writes it literally` };
  if (name === 'userHome' && env === undefined) return { text: homedir() };
  if (isOwnVariable(name)) return { problem: `"${found}" is for the gateway itself, not for a server` };
  const text = variables[name];
  if (text === undefined || (text === '' && standard !== undefined)) {
    if (standard !== undefined) return { text: standard };
    return { problem: `"${found}" cannot be filled in, because the gateway has no variable ${name}` };
  }
  return { text };
}

/** A command line is split first: the value of a variable stays in its word. */
function splitWords(fields: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  const { command, args } = fields;
  if (typeof command !== 'string' || args !== undefined || !command.includes('${')) return fields;
  const split = splitCommand(command);
  if ('problem' in split || split.words.length === 0) return fields;
  const [program, ...words] = split.words;
  return { ...fields, command: program, args: words };
}
