// The conversations that single clients have with one instance, each of their own: how many processes one owner may have
// among them, and what is told of them. How they are opened is the transport's, what is said in them their client's.

import { type Observable, type Observer, Subject } from 'rxjs';
import { asGatewayError } from '../../domain/errors.ts';
import type { GatewayEvent } from '../../domain/events.ts';
import { reasonOf } from '../../domain/failures.ts';
import type { InstanceDefinition } from '../../domain/instance.ts';
import { OWN_BOUNDS, type OwnBounds } from '../../domain/limits.ts';
import { processLimit, processShareLimit } from '../../domain/session-errors.ts';
import type { Closed, Upstream } from '../../transports/transport.ts';
import { factOf } from './instance-facts.ts';
import { OwnerShares } from './owner-shares.ts';

/** What is said of an instance to tell it from others, and whether these conversations are processes. */
type Host = Pick<InstanceDefinition, 'template' | 'id' | 'serverId' | 'transport'>;

/** Whose conversation is opened, and how. */
export interface OwnOpening {
  readonly ownerId: string;
  /** Aborted when nobody waits for it any more. */
  readonly signal: AbortSignal;
  /** Undefined: the backend keeps none for a single client. */
  readonly open: () => Promise<Upstream | undefined>;
}

/** Of one instance, through all its restarts. */
export class OwnUpstreams {
  readonly #host: Host;
  /** Of the processes. */
  readonly #shares: OwnerShares;
  readonly #facts = new Subject<GatewayEvent>();

  constructor(host: Host, { processes, share }: OwnBounds = OWN_BOUNDS) {
    this.#host = host;
    this.#shares = new OwnerShares(processes, share);
  }

  /** Hot, no replay: that one was opened, could not be, or ended. */
  get facts$(): Observable<GatewayEvent> {
    return this.#facts;
  }

  /** Settles as `open` does; rejects with QUEUE_FULL before, where it would be a process too many of its owner. */
  async open({ ownerId, signal, open }: OwnOpening): Promise<Upstream | undefined> {
    const giveBack = this.#host.transport === 'stdio' ? this.#takeShare(ownerId) : undefined;
    try {
      const upstream = await open();
      if (upstream === undefined) giveBack?.();
      else this.#follow(upstream, ownerId, giveBack);
      return upstream;
    } catch (thrown) {
      giveBack?.();
      if (!signal.aborted) this.#tellFailed(ownerId, thrown);
      throw thrown;
    }
  }

  /** A program that is told to end may take seconds to do so: it is the owner's until it is gone. */
  #follow(upstream: Upstream, ownerId: string, giveBack: (() => void) | undefined): void {
    this.#facts.next({ type: 'upstream.opened', ...this.#factFor(ownerId), ...pidOf(upstream) });
    upstream.closed$.subscribe(
      new EndOf(({ reason, expected }) => {
        if (giveBack !== undefined) void gone(upstream).then(giveBack);
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
    return { ...factOf(this.#host), transport: this.#host.transport, principal };
  }

  /** One more process for that owner, until the returned function is called, once. */
  #takeShare(ownerId: string): () => void {
    const shares = this.#shares;
    const { share, isAll } = shares;
    if (shares.isFull(ownerId)) throw isAll ? processLimit(share) : processShareLimit(share);
    shares.take(ownerId);
    return () => shares.giveBack(ownerId);
  }
}

/**
 * Hears once how a conversation ended. One that breaks its promise to say so must not be counted for ever. A class: thousands
 * of these lie idle, and this is the smallest that an observer can be.
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

/** Resolves when nothing is left of it, which its transport sees to in bounded time. Never rejects. */
async function gone(upstream: Upstream): Promise<void> {
  try {
    await upstream.close();
  } catch {
    // Conversations promise that closing never fails; one that breaks it must not be counted for ever.
  }
}
