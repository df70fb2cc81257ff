// Transport to a backend that is a function of this process: for specs, and for embedders that serve tools
// themselves. It does what the other kinds do, without bytes: progress tokens, cancellation, failures on closing.
// There is no handshake: the function counts as a legacy server with tools, resources and prompts. A function does
// not tell its callers apart, so all share one conversation.

import { inspect } from 'node:util';
import type { Unsubscribable } from 'rxjs';
import type { ExchangeRequest } from '../../domain/calls/exchange.ts';
import type { FinalEvent } from '../../domain/calls/exchange-event.ts';
import { backendUnavailable, openingCancelled } from '../../domain/errors/backend-errors.ts';
import { messageOf } from '../../domain/errors/errors.ts';
import type { InstanceDefinition } from '../../domain/instances/instance.ts';
import { type JsonObject, JsonText } from '../../domain/json/json.ts';
import { type JsonRpcError, RPC } from '../../domain/mcp/jsonrpc.ts';
import { type Handshake, LEGACY_VERSIONS, LOG, PROGRESS } from '../../domain/mcp/mcp.ts';
import { callerTokenOf, paramsForCaller, reportsProgress } from '../caller-messages.ts';
import { Channel, type ExchangeObserver, type PendingExchange } from '../channel.ts';
import type { InProcessHandler, OpenOfKind } from '../open-options.ts';
import type { Transport } from '../transport.ts';

/** The function is `options.handlers.get(definition.serverId)`. */
export const open: OpenOfKind = async (definition, { clock, handlers, signal }) => {
  const handler = handlers.get(definition.serverId);
  if (signal.aborted) throw openingCancelled();
  if (handler === undefined) {
    throw backendUnavailable(`no function serves "${definition.serverId}"`, { delivered: 'no' });
  }
  return new InProcessTransport(handler, handshakeOf(definition), clock.now);
};

interface InProcessCall {
  readonly exchange: PendingExchange;
  readonly cancellation: AbortController;
  isOver: boolean;
}

class InProcessTransport extends Channel implements Transport {
  readonly kind = 'in-process';
  readonly #handler: InProcessHandler;

  constructor(handler: InProcessHandler, handshake: Handshake, now: () => number) {
    super(undefined, now);
    this.#handler = handler;
    this.handshake = handshake;
  }

  send(request: ExchangeRequest, observer: ExchangeObserver): Unsubscribable | undefined {
    const exchange = this.begin(request, observer);
    if (exchange === undefined) return undefined;
    const call = { exchange, cancellation: new AbortController(), isOver: false };
    // Never answers inside `subscribe`, like all other kinds: callers rely on it.
    queueMicrotask(() => void this.#run(call));
    return {
      unsubscribe: () => {
        if (call.isOver) return;
        call.isOver = true;
        this.forget(exchange);
        call.cancellation.abort();
      },
    };
  }

  /** Notifications are not passed to a function. */
  notify(): void {}

  /** None: all clients share one conversation. */
  async openConversation(): Promise<undefined> {}

  /** A function asks its clients nothing. */
  protected reply(): void {}

  async #run(call: InProcessCall): Promise<void> {
    if (call.isOver) return;
    const { exchange } = call;
    exchange.delivered = 'unknown';
    const answer = await this.#answer(call);
    if (call.isOver) return;
    call.isOver = true;
    this.receive({ ...answer, id: exchange.id });
  }

  async #answer(call: InProcessCall): Promise<FinalEvent> {
    const { signal } = call.cancellation;
    const notify = (method: string, params: JsonObject): void =>
      this.#notify(call, method, plain(params ?? {}));
    try {
      // Parsed from the text, so that the function gets plain JSON values only.
      const { method, params } = JSON.parse(call.exchange.text);
      const request = params === undefined ? { method } : { method, params };
      const result = await this.#handler(request, { signal, notify });
      // Serialized at once: a result that is not JSON fails here, and later changes of it have no effect.
      const text: string | undefined = JSON.stringify(result ?? {});
      if (text === undefined)
        throw new TypeError(`the function returned a ${typeof result}, which is not JSON`);
      return { kind: 'result', result: JsonText.ofBytes(Buffer.from(text)) };
    } catch (thrown) {
      return { kind: 'error', error: errorOfThrown(thrown) };
    }
  }

  #notify({ exchange, isOver }: InProcessCall, method: string, params: JsonObject): void {
    const message = { kind: 'notification', method, params } as const;
    if (method !== PROGRESS && method !== LOG) this.receive(message);
    else if (!isOver && (method === LOG || reportsProgress(exchange.request))) {
      const own = method === PROGRESS ? paramsForCaller(params, callerTokenOf(exchange.request)) : params;
      exchange.observer.next({ ...message, params: own });
    }
  }
}

function handshakeOf({ id }: InstanceDefinition): Handshake {
  const capabilities = { tools: {}, resources: {}, prompts: {} };
  const serverInfo = { name: id, version: '' };
  return {
    era: 'legacy',
    protocolVersion: LEGACY_VERSIONS[0],
    serverInfo,
    capabilities,
    greeting: { capabilities, serverInfo },
  };
}

/**
 * A thrown value with an integer as its `code` is the function's own JSON-RPC error; any other is an internal error, also one
 * whose fields cannot be read, as those of a Proxy.
 */
function errorOfThrown(thrown: unknown): JsonRpcError {
  try {
    const { code, message, data } = Object(thrown);
    const text = typeof thrown === 'string' ? thrown : inspect(thrown, { depth: 0 });
    const error = { code, message: typeof message === 'string' ? message : text };
    if (!Number.isSafeInteger(code)) return { ...error, code: RPC.internalError };
    return data === undefined ? error : { ...error, data: plain(data) };
  } catch (unreadable) {
    return { code: RPC.internalError, message: messageOf(unreadable) };
  }
}

/** The value as it arrives when it is sent. Throws for a value that is not JSON. */
function plain<T>(value: T): T {
  return JSON.parse(JSON.stringify(value));
}
