// The conversations that single clients have with one instance, each of their own: what is told of them. How they are opened
// is the transport's, what is said in them their client's, and what there is besides where each is a process dedicated-processes.ts's.

import { type Observable, type Observer, Subject } from 'rxjs';
import { asGatewayError } from '../../domain/errors.ts';
import type { GatewayEvent } from '../../domain/events.ts';
import { reasonOf } from '../../domain/failures.ts';
import type { InstanceDefinition } from '../../domain/instance.ts';
import type { OwnBounds } from '../../domain/limits.ts';
import type { Closed, Upstream } from '../../transports/transport.ts';
import { type OpenOwn, OwnProcesses } from './dedicated-processes.ts';
import { eventOf } from './instance-events.ts';

/** What is said of an instance to tell it from others, and whether these conversations are processes. */
type Host = Pick<InstanceDefinition, 'template' | 'id' | 'serverId' | 'transport'>;

/** Whose conversation is opened, and how. */
export interface OwnOpening {
  readonly ownerId: string;
  /** Aborted when nobody waits for it any more. */
  readonly signal: AbortSignal;
  readonly open: OpenOwn;
}

/** Of one instance, through all its restarts. */
export class OwnUpstreams {
  readonly #host: Host;
  readonly #processes: OwnProcesses;
  readonly #facts = new Subject<GatewayEvent>();

  constructor(host: Host, bounds?: OwnBounds) {
    this.#host = host;
    this.#processes = new OwnProcesses(bounds);
  }

  /** Hot, no replay: that one was opened, could not be, or ended. */
  get facts$(): Observable<GatewayEvent> {
    return this.#facts;
  }

  /** How many processes more there may be. */
  get room(): number {
    return this.#processes.room;
  }

  /** Settles as `open` does; rejects with QUEUE_FULL before, where it would be a process too many, in all or of its owner. */
  async open({ ownerId, signal, open }: OwnOpening): Promise<Upstream | undefined> {
    const process = this.#host.transport === 'stdio' ? this.#processes.take(ownerId) : undefined;
    try {
      const upstream = await (process === undefined ? open(signal) : process.open(signal, open));
      if (upstream !== undefined) this.#follow(upstream, ownerId);
      return upstream;
    } catch (thrown) {
      if (!signal.aborted) this.#tellFailed(ownerId, thrown);
      throw thrown;
    }
  }

  /**
   * Ends those that stand alone, and calls off those that are being opened: nobody else does when the instance leaves or is
   * restarted. Resolves when nothing is left of them; never rejects.
   */
  end(): Promise<void> {
    return this.#processes.end();
  }

  #follow(upstream: Upstream, ownerId: string): void {
    this.#facts.next({ type: 'upstream.opened', ...this.#factFor(ownerId), ...pidOf(upstream) });
    upstream.closed$.subscribe(
      new EndOf(({ reason, expected }) => {
        const end = { reason, isLost: !expected };
        this.#facts.next({ type: 'upstream.ended', ...this.#factFor(ownerId), ...pidOf(upstream), ...end });
      }),
    );
  }

  #tellFailed(ownerId: string, thrown: unknown): void {
    const { code } = asGatewayError(thrown);
    this.#facts.next({ type: 'upstream.failed', ...this.#factFor(ownerId), code, reason: reasonOf(thrown) });
  }

  #factFor(principal: string) {
    return { ...eventOf(this.#host), transport: this.#host.transport, principal };
  }
}

/**
 * Hears once how a conversation ended, also of one that breaks its promise to say so. A class: thousands of these lie idle,
 * and this is the smallest that an observer can be.
 */
class EndOf implements Observer<Closed> {
  #tell: ((closed: Closed) => void) | undefined;

  constructor(tell: (closed: Closed) => void) {
    this.#tell = tell;
  }

  next(closed: Closed): void {
    const tell = this.#tell;
    this.#tell = undefined;
    tell?.(closed);
  }

  error(): void {
    this.next(SILENT);
  }

  complete(): void {
    this.next(SILENT);
  }
}

function pidOf({ pid }: Upstream): { readonly pid: number } | undefined {
  return pid === undefined ? undefined : { pid };
}

const SILENT: Closed = { reason: 'it did not say why', expected: false };
