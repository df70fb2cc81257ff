// The tokens that `gateway login` stores, by the URL of their gateway, and the URLs that get credentials without a proof.

import type { TokenProof } from '../../auth/secrets/gateway-proofs.ts';
import { readRegularFile } from '../../config/read-file.ts';
import { codeOf, fileFault } from '../../domain/errors/errors.ts';
import { jsonIn } from '../../domain/json/json.ts';
import { DAY_MS } from '../../domain/time/clock.ts';
import { CommandFailure } from '../failures.ts';
import { changePrivateFile, writePrivateFile } from '../private-file.ts';
import { elementsOf, fields } from '../remote/answers.ts';

export interface StoredToken {
  readonly username: string;
  readonly access_token: string;
  /** ISO 8601. */
  readonly expires_at: string;
  /** The key id from the login, for the proof of the gateway. */
  readonly proof_key_id?: string;
  readonly proof_secret?: string;
  /** The token that renews the token of a sign-in by browser. */
  readonly refresh_token?: string;
}

/** The time after its last token for which a sign-in by browser can be renewed, in ms. */
const RENEWABLE_MS = 30 * DAY_MS;

/** The longest life of a token that is kept, in seconds: a date cannot be as late as a gateway can say. */
const MAX_SECONDS = 10 * 365 * 24 * 3_600;

/** The token in an answer of a gateway to a login. Older gateways send nothing for a proof. */
export function storedTokenOf(answer: unknown, nowMs: number = Date.now()): StoredToken {
  const { access_token: token, expires_in: seconds, refresh_token: refresh, username } = fields(answer);
  const { proof_key_id: keyId, proof_secret: secret } = fields(answer);
  if (
    typeof token !== 'string' ||
    typeof seconds !== 'number' ||
    !(seconds > 0) ||
    typeof username !== 'string'
  )
    throw new CommandFailure('the gateway answered the login without a token');
  return {
    username,
    access_token: token,
    expires_at: new Date(nowMs + Math.min(seconds, MAX_SECONDS) * 1_000).toISOString(),
    ...(typeof keyId === 'string' &&
      typeof secret === 'string' && { proof_key_id: keyId, proof_secret: secret }),
    ...(typeof refresh === 'string' && { refresh_token: refresh }),
  };
}

/** The token that exactly this URL issued, also an expired one. */
export function findToken(path: string, url: string): StoredToken | undefined {
  return readCredentials(path).tokens.get(url);
}

/** Stores a token in place of the previous one; removes those that have expired, and can no longer be renewed. */
export function storeToken(path: string, url: string, token: StoredToken, nowMs: number = Date.now()): void {
  changePrivateFile(path, () => {
    const { tokens, trusted } = readCredentials(path);
    const others = [...tokens].filter(
      ([, each]) => !isExpired(each, nowMs - (each.refresh_token === undefined ? 0 : RENEWABLE_MS)),
    );
    writeCredentials(path, { tokens: new Map([...others, [url, token]]), trusted });
  });
}

/** Stores the token that was got with `before`, unless the user has logged out or in again meanwhile. */
export function replaceToken(path: string, url: string, before: StoredToken, token: StoredToken): void {
  changePrivateFile(path, () => {
    const { tokens, trusted } = readCredentials(path);
    if (tokens.get(url)?.refresh_token === before.refresh_token)
      writeCredentials(path, { tokens: tokens.set(url, token), trusted });
  });
}

/** Removes the token of a URL, also an expired one, and returns it; undefined when there was none. Ends the trust in the URL. */
export function removeToken(path: string, url: string): StoredToken | undefined {
  if (findToken(path, url) === undefined && !isTrusted(path, url)) return undefined;
  return changePrivateFile(path, () => {
    const { tokens, trusted } = readCredentials(path);
    const token = tokens.get(url);
    tokens.delete(url);
    trusted.delete(url);
    writeCredentials(path, { tokens, trusted });
    return token;
  });
}

/** Whether credentials are sent to this URL without a proof. */
export function isTrusted(path: string, url: string): boolean {
  return readCredentials(path).trusted.has(url);
}

/** Lets credentials be sent to this URL without a proof from now on. False when that was so before. */
export function trustUrl(path: string, url: string): boolean {
  if (isTrusted(path, url)) return false;
  changePrivateFile(path, () => {
    const { tokens, trusted } = readCredentials(path);
    writeCredentials(path, { tokens, trusted: trusted.add(url) });
  });
  return true;
}

interface StoredCredentials {
  /** The tokens by URL. */
  readonly tokens: Map<string, StoredToken>;
  /** The URLs that get credentials without a proof. */
  readonly trusted: Set<string>;
}

function readCredentials(path: string): StoredCredentials {
  try {
    // An invalid document holds none: the next login replaces it.
    const { tokens, trusted } = fields(jsonIn(readRegularFile(path).toString('utf8')));
    const valid = Object.entries(fields(tokens)).filter(([, token]) => 'access_token' in fields(token));
    const urls = elementsOf(trusted).map(String);
    return { tokens: new Map(valid as [url: string, StoredToken][]), trusted: new Set(urls) };
  } catch (error) {
    const code = codeOf(error);
    if (code === 'ENOENT' || code === 'ENOTDIR') return { tokens: new Map(), trusted: new Set() };
    throw new CommandFailure(`${path} cannot be read (${fileFault(error)})`, { cause: error });
  }
}

function writeCredentials(path: string, { tokens, trusted }: StoredCredentials): void {
  const document = {
    tokens: Object.fromEntries(tokens),
    ...(trusted.size === 0 ? {} : { trusted: [...trusted] }),
  };
  writePrivateFile(path, `${JSON.stringify(document, null, 2)}\n`);
}

/** True when the token has expired, or its time cannot be read. */
export function isExpired({ expires_at: expiresAt }: StoredToken, nowMs: number): boolean {
  return !(Date.parse(expiresAt) > nowMs);
}

/** The key id and the secret that its gateway can prove to know; undefined without a token, and for one of an older gateway. */
export function provableToken(token: StoredToken | undefined): TokenProof | undefined {
  const { proof_key_id: keyId, proof_secret: secret } = token ?? {};
  return keyId === undefined || secret === undefined ? undefined : { keyId, secret };
}
