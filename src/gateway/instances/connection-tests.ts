// Connection tests: an instance is opened as after its registration, its tools are listed, and it is closed. It is neither stored
// nor in the fleet, and serves no calls. The registry and the routes decide which instances may be registered.

import { listTools } from '../../actors/instances/instance-transport.ts';
import { ANONYMOUS } from '../../domain/accounts/principal.ts';
import { backendTimeout, openingCancelled } from '../../domain/errors/backend-errors.ts';
import { asGatewayError, GatewayError } from '../../domain/errors/errors.ts';
import { shuttingDown } from '../../domain/errors/gateway-errors.ts';
import { tooMany } from '../../domain/errors/request-errors.ts';
import type { InstanceDefinition, InstanceInput } from '../../domain/instances/instance.ts';
import { shareOf, UserShares } from '../../domain/memory/user-shares.ts';
import { type Clock, unlessAborted } from '../../domain/time/clock.ts';
import type { InstanceRegistry } from '../../registry/kinds/instance-registry.ts';
import type { Open } from '../../transports/open-options.ts';
import type { Transport, TransportDiagnostics } from '../../transports/transport.ts';
import type { ConnectionOutcome, ConnectionTestOptions } from '../gateway-types.ts';

/** The longest time until the outcome. Closing may take longer; only `close` waits for it. */
const TEST_MS = 10_000;
/** The most concurrent tests, including tests that are being closed, and the part of them that one caller may run. */
export const TESTS = { atOnce: 4, share: 0.5 } as const;

/** Runs a bounded number of tests at a time; `close` ends them. */
export class ConnectionTests {
  readonly #clock: Clock;
  readonly #openTransport: (definition: InstanceDefinition) => Open;
  readonly #registry: { readonly instances: Pick<InstanceRegistry, 'draft'> };
  /** The tests under way; each settles at its end. */
  readonly #running = new Set<Promise<unknown>>();
  readonly #shares = new UserShares(TESTS.atOnce, shareOf(TESTS.atOnce, TESTS.share, 1));
  readonly #closing = new AbortController();

  constructor(
    clock: Clock,
    openTransport: (definition: InstanceDefinition) => Open,
    registry: { readonly instances: Pick<InstanceRegistry, 'draft'> },
  ) {
    this.#clock = clock;
    this.#openTransport = openTransport;
    this.#registry = registry;
  }

  /**
   * Resolves within TEST_MS, also for an instance that cannot be opened. Throws like a registration for input that may not be
   * registered; QUEUE_FULL when too many tests run, in all or of this caller, SHUTTING_DOWN.
   */
  async run(
    template: string,
    { id: _, ...input }: InstanceInput, // a new id, so that it is not an instance that exists
    { signal, callerId = ANONYMOUS.id, isLimited = false }: ConnectionTestOptions,
  ): Promise<ConnectionOutcome> {
    const shares = this.#shares;
    if (this.#closing.signal.aborted) throw shuttingDown();
    const exceeded = shares.exceededBy(callerId);
    if (exceeded !== undefined) throw tooMany('running connection tests', exceeded, 5);
    shares.add(callerId);
    const drafted = this.#registry.instances.draft(template, input, { isLimited });
    const tried = drafted.then((definition) => this.#open(definition, signal));
    const ended = tried.then(({ closed }) => closed).catch(() => undefined); // the caller gets the error
    this.#running.add(ended);
    void ended.then(() => {
      this.#running.delete(ended);
      shares.release(callerId);
    });
    return (await tried).outcome;
  }

  async close(): Promise<void> {
    this.#closing.abort(shuttingDown());
    await Promise.all(this.#running);
  }

  /** `closed` resolves when the program has ended or the connection is closed; it never rejects. */
  #open(definition: InstanceDefinition, left: AbortSignal | undefined) {
    const startMs = this.#clock.now();
    const stop = new AbortController();
    const disarm = this.#clock.alarm(TEST_MS, () => stop.abort(backendTimeout(TEST_MS, 'no')));
    const signal = AbortSignal.any([
      stop.signal,
      this.#closing.signal,
      ...(left === undefined ? [] : [left]),
    ]);
    let readDiagnostics: (() => TransportDiagnostics) | undefined;
    const { nodeId: _, ...tried } = definition; // it runs here, without the lease of a registered program
    const opening = this.#openTransport(tried)(signal, {
      onStarted: (read) => {
        readDiagnostics = read;
      },
    });
    const passedMs = () => Math.round(this.#clock.now() - startMs);
    const described = opening.then((transport) => describeServer(transport, this.#clock));
    const outcome = unlessAborted(signal, described, openingCancelled).then(
      (found): ConnectionOutcome => ({ ...found, durationMs: passedMs() }),
      (thrown: unknown): ConnectionOutcome => {
        // The reason for the stop says more than the end of the opening.
        const error = asGatewayError(signal.reason instanceof GatewayError ? signal.reason : thrown);
        const stderr = error.facts.stderr ?? readDiagnostics?.().stderr ?? [];
        return { isOk: false, error, stderr, durationMs: passedMs() };
      },
    );
    const closed = outcome.then(async () => {
      disarm();
      stop.abort(); // ends an opening that is still running
      await opening.then((transport) => transport.close()).catch(() => undefined); // perhaps it was not opened
    });
    return { outcome, closed };
  }
}

async function describeServer(transport: Transport, clock: Clock) {
  const { era, serverInfo } = transport.handshake;
  const { name, version } = serverInfo;
  const tools = await listTools(transport, clock);
  return {
    isOk: true,
    era,
    server: name === '' ? undefined : { name, version },
    tools: tools.length,
  } as const;
}
