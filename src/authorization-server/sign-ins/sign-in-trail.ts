// The entries of the audit log for sign-ins at the pages.

import type { Auth } from '../../auth/auth.ts';
import type { NewEntry } from '../../domain/events/audit-entries.ts';
import { LIMITS } from '../../domain/limits.ts';
import { WindowCounter } from '../../domain/memory/window-counter.ts';
import type { Clock } from '../../domain/time/clock.ts';

/**
 * Writes the entries for sign-ins at the pages. The log keeps a bounded number of entries, and failing to sign in needs
 * no account: failures beyond some per minute are counted instead.
 */
export class SignInTrail {
  /** All unknown callers count as one, as in middleware/audit-trail.ts. */
  readonly #failures = new WindowCounter({ windowSeconds: 60, keys: 1 });
  readonly #audit: Auth['audit'];
  readonly #now: Clock['now'];

  constructor(audit: Auth['audit'], now: Clock['now']) {
    this.#audit = audit;
    this.#now = now;
  }

  record(entry: NewEntry): void {
    this.#audit.record(entry);
  }

  /** The entry names no user: a name may be a mistyped password. */
  recordFailure(entry: NewEntry): void {
    const most = LIMITS.recordedRefusalsPerMinute;
    if (this.#failures.add('unknown', this.#now(), 1, most).count > most) this.#audit.suppress(entry);
    else this.#audit.record(entry);
  }
}
