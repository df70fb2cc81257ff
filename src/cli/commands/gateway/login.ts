// `stagedoor gateway login | logout`: gets a token from a running gateway for later commands, or ends and
// removes it. The token is never printed; accounts/request-credentials.ts stores it.

import { isLoopback } from '../../../domain/local-address.ts';
import { credentialsPath } from '../../../templates/command-exposure.ts';
import { PASSWORD_OPTION } from '../../accounts/account-client.ts';
import { readPassword } from '../../accounts/account-options.ts';
import { endSignIn } from '../../accounts/renewal.ts';
import { type RequestCredentials, requestCredentials } from '../../accounts/request-credentials.ts';
import { ProofUnavailable } from '../../accounts/require-proof.ts';
import { removeToken, type StoredToken, storedTokenOf, storeToken } from '../../accounts/stored-tokens.ts';
import { usualUrls } from '../../background/daemon-files.ts';
import { type Command, type CommandInput, JSON_OPTION } from '../../command.ts';
import { CommandFailure, UsageError } from '../../failures.ts';
import { duration, printResult } from '../../output.ts';
import { answerOfGateway, SEEK_MS, variantsOf } from '../../remote/answering-url.ts';
import { fields } from '../../remote/answers.ts';
import { CLIENT_OPTIONS } from '../../remote/client-options.ts';
import { namedUrl, requireGateway } from '../../remote/find-gateway.ts';
import { Remote } from '../../remote/remote.ts';
import { type Terminal, terminalWith } from '../../terminal.ts';

export const gatewayLogin: Command = {
  name: 'gateway login',
  positionals: '[username]',
  summary: 'Log in to a gateway, with a password or by a browser; the token is stored for later commands',
  options: {
    '--sso': 'Sign in by a browser on this machine, also with an account of the company; no user name',
    '--device': 'Sign in by a browser on any machine: prints an address and a code; no user name',
    '--no-browser': 'With --sso, print the address and open no browser',
    ...PASSWORD_OPTION,
    ...CLIENT_OPTIONS,
  },
  examples: [
    'gateway login admin',
    'gateway login admin --password - < password.txt',
    'gateway login --sso --no-browser',
    'gateway login --device',
  ],
  run: async (input, terminal) => {
    const [username] = input.positionals;
    const way = ['sso', 'device'].find((each) => input.has(each));
    input.refuseBoth('sso', 'device');
    if (way !== undefined) input.refuseBoth(way, 'password');
    if (way !== undefined && username !== undefined) throw new UsageError(`--${way} takes no user name`);
    if (way === undefined && username === undefined)
      throw new UsageError('gateway login needs a user name, --sso or --device');
    // Finds the gateway before the user types a password.
    const gateway = await requireGateway(input, terminal);
    const token =
      way !== undefined
        ? await loginByBrowser(gateway.url, input, terminal)
        : await loginWithPassword(gateway, String(username), input, terminal);
    const path = credentialsPath(terminal.env);
    storeToken(path, gateway.url, token);
    const { username: name, expires_at: expiresAt, refresh_token: refresh } = token;
    const done = { url: gateway.url, username: name, expires_at: expiresAt };
    const seconds = Math.round((Date.parse(expiresAt) - Date.now()) / 1_000);
    const span = refresh === undefined ? `for ${duration(seconds)}` : 'until "gateway logout"';
    const text = `${name} is logged in at ${gateway.url} ${span}; the token is in ${path}`;
    printResult(input, terminal, done, text);
    if (terminal.env.STAGEDOOR_API_KEY)
      terminal.note('warning: STAGEDOOR_API_KEY is set and takes precedence over this login');
    await warnUnproven(gateway.url, terminal);
    return 0;
  },
};

function withoutKey(terminal: Terminal): Terminal {
  return terminalWith(terminal, { env: { ...terminal.env, STAGEDOOR_API_KEY: undefined } });
}

