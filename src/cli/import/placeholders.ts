// Fills the placeholders that clients write into their files: `${input:id}` and `${env:NAME}` of VS Code and
// Cursor, `${NAME}` and `${NAME:-default}` of Claude Code, folders. What the file and the environment do not have
// is asked for, once.

import { randomBytes, scryptSync, timingSafeEqual } from 'node:crypto';
import { basename, dirname, resolve } from 'node:path';
import { isOwnVariable } from '../../domain/instances/secret-names.ts';
import { isHint } from '../../templates/client-config.ts';
import { homeFolder } from '../../templates/command-exposure.ts';
import type { ImportedInstance, ImportInput } from '../../templates/imported-server.ts';
import { CommandFailure } from '../failures.ts';
import type { Terminal } from '../terminal.ts';

/** In these folders of a workspace, VS Code and Cursor keep its servers. */
const EDITOR_FOLDERS = ['.vscode', '.cursor'];

/** Fills the placeholders of one file, and asks once for each missing value that the file names; for a hint, at each server. */
export class Placeholders {
  readonly #terminal: Terminal;
  readonly #inputs: ReadonlyMap<string, ImportInput>;
  readonly #workspace: string;
  readonly #answers = new Map<string, string>();

  /** `folder`: that of the file. */
  constructor(terminal: Terminal, inputs: readonly ImportInput[], folder: string) {
    this.#terminal = terminal;
    this.#inputs = new Map(inputs.map((input) => [input.id, input]));
    this.#workspace = EDITOR_FOLDERS.includes(basename(folder)) ? dirname(folder) : folder;
  }

  /** The instance with all values. Throws CommandFailure for a value that is missing and cannot be asked for. */
  async filled(name: string, instance: ImportedInstance): Promise<ImportedInstance> {
    const texts = async (written: Readonly<Record<string, string>>) => {
      const filled: [string, string][] = [];
      for (const [key, text] of Object.entries(written))
        filled.push([
          key,
          isHint(key, text) ? await this.#typed(`${name}: ${key}`, key) : await this.#text(text),
        ]);
      return Object.fromEntries(filled);
    };
    const { command, args, working_dir, env_vars, secret_env_vars, endpoint, transport, headers } = instance;
    if (command === undefined)
      return { endpoint: await this.#text(endpoint ?? ''), transport, headers: await texts(headers ?? {}) };
    const words: string[] = [];
    for (const word of args ?? []) words.push(await this.#text(word));
    const variables = await texts(env_vars ?? {});
    const asked = Object.keys(variables).filter((each) => {
      const written = env_vars?.[each] ?? '';
      return [...this.#inputs.values()].some(
        ({ id, isSecret }) => isSecret && written.includes(`\${input:${id}}`),
      );
    });
    return {
      command: await this.#text(command),
      args: words,
      env_vars: variables,
      secret_env_vars: [...new Set([...(secret_env_vars ?? []), ...asked])],
      ...(working_dir === undefined
        ? {}
        : { working_dir: resolve(this.#workspace, await this.#text(working_dir)) }),
    };
  }

  async #text(text: string): Promise<string> {
    let filled = '';
    let rest = text;
    for (;;) {
      const found = /\$\{([^}]{1,200})\}/.exec(rest);
      if (found === null) return filled + rest;
      filled += rest.slice(0, found.index) + (await this.#value(found[1] ?? '', found[0]));
      rest = rest.slice(found.index + found[0].length);
    }
  }

  async #value(name: string, written: string): Promise<string> {
    const { env } = this.#terminal;
    const [, input] = /^input:(.+)$/.exec(name) ?? [];
    if (input !== undefined) return this.#input(input);
    if (name === 'userHome') return homeFolder(env);
    if (/^workspaceFolder(:.*)?$/.test(name)) return this.#workspace;
    if (/^workspaceFolderBasename(:.*)?$/.test(name)) return basename(this.#workspace);
    if (name === 'pathSeparator' || name === '/') return '/';
    const [, variable, usual] = /^(?:env:)?([A-Za-z_]\w*)(?::-(.*))?$/s.exec(name) ?? [];
    if (variable === undefined) return written; // for the program itself
    if (isOwnVariable(variable))
      throw new CommandFailure(`"${written}" is for the gateway itself, not for a server`);
    return env[variable] || usual || this.#ask(variable, `the variable ${variable}`);
  }

  #input(id: string): Promise<string> | string {
    const known = this.#inputs.get(id);
    const answered = this.#answers.get(id);
    if (answered !== undefined) return answered;
    if (!this.#terminal.canAsk && known?.default !== undefined) return known.default;
    return this.#ask(known?.description ?? id, id, known);
  }

  /** Asks for a value that several servers may use, once. */
  async #ask(question: string, key: string, input?: ImportInput): Promise<string> {
    const known = this.#answers.get(key);
    if (known !== undefined) return known;
    const answer = await this.#typed(question, key, input);
    this.#answers.set(key, answer);
    return answer;
  }

  /** Asks for a value with a hidden prompt: most values are secrets. */
  async #typed(question: string, key: string, input?: ImportInput): Promise<string> {
    if (!this.#terminal.canAsk)
      throw new CommandFailure(
        `it needs a value for ${key}: write it into the file, or run this at a terminal`,
      );
    const choices = input?.options === undefined ? '' : ` [${input.options.join(', ')}]`;
    const usual = input?.default === undefined ? '' : ` (default: ${input.isSecret ? '***' : input.default})`;
    const typed = await this.#terminal.askHidden(`${question}${choices}${usual}: `);
    const answer = typed === '' ? (input?.default ?? '') : typed;
    if (answer === '') throw new CommandFailure(`it needs a value for ${key}`);
    return answer;
  }
}

/**
 * A digest of the entry in the file, by which a later import sees that it is unchanged. It is slow to guess, because
 * it covers secrets.
 */
export function entryDigestOf(entry: unknown, salt = randomBytes(12).toString('hex')): string {
  return `${salt}:${scryptSync(JSON.stringify(entry), salt, 24).toString('hex')}`;
}

/** True for a digest that entryDigestOf made of an equal entry. */
export function isDigestOf(digest: unknown, entry: unknown): boolean {
  if (typeof digest !== 'string' || !/^[0-9a-f]{24}:[0-9a-f]{48}$/.test(digest)) return false;
  return timingSafeEqual(Buffer.from(digest), Buffer.from(entryDigestOf(entry, digest.slice(0, 24))));
}
