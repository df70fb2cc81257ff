// Signs the user of a command in with a browser: the command line is a client of the authorization server of the
// gateway, with an id that every gateway knows. It waits at a free port of this machine for the answer; where
// there is no browser, it shows a code for one on another machine. Sources: RFC 8252, RFC 7636, RFC 9207, RFC
// 8628, ADR 216, 217.

import { spawn } from 'node:child_process';
import { hash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { COMMAND_LINE, DEVICE_GRANT } from '../../authorization-server/clients/client-record.ts';
import { SCOPES } from '../../domain/accounts/account.ts';
import { plainLine } from '../../domain/text.ts';
import { CommandFailure, GatewayRefusal } from '../failures.ts';
import type { Fields } from '../remote/answers.ts';
import type { Terminal } from '../terminal.ts';
import { askOAuth } from './ask-oauth.ts';
import { type StoredToken, storedTokenOf } from './stored-tokens.ts';

/** The function of Node for servers. An import would load more; see server/sockets/listeners.ts. */
const { createServer } = process.getBuiltinModule('node:http');

/** The longest wait for the user, in ms. The pages of the gateway are valid for the same time. */
const USER_MS = 10 * 60_000;

/** Opens the browser, or only prints the address, and waits for the user. Throws CommandFailure. */
export async function signInByBrowser(
  url: string,
  terminal: Terminal,
  { opensBrowser }: { readonly opensBrowser: boolean },
): Promise<StoredToken> {
  const server = await metadataOf(url);
  const verifier = randomBytes(32).toString('base64url');
  const state = randomBytes(32).toString('base64url');
  const listener = await listen(state);
  try {
    const address = new URL(urlIn(server, 'authorization_endpoint'));
    if (!/^https?:$/.test(address.protocol))
      throw new CommandFailure(`${address} is not the address of a page`);
    const parameters = {
      response_type: 'code',
      client_id: COMMAND_LINE.id,
      redirect_uri: listener.redirectUri,
      state,
      scope: SCOPES.join(' '),
      code_challenge_method: 'S256',
      code_challenge: hash('sha256', verifier, 'base64url'),
    };
    for (const [name, value] of Object.entries(parameters)) address.searchParams.set(name, value);
    // Also with --quiet: without the address nothing can go on.
    terminal.complain(`sign in with a browser on this machine: ${address}`);
    if (opensBrowser) openBrowser(address, terminal.env);
    const said = await terminal.busy('waiting for the browser', () => listener.answer);
    if (said.get('iss') !== server.issuer)
      throw new CommandFailure('the answer in the browser comes from another server');
    const code = said.get('code');
    if (code === null)
      throw refusedWith(said.get('error_description') ?? said.get('error') ?? 'no reason given');
    const form = {
      grant_type: 'authorization_code',
      client_id: COMMAND_LINE.id,
      code,
      code_verifier: verifier,
      redirect_uri: listener.redirectUri,
    };
    return storedTokenOf(await askOAuth(url, '/oauth/token', form));
  } finally {
    listener.close();
  }
}

/**
 * Prints an address and a code, and waits until a user has decided in any browser. `stepMs`: between two
 * questions, if the gateway names no other time. Throws CommandFailure.
 */
export async function signInByDevice(
  url: string,
  terminal: Terminal,
  stepMs = STEP_MS,
): Promise<StoredToken> {
  const server = await metadataOf(url);
  urlIn(server, 'device_authorization_endpoint');
  const scope = SCOPES.join(' ');
  const asked = await askOAuth(url, '/oauth/device_authorization', { client_id: COMMAND_LINE.id, scope });
  const page = urlIn(asked, 'verification_uri');
  const complete = urlIn(asked, 'verification_uri_complete');
  terminal.complain(
    `open ${page} in any browser, and enter the code ${asked.user_code}; or open ${complete}`,
  );
  const form = {
    grant_type: DEVICE_GRANT,
    client_id: COMMAND_LINE.id,
    device_code: String(asked.device_code),
  };
  const untilMs = performance.now() + Math.min(Number(asked.expires_in) * 1_000 || USER_MS, USER_MS);
  return terminal.busy('waiting for the browser', async () => {
    for (let waitMs = stepIn(asked) ?? stepMs; performance.now() < untilMs; ) {
      await delay(waitMs);
      try {
        return storedTokenOf(await askOAuth(url, '/oauth/token', form));
      } catch (error) {
        if (!(error instanceof CommandFailure)) throw error;
        const code = error instanceof GatewayRefusal ? error.code : 'unreachable';
        if (code === 'access_denied') throw refusedWith(error.message, error);
        if (code === 'slow_down') waitMs += STEP_MS;
        else if (!GOES_ON.includes(code)) throw error;
      }
    }
    throw lateAnswer();
  });
}

const STEP_MS = 5_000;
const MAX_STEP_MS = 60_000;

/** The time between two questions that the gateway names. */
function stepIn({ interval }: Fields): number | undefined {
  const namedMs = Number(interval) * 1_000;
  return namedMs > 0 ? Math.min(namedMs, MAX_STEP_MS) : undefined;
}

/** The codes after which the next question may get another answer. */
const GOES_ON: readonly unknown[] = ['authorization_pending', 'temporarily_unavailable', 'unreachable'];

function refusedWith(reason: string, cause?: unknown): CommandFailure {
  return new CommandFailure(`the sign-in was refused: ${plainLine(reason.slice(0, 200))}`, { cause });
}

function lateAnswer(): CommandFailure {
  return new CommandFailure(`no answer from the browser within ${USER_MS / 60_000} min`);
}

/** The metadata of the gateway's authorization server. Throws CommandFailure where it has none. */
async function metadataOf(url: string): Promise<Fields> {
  try {
    return await askOAuth(url, '/.well-known/oauth-authorization-server');
  } catch (error) {
    if (!(error instanceof GatewayRefusal) || error.code !== 'NOT_FOUND') throw error;
    throw new CommandFailure(
      `${url} does not sign users in by a browser: auth.oauth is false, or public_url has another address`,
      { cause: error },
    );
  }
}

interface Listener {
  readonly redirectUri: string;
  /** The query of the answer. Throws after USER_MS. */
  readonly answer: Promise<URLSearchParams>;
  close(): void;
}

/** Waits for the browser. A request without the state comes from another page or program, and changes nothing. */
async function listen(state: string): Promise<Listener> {
  const answer = Promise.withResolvers<URLSearchParams>();
  answer.promise.catch(() => {
    // Awaited later.
  });
  const server = createServer((request, response) => {
    // Null for a target such as `//[`.
    const asked = URL.parse(request.url ?? '/', 'http://127.0.0.1');
    const isAnswer =
      request.method === 'GET' &&
      asked?.pathname === '/callback' &&
      asked.searchParams.get('state') === state;
    response.writeHead(isAnswer ? 200 : 404, {
      'Content-Type': 'text/html; charset=utf-8',
      'Content-Security-Policy': "default-src 'none'",
      'Cache-Control': 'no-store',
      Connection: 'close',
    });
    const text = isAnswer ? 'Go back to the terminal; this page can be closed.' : 'There is no such page.';
    response.end(`<!doctype html><html lang="en"><title>stagedoor</title><p>${text}</p></html>`);
    if (isAnswer) response.once('close', () => answer.resolve(asked.searchParams));
  });
  server.maxConnections = 100;
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const timer = setTimeout(() => answer.reject(lateAnswer()), USER_MS);
  return {
    redirectUri: `http://127.0.0.1:${(server.address() as AddressInfo).port}/callback`,
    answer: answer.promise,
    close: () => {
      clearTimeout(timer);
      server.close();
      server.closeAllConnections();
    },
  };
}

/** Opens the address in the browser. Does nothing where there is no browser: the address was printed. */
function openBrowser({ href }: URL, env: Terminal['env']): void {
  const [command = '', ...words] = env.BROWSER
    ? [env.BROWSER]
    : process.platform === 'win32'
      ? ['rundll32', 'url.dll,FileProtocolHandler']
      : [process.platform === 'darwin' ? 'open' : 'xdg-open'];
  const child = spawn(command, [...words, href], { stdio: 'ignore', detached: true });
  child.once('error', () => {});
  child.unref();
}

function urlIn(answer: Fields, name: string): string {
  const value = answer[name];
  if (typeof value === 'string' && URL.canParse(value)) return value;
  throw new CommandFailure(`the gateway named no ${name}`);
}
