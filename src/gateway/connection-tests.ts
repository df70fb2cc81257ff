// Connection tests: an instance is opened as after its registration, its tools are listed, and it is closed. It is neither stored nor in
// the fleet, and serves no calls. The registry and the routes decide what may be registered.

import { listTools } from '../actors/instances/session.ts';
import type { Clock } from '../domain/clock.ts';
import { backendTimeout, tooManyTests } from '../domain/error-catalogue.ts';
import { asGatewayError, shuttingDown } from '../domain/errors.ts';
import type { InstanceDefinition, InstanceInput } from '../domain/instance.ts';
import type { ConnectionOutcome, ConnectionTestOptions } from '../gateway-types.ts';
import type { Registry } from '../registry.ts';
import type { Open } from '../transports/opening.ts';
import type { Transport, TransportFacts } from '../transports/transport.ts';

/** Longest time until the outcome. Closing may take longer; only `close` waits for it. */
const TEST_MS = 10_000;
/** Concurrent tests, with those that are being closed: of all callers, and of one. */
const AT_ONCE = 4;
const AT_ONCE_OF_OWNER = 2;

export interface ConnectionTestDeps extends Pick<Clock, 'now' | 'alarm'> {
  readonly open: Open;
  readonly registry: Pick<Registry, 'draft'>;
}

interface RunningTest {
  readonly ownerId: string;
  readonly stop: AbortController;
  readonly ended: Promise<void>;
}

export class ConnectionTests {
  readonly #deps: ConnectionTestDeps;
  readonly #running = new Set<RunningTest>();
  #isClosed = false;

  constructor(deps: ConnectionTestDeps) {
    this.#deps = deps;
  }

  /**
   * Resolves within TEST_MS, also for an instance that cannot be opened. Rejects like a registration for input that may not be
   * registered; QUEUE_FULL when too many tests run, SHUTTING_DOWN.
   */
  async run(
    template: string,
    input: InstanceInput,
    options: ConnectionTestOptions,
  ): Promise<ConnectionOutcome> {
    const { ownerId = '', isLimited = false, signal } = options;
    if (this.#isClosed) throw shuttingDown();
    const own = [...this.#running].filter((test) => test.ownerId === ownerId).length;
    if (this.#running.size >= AT_ONCE || own >= AT_ONCE_OF_OWNER) throw tooManyTests();
    const { promise: ended, resolve: end } = Promise.withResolvers<void>();
    const test: RunningTest = { ownerId, stop: new AbortController(), ended };
    this.#running.add(test);
    const leave = () => test.stop.abort();
    signal?.addEventListener('abort', leave);
    if (signal?.aborted) leave();
    let closing: Promise<unknown> | undefined;
    try {
      const definition = await this.#deps.registry.draft(template, input, { isLimited });
      const tried = this.#open(definition, test.stop);
      closing = tried.closed;
      return await tried.outcome;
    } finally {
      signal?.removeEventListener('abort', leave);
      void Promise.resolve(closing).then(() => {
        this.#running.delete(test);
        end();
      });
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    for (const { stop } of this.#running) stop.abort();
    await Promise.all([...this.#running].map(({ ended }) => ended));
  }

  /** `closed` resolves when the program has ended or the connection is closed; it never rejects. */
  #open(definition: InstanceDefinition, stop: AbortController) {
    const { open, now, alarm } = this.#deps;
    const startMs = now();
    const disarm = alarm(TEST_MS, () => stop.abort());
    const late = new Promise<never>((_, reject) => {
      const stopped = () => reject(backendTimeout(TEST_MS, 'no'));
      stop.signal.addEventListener('abort', stopped, { once: true });
      if (stop.signal.aborted) stopped();
    });
    let readEvents: (() => TransportFacts) | undefined;
    const opening = open(definition, stop.signal, {
      onStarted: (read) => {
        readEvents = read;
      },
    });
    const passedMs = () => Math.round(now() - startMs);
    const outcome = Promise.race([opening.then(outcomeOf), late]).then(
      (found): ConnectionOutcome => ({ ...found, durationMs: passedMs() }),
      (thrown: unknown): ConnectionOutcome => {
        const error = asGatewayError(thrown);
        const stderr = error.facts.stderr ?? readEvents?.().stderr ?? [];
        return { isOk: false, error, stderr, durationMs: passedMs() };
      },
    );
    const closed = outcome.then(async () => {
      disarm();
      stop.abort(); // ends an opening that is still running
      await opening.then(close, () => undefined); // it was not opened, so that there is nothing to close
    });
    return { outcome, closed };
  }
}

async function outcomeOf(transport: Transport) {
  const { era, serverName: name, serverVersion: version } = transport.peer;
  const tools = await listTools(transport);
  return {
    isOk: true,
    era,
    server: name === '' ? undefined : { name, version },
    tools: tools.length,
  } as const;
}

/** Transports promise that closing never fails. */
async function close(transport: Transport): Promise<void> {
  await transport.close().catch(() => undefined);
}
