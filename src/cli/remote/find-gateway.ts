// Finds the gateway that a command is for, and the credentials for it.

import { ownCommand } from '../../domain/version.ts';
import { credentialsPath } from '../../templates/command-exposure.ts';
import { requestCredentials } from '../accounts/request-credentials.ts';
import { trustUrl } from '../accounts/stored-tokens.ts';
import { DEFAULT_URLS, daemonHere, otherUrlHere } from '../background/daemon-files.ts';
import type { CommandInput } from '../command.ts';
import { CommandFailure, UsageError } from '../failures.ts';
import type { Terminal } from '../terminal.ts';
import { answeringUrl } from './answering-url.ts';
import { Remote } from './remote.ts';

/**
 * The gateway that `--url` or STAGEDOOR_URL names, whether it answers or not; else the first one that answers at a
 * usual address. `isTrusted`: whether --trust was given.
 */
export async function findGateway(
  written: string | undefined,
  terminal: Pick<Terminal, 'env' | 'keySource' | 'folder' | 'busy' | 'note'>,
  isTrusted = false,
): Promise<Remote | undefined> {
  const url = namedUrl(written, terminal.env) ?? (await answeringUrl(terminal));
  if (url === undefined) return undefined;
  const path = credentialsPath(terminal.env);
  if (isTrusted && url.startsWith('http:') && trustUrl(path, url))
    terminal.note(
      `${url} now gets keys and tokens without a proof; "${ownCommand('gateway logout')} --url ${url}" ends that`,
    );
  const credentials = requestCredentials(url, terminal);
  return new Remote(url, credentials, terminal.busy, terminal.note);
}

/** The address of a gateway from `--url`, else STAGEDOOR_URL. */
export function namedUrl(written: string | undefined, env: Terminal['env']): string | undefined {
  const text = written ?? (env.STAGEDOOR_URL || undefined);
  if (text === undefined) return undefined;
  const url = URL.parse(text);
  if (url === null || !/^https?:$/.test(url.protocol)) {
    const where = written === undefined ? 'STAGEDOOR_URL' : '--url';
    throw new UsageError(`${where} must be a URL such as ${DEFAULT_URLS[0]}, not "${text}"`);
  }
  return `${url.origin}${url.pathname}`.replace(/\/+$/, '');
}

/** The gateway that `findGateway` finds. Throws CommandFailure when no gateway answers. */
export async function requireGateway(input: CommandInput, terminal: Terminal): Promise<Remote> {
  const remote = await findGateway(input.text('url'), terminal, input.has('trust'));
  if (remote !== undefined) return remote;
  const here = await daemonHere(terminal);
  const other = otherUrlHere(terminal);
  const next =
    other === undefined
      ? `start one with "${ownCommand('gateway start')}" or name it with --url`
      : `name that of this folder with --url ${other}`;
  throw new CommandFailure(
    here?.lost ?? `no gateway answers at ${here?.url ?? DEFAULT_URLS.join(' or ')}; ${next}`,
  );
}
