// Opens another session in place of the lost one of a conversation, which goes on in it, unless the backend speaks
// another era than before. http-exchange.ts decides that a session is lost.

import { backendUnavailable } from '../../../domain/errors/backend-errors.ts';
import type { Closed } from '../../transport.ts';
import type { HttpBackend } from '../http-exchange.ts';
import { type HttpSession, openSession } from './http-session.ts';

interface SessionOwner {
  readonly backend: HttpBackend;
  readonly session: HttpSession;
  continueIn(session: HttpSession): void;
  end(closed: Closed): Promise<void>;
}

/** The replacement of the session of one conversation: one at a time, until the conversation ends and aborts it. */
export class SessionReplacement {
  readonly #owner: SessionOwner;
  #replacing: Promise<void> | undefined;
  #aborting: AbortController | undefined;
  #checking: Promise<void> | undefined;
  /** Resolves when the session that a failed opening was given is deleted; after a change of the era also the lost one. */
  abandoned: Promise<unknown> | undefined;
  /** A clause about the new era, if the backend speaks another one than before: then no session can replace the lost one. */
  newEra: string | undefined;

  constructor(owner: SessionOwner) {
    this.#owner = owner;
  }

  /** See HttpExchangeHost.replaceSession. All callers that lost the same session share one handshake. */
  replace(lost: HttpSession): Promise<void> {
    if (lost !== this.#owner.session) return Promise.resolve();
    this.#replacing ??= this.#replace().finally(() => {
      this.#replacing = undefined;
    });
    return this.#replacing;
  }

  /** Ends the conversation if the backend speaks another era now. One check at a time, which leaves no session. Never rejects. */
  checkEra(): Promise<void> {
    this.#checking ??= this.#sessionOfNewEra()
      .then((session) => session && this.#owner.end({ reason: this.#noteNewEra(session), isExpected: false }))
      .catch(() => undefined) // it refuses the gateway, too
      .finally(() => {
        this.#checking = undefined;
      });
    return this.#checking;
  }

  abort(): void {
    this.#aborting?.abort();
  }

  /** Resolves when no replacement is under way; never rejects. */
  async settled(): Promise<void> {
    await this.#replacing?.catch(() => undefined);
  }

  async #replace(): Promise<void> {
    this.#aborting = new AbortController();
    const onAbandoned = (deleted: Promise<void>): void => {
      this.abandoned = deleted;
    };
    const session = await this.#open(this.#aborting.signal, onAbandoned);
    if (session.handshake.era !== this.#owner.session.handshake.era)
      throw backendUnavailable(this.#noteNewEra(session), { delivered: 'no', health: 'suspicious' });
    this.#owner.continueIn(session);
  }

  /** A new session, if it is of another era; undefined if it is not. */
  async #sessionOfNewEra(): Promise<HttpSession | undefined> {
    const { signal } = new AbortController(); // it is bounded by the time for a handshake
    const session = await this.#open(signal);
    if (session.handshake.era !== this.#owner.session.handshake.era) return session;
    await session.end();
    return undefined;
  }

  #open(signal: AbortSignal, onAbandoned?: (deleted: Promise<void>) => void): Promise<HttpSession> {
    const { backend, session } = this.#owner;
    const previous = session.handshake.era;
    return openSession(backend.endpoint, {
      ...backend.options,
      signal,
      previous,
      ...(onAbandoned && { onAbandoned }),
    });
  }

  /** The clause about the new era. Abandons the sessions. */
  #noteNewEra(session: HttpSession): string {
    const lost = this.#owner.session;
    this.newEra = `it now speaks the ${session.handshake.era} era, and spoke the ${lost.handshake.era} era before`;
    this.abandoned = Promise.all([lost.end(), session.end()]);
    return this.newEra;
  }
}