/** Warns where the address leads to a proxy or a mapped port: later commands send the token only after a proof. */
async function warnUnproven(url: string, terminal: Terminal): Promise<void> {
  const { prove } = requestCredentials(url, withoutKey(terminal));
  try {
    await prove?.(SEEK_MS);
  } catch (error) {
    if (!(error instanceof CommandFailure) || error instanceof ProofUnavailable) return;
    const fault = `${url} did not prove that it knows this login, for example because a proxy or a mapped port is in between`;
    terminal.note(`warning: ${fault}; if you trust this address, give the next command --trust, once`);
  }
}

async function loginByBrowser(url: string, input: CommandInput, terminal: Terminal): Promise<StoredToken> {
  // Loaded on demand: it loads a server.
  const { signInByBrowser, signInByDevice } = await import('../../accounts/browser-sign-in.ts');
  if (input.has('device')) return signInByDevice(url, terminal);
  return signInByBrowser(url, terminal, { opensBrowser: input.switch('browser') !== false });
}

async function loginWithPassword(
  gateway: Remote,
  username: string,
  input: CommandInput,
  terminal: Terminal,
): Promise<StoredToken> {
  const { protocol, hostname } = new URL(gateway.url);
  if (protocol === 'http:' && !isLoopback(hostname))
    terminal.note(`warning: the password travels to ${hostname} without encryption; use https there`);
  const question = `Password of ${username} at ${gateway.url}`;
  const password = await readPassword(input, terminal, { question, isNew: false });
  const form = { username, password };
  const answer = fields(await gateway.request('/auth/login', { method: 'POST', form }));
  return storedTokenOf({ ...answer, username });
}

/** Removes a token and ends it at its gateway. Works without the gateway, too: then the token stays valid until it expires. */
export const gatewayLogout: Command = {
  name: 'gateway logout',
  summary: 'End and forget the token of a gateway',
  options: {
    '--url <url>':
      'Gateway to log out of; default STAGEDOOR_URL, else the gateway in the background here, 127.0.0.1:8080 and :8000, by http and https',
    ...JSON_OPTION,
  },
  examples: ['gateway logout'],
  run: async (input, terminal) => {
    const path = credentialsPath(terminal.env);
    const named = namedUrl(input.text('url'), terminal.env);
    const removed = (named === undefined ? usualUrls(terminal).flatMap(variantsOf) : [named]).flatMap(
      (url) => {
        const credentials = requestCredentials(url, withoutKey(terminal));
        const token = removeToken(path, url);
        return token === undefined ? [] : [{ url, token, credentials }];
      },
    );
    const urls = removed.map(({ url }) => url);
    const text = urls.length === 0 ? 'not logged in' : `logged out of ${urls.join(', ')}`;
    printResult(input, terminal, { logged_out: urls }, text);
    await Promise.all(removed.map((each) => endToken(each, terminal)));
    return 0;
  },
};

interface Removed {
  readonly url: string;
  readonly token: StoredToken;
  readonly credentials: RequestCredentials;
}

/** Ends a token, which the caller removes in any case. It is sent only to a gateway, not to any other program at the address. */
async function endToken(
  { url, token, credentials }: Removed,
  terminal: Pick<Terminal, 'busy' | 'note'>,
): Promise<void> {
  const { refresh_token: refresh, expires_at: expiresAt } = token;
  if (refresh === undefined && Date.parse(expiresAt) <= Date.now()) return;
  try {
    if (!(await answerOfGateway(url))) throw new CommandFailure('no gateway answers');
    if (refresh === undefined) {
      const gateway = new Remote(url, credentials, terminal.busy);
      await gateway.request('/auth/logout', { method: 'POST', timeoutMs: SEEK_MS });
      return;
    }
    // The grant ends with it, and all tokens of the grant.
    await credentials.prove?.(SEEK_MS);
    await endSignIn(url, refresh, SEEK_MS);
  } catch (error) {
    if (!(error instanceof CommandFailure)) throw error;
    terminal.note(
      `the token was not ended at ${url}, where it is valid until ${expiresAt}: ${error.message}`,
    );
  }
}
