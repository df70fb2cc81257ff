// The credentials that a command sends to a gateway, the tokens that `gateway login` stores, and the gateways that have a name in
// environments.json.

import { readFileSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { codeOf } from '../../domain/errors.ts';
import { jsonIn } from '../../domain/json.ts';
import { ownCommand } from '../../domain/version.ts';
import { credentialsPath } from '../../templates/command-exposure.ts';
import { fields, itemsOf } from '../answers.ts';
import { CommandFailure, UsageError } from '../failures.ts';
import { writePrivateFile } from '../private-file.ts';
import type { Terminal } from '../terminal.ts';
import { provableKey, requireProof } from './proof.ts';

export interface StoredToken {
  readonly username: string;
  readonly access_token: string;
  /** ISO 8601. */
  readonly expires_at: string;
  /** Of the login, for the proof of the gateway. */
  readonly proof_key_id?: string;
  readonly proof_secret?: string;
}

/** The token that exactly this URL issued, also an expired one. */
export function findToken(path: string, url: string): StoredToken | undefined {
  return readCredentials(path).tokens.get(url);
}

/** Stores a token in place of the previous one; removes those that have expired. */
export function storeToken(path: string, url: string, token: StoredToken, nowMs: number = Date.now()): void {
  const { tokens, trusted } = readCredentials(path);
  const others = [...tokens].filter(([, each]) => !isExpired(each, nowMs));
  writeCredentials(path, { tokens: new Map([...others, [url, token]]), trusted });
}

/** Removes the token of a URL, also an expired one, and returns it; undefined when there was none. Ends the trust in the URL. */
export function removeToken(path: string, url: string): StoredToken | undefined {
  const { tokens, trusted } = readCredentials(path);
  const token = tokens.get(url);
  const wasTrusted = trusted.delete(url);
  if (tokens.delete(url) || wasTrusted) writeCredentials(path, { tokens, trusted });
  return token;
}

/** From now on credentials are sent to this URL without a proof. False when that was so before. */
export function trustUrl(path: string, url: string): boolean {
  const { tokens, trusted } = readCredentials(path);
  if (trusted.has(url)) return false;
  writeCredentials(path, { tokens, trusted: trusted.add(url) });
  return true;
}

interface StoredCredentials {
  /** By URL. */
  readonly tokens: Map<string, StoredToken>;
  /** URLs that get credentials without a proof. */
  readonly trusted: Set<string>;
}

function readCredentials(path: string): StoredCredentials {
  try {
    // An invalid document holds none: the next login replaces it.
    const { tokens, trusted } = fields(jsonIn(readFileSync(path, 'utf8')));
    const valid = Object.entries(fields(tokens)).filter(([, token]) => 'access_token' in fields(token));
    const urls = itemsOf(trusted).map(String);
    return { tokens: new Map(valid as [url: string, StoredToken][]), trusted: new Set(urls) };
  } catch (error) {
    const code = codeOf(error);
    if (code === 'ENOENT' || code === 'ENOTDIR') return { tokens: new Map(), trusted: new Set() };
    throw new CommandFailure(`${path} cannot be read (${code ?? 'unknown reason'})`, { cause: error });
  }
}

function writeCredentials(path: string, { tokens, trusted }: StoredCredentials): void {
  const document = {
    tokens: Object.fromEntries(tokens),
    ...(trusted.size === 0 ? {} : { trusted: [...trusted] }),
  };
  writePrivateFile(path, `${JSON.stringify(document, null, 2)}\n`);
}

/** Also true for a time that cannot be read. */
function isExpired({ expires_at: expiresAt }: StoredToken, nowMs: number): boolean {
  return !(Date.parse(expiresAt) > nowMs);
}

export interface RequestCredentials {
  /** Headers of every request; none without credentials. */
  readonly headers: Readonly<Record<string, string>>;
  /** Awaited before the headers are sent; see `requireProof`. Absent where no proof is needed. */
  prove?(timeoutMs?: number): Promise<void>;
  /** Their kind and id, as a clause: `the API key ab12 in STAGEDOOR_API_KEY`. */
  readonly name: string;
  /** The reason of the failure when the gateway answers 401 with this detail. */
  refused(detail: string): string;
}

/** STAGEDOOR_API_KEY, else the token that `gateway login` got from exactly this URL. */
export function requestCredentials(url: string, env: Terminal['env']): RequestCredentials {
  const { STAGEDOOR_API_KEY: key } = env;
  const path = credentialsPath(env);
  const needsProof = url.startsWith('http:') && !readCredentials(path).trusted.has(url);
  if (key) {
    if (/[^\x20-\x7e]/.test(key))
      throw new UsageError('STAGEDOOR_API_KEY contains characters that are not allowed in a header');
    const id = /^sd_([^_]+)_/.exec(key)?.[1];
    const name = id === undefined ? 'STAGEDOOR_API_KEY' : `the API key ${id} in STAGEDOOR_API_KEY`;
    return {
      name,
      headers: { 'X-API-Key': key },
      ...(needsProof && {
        prove: (timeoutMs?: number) => requireProof(url, provableKey(key), 'STAGEDOOR_API_KEY', timeoutMs),
      }),
      refused: (detail) => `${url} rejects ${name}: ${detail}`,
    };
  }
  const stored = findToken(path, url);
  const hasExpired = stored !== undefined && isExpired(stored, Date.now());
  const isUsable = stored !== undefined && !hasExpired;
  return {
    name: isUsable ? `the login of ${stored.username}` : 'no credentials',
    headers: isUsable ? { Authorization: `Bearer ${stored.access_token}` } : {},
    ...(isUsable &&
      needsProof && {
        prove: (timeoutMs?: number) =>
          requireProof(url, provableToken(stored), `the login of ${stored.username}`, timeoutMs),
      }),
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

function provableToken({ proof_key_id: keyId, proof_secret: secret }: StoredToken) {
  return keyId === undefined || secret === undefined ? undefined : { keyId, secret };
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
