// The mark `unsafe` of an aggregate session.

import type { UnsafeMark } from '../../../domain/sessions/all-sessions.ts';

/**
 * The mark `unsafe` of one aggregate session. It lists the templates with which its client made a call that is not safe
 * to repeat, or any call where `session_failover` is `never`. Its parts set the mark, as a session with one template
 * sets its own. Source: ADR 167.
 */
export class UnsafeMarks {
  readonly #marked: () => readonly string[] | undefined;
  readonly #write: (templates: readonly string[]) => Promise<void>;
  /** The latest write that is under way; it includes those before. */
  #writing: Promise<void> | undefined;

  /** `write`: resolves when the templates are stored, after 250 ms at most; rejects when the session is over. */
  constructor(
    marked: () => readonly string[] | undefined,
    write: (templates: readonly string[]) => Promise<void>,
  ) {
    this.#marked = marked;
    this.#write = write;
  }

  of(template: string): UnsafeMark {
    const isUnmarked = () => this.#writing !== undefined || this.#marked()?.includes(template) !== true;
    return {
      get isUnmarked() {
        return isUnmarked();
      },
      writeMark: () => this.#mark(template),
    };
  }

  #mark(template: string): Promise<void> | undefined {
    const marked = this.#marked() ?? [];
    if (marked.includes(template)) return this.#writing;
    const writing = this.#write([...marked, template]).finally(() => {
      if (this.#writing === writing) this.#writing = undefined;
    });
    this.#writing = writing;
    return writing;
  }
}
