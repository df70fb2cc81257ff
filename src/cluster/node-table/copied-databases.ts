// Finds nodes with the same secret and another database: one of the two is a copy of the other, so each has the
// row of the other node, and sees no heartbeat of it. Such a node goes on under a life that has ended here.
// Source: ADR 330.

import { COPIED_DATABASE, otherDatabase, type ShownNode } from '../../domain/nodes/nodes.ts';
import type { Clock } from '../../domain/time/clock.ts';
import type { PeerPings } from '../channel/peer-pings.ts';
import type { KnownLives } from './known-lives.ts';
import type { ReadLife } from './life-rows.ts';

/**
 * A node that stood still may answer first, and learn of its end later. Its second answer, so long after the
 * first, counts; in ms.
 */
const AGAIN_MS = 5_000;
/** An answer that took longer waited for a process that stood still. */
const PROMPT_MS = 1_000;
/** A life is asked for this time from the moment at which its end is sure, in ms. */
const ASKED_MS = 20_000;

interface Asked {
  readonly fromMs: number;
  firstAnswerMs: number | undefined;
}

interface CopiedDatabasesOptions {
  readonly pings: Pick<PeerPings, 'askDatabase'>;
  readonly clock: Clock;
  readonly onNotice: (line: string) => void;
}

/** Asks the processes of lives that have ended here by their silence, and remembers the processes that go on elsewhere. */
export class CopiedDatabases {
  readonly #options: CopiedDatabasesOptions;
  /** Lives that have ended here by their silence. */
  readonly #asked = new Map<string, Asked>();
  /** The ended lives whose process goes on with another database. */
  readonly #found = new Set<string>();
  #isAsked = false;

  constructor(options: CopiedDatabasesOptions) {
    this.#options = options;
  }

  /** Looks for such lives, after each read of the rows. */
  look(known: KnownLives): void {
    for (const life of this.#asked.keys()) if (!known.get(life)) this.#asked.delete(life);
    const nowMs = this.#options.clock.now();
    for (const one of known.all) {
      const { life, end } = one.stored;
      // With this database, the process would have learned of the end of its life by now.
      if (end?.cause !== 'expired' || !one.isMember || !known.hasEnded(life, nowMs)) continue;
      const asked = this.#asked.get(life) ?? { fromMs: nowMs, firstAnswerMs: undefined };
      this.#asked.set(life, asked);
      if (nowMs - asked.fromMs < ASKED_MS && !this.#found.has(life)) this.#ask(one, asked, nowMs);
    }
  }

  /** A life that no row of this database has was asked for by a node with the key of the deployment. */
  noteAsked(): void {
    if (!this.#isAsked) this.#options.onNotice(COPIED_DATABASE);
    this.#isAsked = true;
  }

  /** The nodes as they are shown, with this one first: those with a copy of the database say so. */
  withCopies([own, ...others]: readonly [ShownNode, ...ShownNode[]]): ShownNode[] {
    const shown = others.map((view) =>
      this.#found.has(view.life) ? { ...view, hasOtherDatabase: true } : view,
    );
    return [this.#isAsked ? { ...own, hasOtherDatabase: true } : own, ...shown];
  }

  #ask({ stored: { node, life }, address }: ReadLife, asked: Asked, sentMs: number): void {
    const { pings, clock, onNotice } = this.#options;
    pings.askDatabase({ node, life, address }, (isAway) => {
      const nowMs = clock.now();
      if (isAway || nowMs - sentMs > PROMPT_MS || this.#found.has(life)) return;
      asked.firstAnswerMs ??= nowMs;
      if (nowMs - asked.firstAnswerMs < AGAIN_MS) return;
      this.#found.add(life);
      onNotice(otherDatabase(node));
    });
  }
}
