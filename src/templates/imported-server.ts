// Servers in the files of MCP clients and registries, as definitions of templates and, where the file says how to start or reach
// one, as instances: their form and their names. imported.ts reads the files.

import type { JsonObject } from '../domain/json/json.ts';
import { isTemplateId } from '../domain/template-name.ts';

/** An instance in the form of `POST /gateway/register`, with placeholders of the client in its texts. */
export interface ImportedInstance {
  readonly command?: string | undefined;
  readonly args?: readonly string[];
  readonly working_dir?: string | undefined;
  readonly env_vars?: Readonly<Record<string, string>>;
  readonly secret_env_vars?: readonly string[];
  readonly endpoint?: string | undefined;
  readonly transport?: string | undefined;
  readonly headers?: Readonly<Record<string, string>>;
}

export interface ImportedServer {
  /** The name of the server in the file. */
  readonly name: string;
  /** The id that it would have if it were alone. */
  readonly id: string;
  /** A template.json without its id, and without secrets. */
  readonly definition: JsonObject;
  /** The instance; undefined when the file says what the server needs, and not the values. */
  readonly instance?: ImportedInstance;
  /** The names of values that it needs beyond those in the file: of variables, headers and words. */
  readonly needs: readonly string[];
}

/** An entry that is not imported. `problem` completes "<name>: ". */
export interface RefusedEntry {
  readonly name: string;
  readonly problem: string;
  /** True when the owner of the file has turned it off. */
  readonly isDisabled?: boolean;
}

/** A value that is asked for: `${input:<id>}` of VS Code. */
export interface ImportInput {
  readonly id: string;
  readonly description: string;
  readonly isSecret: boolean;
  readonly default?: string | undefined;
  readonly options?: readonly string[] | undefined;
}

export interface ImportedFile {
  readonly servers: readonly ImportedServer[];
  readonly refused: readonly RefusedEntry[];
  readonly inputs: readonly ImportInput[];
}

/** The id for a name: in lower case, other characters as `-`. */
export function idOf(name: string): string {
  const id = name
    .normalize('NFKD')
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '-')
    .replaceAll(/^-+|-+$/g, '')
    .slice(0, 100)
    .replace(/-+$/, '');
  const named = /^[a-z]/.test(id) ? id : `server-${id}`.replace(/-$/, '');
  return isTemplateId(named) ? named : 'server';
}

/**
 * The wanted id, or, where another server has it (`isTaken`), that id with the first free number. Ids are made in the
 * order of the servers.
 */
export function freeId(wanted: string, isTaken: (id: string) => boolean): string {
  if (!isTaken(wanted)) return wanted;
  for (let number = 2; ; number += 1) {
    const id = `${wanted}-${number}`;
    if (!isTaken(id)) return id;
  }
}

/** The text that is equal for two definitions of the same server: its program and package, or its address. */
export function identityOf({ command, args, endpoint }: JsonObject): string {
  if (typeof command !== 'string') return String(endpoint);
  const [program, ...words] = [
    ...command.trim().split(/\s+/),
    ...(Array.isArray(args) ? args.map(String) : []),
  ];
  const first = words.find((word) => !word.startsWith('-')) ?? '';
  return `${program} ${first.replace(/(?<=.)@[^@/]*$/, '')}`;
}
