// The transport of a server that wants OAuth. With the shared account it is that of any server, with a token in
// each request. Without an account, and where each user has an own one, it only knows that the server answers: no
// call is served before an account is connected.

import { AsyncSubject, defer, EMPTY, from, map, mergeMap, type Observable, of, throwError } from 'rxjs';
import type { ExchangeRequest } from '../../domain/calls/exchange.ts';
import type { ExchangeEvent } from '../../domain/calls/exchange-event.ts';
import { connectionRequired } from '../../domain/errors/backend-errors.ts';
import { hasCode } from '../../domain/errors/errors.ts';
import { SHARED } from '../../domain/instances/account-connection.ts';
import type { InstanceDefinition } from '../../domain/instances/instance.ts';
import { definedFields, JsonText } from '../../domain/json/json.ts';
import { METHOD_NOT_FOUND } from '../../domain/mcp/jsonrpc.ts';
import { type Handshake, LISTEN, listReturnedBy, MODERN_VERSIONS } from '../../domain/mcp/mcp.ts';
import type { Clock } from '../../domain/time/clock.ts';
import type { BackendAccount, BearerTokens } from '../backend-account.ts';
import { CLOSED_BY_GATEWAY, type Closed, type TransportDiagnostics } from '../transport.ts';
import type { EndpointTransport } from './managed-http.ts';

/**
 * The assumed handshake of a server that shows nothing without an account: that of a modern one, because it has no conversations.
 */
function unknownHandshake({ template }: InstanceDefinition): Handshake {
  const [protocolVersion] = MODERN_VERSIONS;
  const capabilities = { tools: { listChanged: true } };
  const serverInfo = { name: template, version: '' };
  return { era: 'modern', protocolVersion, serverInfo, capabilities, greeting: { capabilities } };
}
const AT_ONCE = { isExpected: false, opensAtOnce: true };
const IS_CONNECTED: Closed = { reason: 'its account was connected', ...AT_ONCE };
const IS_DISCONNECTED: Closed = { reason: 'its account has to be connected', ...AT_ONCE };

/** `open`: with these tokens. Throws like opening any transport. */
export async function openWithAccount(
  account: BackendAccount,
  definition: InstanceDefinition,
  clock: Clock,
  open: (tokens: BearerTokens) => Promise<EndpointTransport>,
): Promise<EndpointTransport> {
  await account.check();
  if (account.who === 'user') return new WaitingTransport(account, definition);
  let opened: EndpointTransport | undefined;
  const before = await tokenOf(account);
  // Later, so that the calls fail for want of a token, not with the transport.
  const tokens = noticing(account.tokens(SHARED), () =>
    clock.background.alarm(0, () => void opened?.end(IS_DISCONNECTED)),
  );
  try {
    opened = await open(tokens);
    return opened;
  } catch (thrown) {
    if (!hasCode(thrown, 'CONNECTION_REQUIRED')) throw thrown;
    return new WaitingTransport(account, definition, before);
  }
}

/** The token of the shared account; undefined while none is connected. */
async function tokenOf(account: BackendAccount): Promise<string | undefined> {
  try {
    return await account.tokens(SHARED).current();
  } catch {
    return undefined;
  }
}

/** `onGone`: called when there is no token any more. */
function noticing(tokens: BearerTokens, onGone: () => void): BearerTokens {
  const noticed = async <T>(promise: Promise<T>): Promise<T> => {
    try {
      return await promise;
    } catch (thrown) {
      if (hasCode(thrown, 'CONNECTION_REQUIRED')) onGone();
      throw thrown;
    }
  };
  return {
    current: () => {
      const token = tokens.current();
      return typeof token === 'string' ? token : noticed(token);
    },
    renewed: (refused) => noticed(tokens.renewed(refused)),
    refusedAgain: async (refused) => {
      const error = await tokens.refusedAgain(refused);
      onGone();
      return error;
    },
    missingScopes: (scopes) => tokens.missingScopes(scopes),
  };
}

/** Healthy while the server answers, also with a 401. Ends when the shared account is connected. */
class WaitingTransport implements EndpointTransport {
  readonly kind = 'http';
  readonly handshake: Handshake;
  readonly note: string | undefined;
  readonly messages$ = EMPTY;
  readonly closed$ = new AsyncSubject<Closed>();
  readonly #account: BackendAccount;
  readonly #definition: InstanceDefinition;
  readonly #refused: string | undefined;
  readonly #stop: () => void;

  /** `refused`: a token with which the server refuses to be opened. */
  constructor(account: BackendAccount, definition: InstanceDefinition, refused?: string) {
    this.#account = account;
    this.#refused = refused;
    this.#definition = definition;
    this.handshake = unknownHandshake(definition);
    const isShared = account.who === 'shared';
    this.note = isShared ? 'it waits until its account is connected' : undefined;
    this.#stop = isShared ? account.onConnected(() => void this.#endIfConnected()) : () => undefined;
  }

  exchange({ method, callerId }: ExchangeRequest): Observable<ExchangeEvent> {
    if (method === LISTEN) return of({ kind: 'error', error: METHOD_NOT_FOUND });
    if (method !== 'server/discover') {
      const { template, id: instanceId } = this.#definition;
      const { who } = this.#account;
      // Another node may have connected the account: then the next call is served. A list comes before a call,
      // which is to be answered.
      if (who === 'shared' && listReturnedBy(method) === undefined) void this.#endIfConnected();
      const refuse = (url?: string) =>
        throwError(() =>
          connectionRequired({ template, instanceId, who, why: 'none', ...definedFields({ url }) }),
        );
      const { addressFor } = this.#account;
      // A list may be for several callers.
      if (callerId === undefined || addressFor === undefined || listReturnedBy(method) !== undefined)
        return refuse();
      // When the database is away the call is refused all the same, but without an address.
      return defer(() => from(addressFor(callerId).catch(() => undefined))).pipe(mergeMap(refuse));
    }
    return defer(() => from(this.#probe())).pipe(
      map((): ExchangeEvent => ({ kind: 'result', result: JsonText.ofValue({}) })),
    );
  }

  notify(): void {
    // No server listens yet.
  }

  async openConversation(): Promise<undefined> {
    return undefined;
  }

  diagnostics(): TransportDiagnostics {
    return { pid: null, stderr: [] };
  }

  close(): Promise<void> {
    return this.end(CLOSED_BY_GATEWAY);
  }

  async end(closed: Closed): Promise<void> {
    this.#stop();
    this.closed$.next(closed);
    this.closed$.complete();
  }

  async #probe(): Promise<void> {
    await this.#account.probe();
    if (this.#account.who === 'shared') await this.#endIfConnected();
  }

  async #endIfConnected(): Promise<void> {
    const token = await tokenOf(this.#account);
    if (token !== undefined && token !== this.#refused) void this.end(IS_CONNECTED);
  }
}
