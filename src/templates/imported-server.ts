// Servers in the files of MCP clients and registries, as definitions of templates and, where the file says how to start or reach
// one, as instances: their form and their names. imported.ts reads the files.

import type { JsonObject } from '../domain/json/json.ts';
import { isTemplateId } from '../domain/template-name.ts';

/** As `POST /gateway/register` takes it, with placeholders of the client in its texts. */
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
  /** Name of the server in the file. */
  readonly name: string;
  /** The id that it would have if it were alone. */
  readonly id: string;
  /** A template.json without its id, and without secrets. */
  readonly definition: JsonObject;
  /** Undefined: the file says what the server needs, not what it gets. */
  readonly instance?: ImportedInstance;
  /** Values that it needs beyond those that the file has: names of variables, headers and words. */
  readonly needs: readonly string[];
}

/** An entry that is not imported. `problem` completes "<name>: ". */
export interface RefusedEntry {
  readonly name: string;
  readonly problem: string;
  /** True: its owner wants it so. */
  readonly isDisabled?: boolean;
}

/** `${input:<id>}` of VS Code: a value that is asked for. */
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

/** Lower case, other characters as `-`. */
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

/** The ids in the order of the servers: `isTaken` for one that another server has; the first free number is added. */
export function freeId(wanted: string, isTaken: (id: string) => boolean): string {
  if (!isTaken(wanted)) return wanted;
  for (let number = 2; ; number += 1) {
    const id = `${wanted}-${number}`;
    if (!isTaken(id)) return id;
  }
}

/** What makes two definitions of one name the same server: its program and package, or its address. */
export function identityOf({ command, args, endpoint }: JsonObject): string {
  if (typeof command !== 'string') return String(endpoint);
  const [program, ...words] = [
    ...command.trim().split(/\s+/),
    ...(Array.isArray(args) ? args.map(String) : []),
  ];
  const first = words.find((word) => !word.startsWith('-')) ?? '';
  return `${program} ${first.replace(/(?<=.)@[^@/]*$/, '')}`;
}
