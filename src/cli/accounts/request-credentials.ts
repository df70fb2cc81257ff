// The credentials that a command sends to a gateway, and the gateways that have a name in environments.json.

import { statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { readRegularFile } from '../../config/read-file.ts';
import { codeOf, fileFault } from '../../domain/errors/errors.ts';
import { didYouMean } from '../../domain/nearest.ts';
import { credentialsPath } from '../../templates/command-exposure.ts';
import { commandAt } from '../background/daemon-files.ts';
import { CommandFailure, UsageError } from '../failures.ts';
import { fields } from '../remote/answers.ts';
import type { Terminal } from '../terminal.ts';
import { RENEWED_MS, renewedToken } from './renewal.ts';
import { provableKey, requireProof } from './require-proof.ts';
import { findToken, isExpired, isTrusted, provableToken } from './stored-tokens.ts';

export interface RequestCredentials {
  /** The headers of every request; none without credentials. They change when a token was renewed. */
  readonly headers: Readonly<Record<string, string>>;
  /**
   * Renews the credentials if need be; awaited before the proof, see `renewedToken`. `areRefused`: in any case, because the
   * gateway refuses the present ones. Absent where nothing can be renewed.
   */
  renew?(timeoutMs?: number, areRefused?: boolean): Promise<void>;
  /** Lets the gateway prove itself; awaited before the headers are sent, see `requireProof`. Absent where no proof is needed. */
  prove?(timeoutMs?: number): Promise<void>;
  /** Kind and id of the credentials, as a clause: `the API key ab12 in STAGEDOOR_API_KEY`. */
  readonly name: string;
  /** The reason of the failure when the gateway answers 401 with this detail. */
  refused(detail: string): string;
}

/** The answer to a request, which is sent once more with renewed credentials when the gateway refuses the present ones. */
export async function renewing(
  { renew }: RequestCredentials,
  send: () => Promise<Response>,
  timeoutMs?: number,
): Promise<Response> {
  const response = await send();
  if (response.status !== 401 || renew === undefined) return response;
  await response.body?.cancel();
  await renew(timeoutMs, true);
  return send();
}

/** What holds the credentials of a command. */
export type KeyHolder = Pick<Terminal, 'env' | 'keySource' | 'folder'>;

const API_KEY = 'STAGEDOOR_API_KEY';

/** The key in STAGEDOOR_API_KEY, else the token that `gateway login` got from exactly this URL. */
export function requestCredentials(url: string, terminal: KeyHolder): RequestCredentials {
  const { STAGEDOOR_API_KEY: key } = terminal.env;
  const path = credentialsPath(terminal.env);
  const needsProof = url.startsWith('http:') && !isTrusted(path, url);
  return key ? ofKey(key, url, needsProof, terminal) : ofLogin(path, url, needsProof, terminal);
}

function ofKey(
  key: string,
  url: string,
  needsProof: boolean,
  { keySource: source = API_KEY }: KeyHolder,
): RequestCredentials {
  if (/[^\x20-\x7e]/.test(key))
    throw new UsageError(`${source} contains characters that are not allowed in a header`);
  const provable = provableKey(key);
  const name = `the API key ${provable === undefined ? '' : `${provable.keyId} `}in ${source}`;
  const remedy = source === API_KEY ? 'unset or replace it' : 'replace it';
  return {
    name,
    headers: { 'X-API-Key': key },
    ...(needsProof && {
      prove: async (timeoutMs?: number) => {
        if (provable === undefined)
          throw new CommandFailure(
            `${name} was not sent to ${url}: it does not have the form of a key, sd_<id>_<secret>; ${remedy}, or repeat with --trust`,
          );
        await requireProof(url, { provable, name, remedy }, timeoutMs);
      },
    }),
    refused: (detail) => `${url} rejects ${name}: ${detail}`,
  };
}

function ofLogin(path: string, url: string, needsProof: boolean, terminal: KeyHolder): RequestCredentials {
  const { keySource: source = API_KEY } = terminal;
  let stored = findToken(path, url);
  const canRenew = stored?.refresh_token !== undefined;
  const hasExpired = stored !== undefined && !canRenew && isExpired(stored, Date.now());
  const isUsable = stored !== undefined && !hasExpired;
  const name = isUsable ? `the login of ${stored?.username}` : 'no credentials';
  const prove = async (timeoutMs?: number) => {
    const remedy = `log in again with "${commandAt('gateway login <name>', url, terminal)}"`;
    await requireProof(url, { provable: provableToken(stored), name, remedy }, timeoutMs);
  };
  return {
    name,
    get headers(): Readonly<Record<string, string>> {
      return isUsable ? { Authorization: `Bearer ${stored?.access_token}` } : {};
    },
    ...(canRenew && {
      renew: async (timeoutMs?: number, areRefused = false) => {
        if (!areRefused && stored !== undefined && !isExpired(stored, Date.now() + RENEWED_MS)) return;
        stored = await renewedToken({
          path,
          url,
          refused: areRefused ? stored?.access_token : undefined,
          needsProof,
          timeoutMs,
          login: commandAt('gateway login --sso', url, terminal),
        });
      },
    }),
    ...(isUsable && needsProof && { prove }),
    refused: () => {
      const { username = '<name>', expires_at: at } = stored ?? {};
      const lack = hasExpired
        ? `the login of ${username} at ${url} expired at ${at}`
        : canRenew
          ? `the login of ${username} at ${url} has ended`
          : `not logged in at ${url}`;
      const login = commandAt(canRenew ? 'gateway login --sso' : `gateway login ${username}`, url, terminal);
      return `${lack}; run "${login}", or ${/^\w+$/.test(source) ? 'set' : 'name a key in'} ${source}`;
    },
  };
}

// --- environments.json beside the tokens, written by hand; `--env NAME` reads it:
//   { "prod": { "url": "https://mcp.example.com", "key_variable": "PROD_KEY" }, "lab": { "url": "http://lab:8080", "key": "sd_..." } }

/**
 * The variables of a command for the environment of this name: its URL and key replace those that are set.
 * `keyVariable`: the variable that the file names for the key; `keySource`: see `Terminal`. Throws UsageError when
 * there is no such environment, or the file cannot be read.
 */
export function namedEnvironment(
  name: string | undefined,
  env: Terminal['env'],
): Pick<Terminal, 'env' | 'keySource'> & { readonly keyVariable?: string | undefined } {
  if (name === undefined) return { env };
  const path = join(dirname(credentialsPath(env)), 'environments.json');
  const all = read(path);
  const { url, key, key_variable: written } = fields(Object.hasOwn(all, name) ? all[name] : undefined);
  if (typeof url !== 'string')
    throw new UsageError(
      [`there is no environment "${name}" with a url in ${path}`, didYouMean(name, Object.keys(all)) ?? []]
        .flat()
        .join('; '),
    );
  // On Windows other users cannot read the user's folder.
  if (key !== undefined && process.platform !== 'win32' && (statSync(path).mode & 0o077) !== 0) {
    throw new UsageError(`${path} holds a key and can be read by other users: run "chmod 600 ${path}"`);
  }
  const keyVariable = typeof written === 'string' ? written : undefined;
  const value = keyVariable === undefined ? key : env[keyVariable];
  const known = typeof value === 'string' && value !== '' ? value : undefined;
  const keySource = keyVariable ?? path;
  return { env: { ...env, STAGEDOOR_URL: url, STAGEDOOR_API_KEY: known }, keyVariable, keySource };
}

function read(path: string): Readonly<Record<string, unknown>> {
  try {
    return fields(JSON.parse(readRegularFile(path).toString('utf8')));
  } catch (error) {
    const reason = codeOf(error) === undefined ? 'it is not JSON' : fileFault(error);
    throw new UsageError(`--env takes KEY=VALUE, or a name in ${path}: ${reason}`, { cause: error });
  }
}
