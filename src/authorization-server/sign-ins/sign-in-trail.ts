// The entries of the audit log for sign-ins at the pages.

import type { Auth } from '../../auth/auth.ts';
import type { NewEntry } from '../../domain/events/audit-entries.ts';
import { LIMITS } from '../../domain/limits.ts';
import { WindowCounter } from '../../domain/memory/window-counter.ts';
import type { Clock } from '../../domain/time/clock.ts';

/** The most users whose entries of a minute are counted. */
const MAX_ACTORS = 10_000;

/**
 * Writes the entries for sign-ins at the pages. The log keeps a bounded number of entries, failing to sign in needs no account,
 * and signing in or answering a client needs no right: those of one actor beyond some per minute are counted instead.
 */
export class SignInTrail {
  /** All unknown callers count as one, as in middleware/audit-trail.ts. */
  readonly #recorded = new WindowCounter({ windowSeconds: 60, keys: MAX_ACTORS });
  readonly #audit: Auth['audit'];
  readonly #now: Clock['now'];

  constructor(audit: Auth['audit'], now: Clock['now']) {
    this.#audit = audit;
    this.#now = now;
  }

  /** An entry for a failure names no user: a name may be a mistyped password. */
  record(entry: NewEntry): void {
    const most = LIMITS.recordedRefusalsPerMinute;
    if (this.#recorded.add(entry.actor, this.#now(), 1, most).count > most) this.#audit.suppress(entry);
    else this.#audit.record(entry);
  }
}
