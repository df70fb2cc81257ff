// Transport to a program that speaks MCP on its standard input and output.
// It owns the opening (start, handshake, and stopping when that fails); the pipe is stdio-channel.ts's, the process
// child-process.ts's.

import { Observable } from 'rxjs';
import { asGatewayError, backendUnavailable, type GatewayError } from '../domain/errors.ts';
import type { ExchangeEvent, ExchangeRequest } from '../domain/exchange.ts';
import { openingFailed } from '../domain/failures.ts';
import type { InstanceDefinition } from '../domain/instance.ts';
import type { JsonObject } from '../domain/json.ts';
import type { Peer } from '../domain/mcp.ts';
import type { KillLadder } from './child-process.ts';
import { type ClientInfo, dress } from './era.ts';
import { type HandshakeAnswer, type HandshakeChannel, shakeHands } from './handshake.ts';
import { StdioChannel } from './stdio-channel.ts';
import type {
  BackendNotification,
  Closed,
  OpenOptions,
  Transport,
  TransportFacts,
  TransportType,
} from './transport.ts';

/** The stdio row of the table, with the stop ladder of LIMITS. */
export const stdio: TransportType = stdioWith({});

/** A stdio transport type with other waits between stdin end, SIGTERM and SIGKILL. */
export function stdioWith(settings: { readonly ladder?: KillLadder }): TransportType {
  return { kind: 'stdio', open: (definition, options) => open(definition, options, settings.ladder) };
}

class StdioTransport implements Transport {
  readonly kind = 'stdio';
  readonly peer: Peer;
  readonly #channel: StdioChannel;
  readonly #client: ClientInfo;

  constructor(channel: StdioChannel, peer: Peer, client: ClientInfo) {
    this.#channel = channel;
    this.peer = peer;
    this.#client = client;
  }

  exchange(request: ExchangeRequest): Observable<ExchangeEvent> {
    return new Observable((subscriber) =>
      this.#channel.send(dress(request, this.peer, this.#client), subscriber),
    );
  }

  get messages$(): Observable<BackendNotification> {
    return this.#channel.messages$;
  }

  get closed$(): Observable<Closed> {
    return this.#channel.closed$;
  }

  facts(): TransportFacts {
    return this.#channel.facts();
  }

  close(): Promise<void> {
    return this.#channel.close();
  }
}

async function open(
  { command, args, workingDir, env }: InstanceDefinition,
  { client, handshakeTimeoutMs, signal }: OpenOptions,
  ladder: KillLadder | undefined,
): Promise<Transport> {
  if (command === undefined) throw backendUnavailable('no command is given', { delivered: 'no' });
  if (signal.aborted) throw openingStopped();
  const channel = new StdioChannel({ command, args, workingDir, env }, ladder);
  const handshakeChannel = new StdioHandshake(channel);
  const limit = limitOpening(signal, handshakeTimeoutMs, () => handshakeChannel.lack);
  try {
    const handshake = shakeHands(handshakeChannel, { client, first: 'legacy' });
    return new StdioTransport(channel, await Promise.race([handshake, limit.passed]), client);
  } catch (error) {
    await channel.close();
    throw openingFailed(asGatewayError(error), channel.facts().stderr);
  } finally {
    limit.forget();
  }
}

/** The channel a handshake runs over; it remembers what was asked last. */
class StdioHandshake implements HandshakeChannel {
  readonly #channel: StdioChannel;
  #asked = '';

  constructor(channel: StdioChannel) {
    this.#channel = channel;
  }

  /** What the program does instead of answering, as a clause; undefined when it keeps silent. */
  get lack(): string | undefined {
    const { strayMessages: count } = this.#channel.facts();
    if (count === 0) return undefined;
    const lines = count === 1 ? '1 line that is' : `${count} lines that are`;
    return `it wrote ${lines} no JSON-RPC, and did not answer ${this.#asked}`;
  }

  request(request: ExchangeRequest): Promise<HandshakeAnswer> {
    this.#asked = request.method;
    return new Promise((resolve, reject) => {
      this.#channel.send(request, {
        next: (event) => {
          if (event.kind !== 'notification') resolve(event);
        },
        error: reject,
        complete: () => {},
      });
    });
  }

  notify(method: string, params: JsonObject): void {
    this.#channel.notify(method, params);
  }
}

function limitOpening(signal: AbortSignal, timeoutMs: number, lack: () => string | undefined) {
  const { promise: passed, reject } = Promise.withResolvers<never>();
  const stop = (): void => reject(openingStopped());
  const giveUp = (): void => {
    const reason = lack() ?? `it did not finish the handshake within ${timeoutMs / 1000} s`;
    reject(backendUnavailable(reason, { delivered: 'no' }));
  };
  const timer = setTimeout(giveUp, timeoutMs);
  signal.addEventListener('abort', stop);
  const forget = (): void => {
    clearTimeout(timer);
    signal.removeEventListener('abort', stop);
  };
  return { passed, forget };
}

function openingStopped(): GatewayError {
  return backendUnavailable('its start was called off', { delivered: 'no' });
}
