// The end of a session: why it came, and who is told. What is to be answered before is client-session.ts's.

import { Observable } from 'rxjs';

export class ClientSessionEnd {
  #reason: string | undefined;
  #listeners: Set<() => void> | undefined;

  /** Why it is over, as a clause; undefined while it is not. */
  get reason(): string | undefined {
    return this.#reason;
  }

  /** Emits the reason once when it is over, then completes. Replayed. */
  get told$(): Observable<string> {
    return new Observable((subscriber) => {
      const tell = (): void => {
        subscriber.next(this.#reason ?? '');
        subscriber.complete();
      };
      if (this.#reason !== undefined) return tell();
      this.#listeners ??= new Set();
      this.#listeners.add(tell);
      return () => this.#listeners?.delete(tell);
    });
  }

  /** It has come: nothing begins any more. */
  come(reason: string): void {
    this.#reason = reason;
  }

  /** Tells those who wait for it. */
  tell(): void {
    for (const tell of [...(this.#listeners ?? [])]) tell();
  }
}
