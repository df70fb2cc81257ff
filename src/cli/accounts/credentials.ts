// The credentials that a command sends to a gateway, the tokens that `gateway login` stores, and the gateways that have a name in
// environments.json.

import { readFileSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { codeOf } from '../../domain/errors.ts';
import { jsonIn } from '../../domain/json.ts';
import { ownCommand } from '../../domain/version.ts';
import { credentialsPath } from '../../templates/command-exposure.ts';
import { fields } from '../answers.ts';
import { CommandFailure, UsageError } from '../failures.ts';
import { writePrivateFile } from '../private-file.ts';
import type { Terminal } from '../terminal.ts';

export interface StoredToken {
  readonly username: string;
  readonly access_token: string;
  /** ISO 8601. */
  readonly expires_at: string;
}

/** The token that exactly this URL issued, also an expired one. */
export function findToken(path: string, url: string): StoredToken | undefined {
  return readTokens(path).get(url);
}

/** Stores a token in place of the previous one; removes those that have expired. */
export function storeToken(path: string, url: string, token: StoredToken, nowMs: number = Date.now()): void {
  const others = [...readTokens(path)].filter(([, each]) => !isExpired(each, nowMs));
  writeTokens(path, [...others, [url, token]]);
}

/** Removes the token of a URL, also an expired one, and returns it; undefined when there was none. */
export function removeToken(path: string, url: string): StoredToken | undefined {
  const tokens = readTokens(path);
  const token = tokens.get(url);
  if (tokens.delete(url)) writeTokens(path, [...tokens]);
  return token;
}

function readTokens(path: string): Map<string, StoredToken> {
  try {
    // An invalid document holds none: the next login replaces it.
    const { tokens } = fields(jsonIn(readFileSync(path, 'utf8')));
    const valid = Object.entries(fields(tokens)).filter(([, token]) => 'access_token' in fields(token));
    return new Map(valid as [url: string, StoredToken][]);
  } catch (error) {
    const code = codeOf(error);
    if (code === 'ENOENT' || code === 'ENOTDIR') return new Map();
    throw new CommandFailure(`${path} cannot be read (${code ?? 'unknown reason'})`, { cause: error });
  }
}

function writeTokens(path: string, tokens: readonly (readonly [url: string, StoredToken])[]): void {
  writePrivateFile(path, `${JSON.stringify({ tokens: Object.fromEntries(tokens) }, null, 2)}\n`);
}

/** Also true for a time that cannot be read. */
function isExpired({ expires_at: expiresAt }: StoredToken, nowMs: number): boolean {
  return !(Date.parse(expiresAt) > nowMs);
}

export interface RequestCredentials {
  /** Headers of every request; none without credentials. */
  readonly headers: Readonly<Record<string, string>>;
  /** The reason of the failure when the gateway answers 401 with this detail. */
  refused(detail: string): string;
}

/** STAGEDOOR_API_KEY, else the token that `gateway login` got from exactly this URL. */
export function requestCredentials(url: string, env: Terminal['env']): RequestCredentials {
  const { STAGEDOOR_API_KEY: key } = env;
  if (key) {
    if (/[^\x20-\x7e]/.test(key))
      throw new UsageError('STAGEDOOR_API_KEY contains characters that are not allowed in a header');
    return {
      headers: { 'X-API-Key': key },
      refused: (detail) => `${url} rejects STAGEDOOR_API_KEY: ${detail}`,
    };
  }
  const stored = findToken(credentialsPath(env), url);
  const hasExpired = stored !== undefined && isExpired(stored, Date.now());
  return {
    headers: stored === undefined || hasExpired ? {} : { Authorization: `Bearer ${stored.access_token}` },
    refused: () => {
      const { username = '<name>', expires_at: at } = stored ?? {};
      const lack = hasExpired
        ? `the login of ${username} at ${url} expired at ${at}`
        : `not logged in at ${url}`;
      const login = ownCommand(`gateway login ${username}`);
      return `${lack}; run "${login}", or set STAGEDOOR_API_KEY`;
    },
  };
}

// --- environments.json beside the tokens, written by hand; `--env NAME` reads it:
//   { "prod": { "url": "https://mcp.example.com", "key_variable": "PROD_KEY" }, "lab": { "url": "http://lab:8080", "key": "sd_..." } }

/**
 * The variables of a command for the environment of this name: its URL and key replace those that are set. `keyVariable`: the variable
 * that the file names for the key. Throws UsageError when there is no such environment, or the file cannot be read.
 */
export function namedEnvironment(
  name: string | undefined,
  env: Terminal['env'],
): { readonly env: Terminal['env']; readonly keyVariable?: string | undefined } {
  if (name === undefined) return { env };
  const path = join(dirname(credentialsPath(env)), 'environments.json');
  const all = read(path);
  const { url, key, key_variable: written } = fields(Object.hasOwn(all, name) ? all[name] : undefined);
  if (typeof url !== 'string')
    throw new UsageError(`there is no environment "${name}" with a url in ${path}`);
  // On Windows other users cannot read the user's folder.
  if (key !== undefined && process.platform !== 'win32' && (statSync(path).mode & 0o077) !== 0) {
    throw new UsageError(`${path} holds a key and can be read by other users: run "chmod 600 ${path}"`);
  }
  const keyVariable = typeof written === 'string' ? written : undefined;
  const value = keyVariable === undefined ? key : env[keyVariable];
  const known = typeof value === 'string' && value !== '' ? value : undefined;
  return { env: { ...env, STAGEDOOR_URL: url, STAGEDOOR_API_KEY: known }, keyVariable };
}

function read(path: string): Readonly<Record<string, unknown>> {
  try {
    return fields(JSON.parse(readFileSync(path, 'utf8')));
  } catch (error) {
    const reason = codeOf(error) ?? 'it is not JSON';
    throw new UsageError(`--env takes KEY=VALUE, or a name in ${path}: ${reason}`, { cause: error });
  }
}
