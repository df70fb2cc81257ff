// Which credentials a command sends to a gateway, and what it says when they are refused.

import { ownCommand } from '../../domain/own-command.ts';
import { NotLoggedIn, UsageError } from '../failures.ts';
import { CredentialsFile, credentialsPath } from './credentials-file.ts';

type Environment = Readonly<Record<string, string | undefined>>;

/** The credentials for one gateway. */
export interface RequestCredentials {
  /** Headers of every request; none when nobody is logged in there. */
  readonly headers: Readonly<Record<string, string>>;
  /** What the command fails with when the gateway answers 401 with this detail. */
  refused(detail: string): NotLoggedIn;
}

/**
 * STAGEDOOR_TOKEN or STAGEDOOR_API_KEY, else the token that `gateway login` got from this very URL. Throws UsageError
 * when both variables are set: the gateway would take them for two principals.
 */
export function requestCredentials(url: string, env: Environment): RequestCredentials {
  const { STAGEDOOR_TOKEN: token, STAGEDOOR_API_KEY: key } = env;
  if (token && key) throw new UsageError('STAGEDOOR_TOKEN and STAGEDOOR_API_KEY are both set: keep one');
  if (token) return fromEnvironment('STAGEDOOR_TOKEN', { Authorization: `Bearer ${token}` }, url);
  if (key) return fromEnvironment('STAGEDOOR_API_KEY', { 'X-API-Key': key }, url);

  const file = new CredentialsFile(credentialsPath(env));
  const kept = file.find(url);
  const expired = kept === undefined ? file.findExpired(url) : undefined;
  return {
    headers: kept === undefined ? {} : { Authorization: `Bearer ${kept.access_token}` },
    refused: () => {
      const { username = '<name>' } = kept ?? expired ?? {};
      const lack =
        expired === undefined
          ? `not logged in at ${url}`
          : `the login of ${expired.username} at ${url} expired at ${expired.expires_at}`;
      const login = ownCommand(`gateway login ${username}`);
      return new NotLoggedIn(`${lack}; run "${login}", or set STAGEDOOR_API_KEY`);
    },
  };
}

function fromEnvironment(
  variable: string,
  headers: Readonly<Record<string, string>>,
  url: string,
): RequestCredentials {
  const [value = ''] = Object.values(headers);
  if (/[^\x20-\x7e]/.test(value))
    throw new UsageError(`${variable} holds characters that no header may have`);
  return {
    headers,
    refused: (detail) => new NotLoggedIn(`${url} does not accept what ${variable} holds: ${detail}`),
  };
}
