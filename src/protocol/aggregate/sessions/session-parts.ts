// The parts of an aggregate session: its sessions with one template each.

import { defer, filter, finalize, from, merge, mergeMap, type Observable, Subject, takeUntil } from 'rxjs';
import type { EndReason } from '../../../domain/errors/session-ends.ts';
import { sessionEnded } from '../../../domain/errors/session-errors.ts';
import type { ServerMessage } from '../../../domain/mcp/client.ts';
import type { McpSession } from '../../../domain/sessions/mcp-session.ts';
import type { TaskScheduler } from '../../../domain/time/task-scheduler.ts';

interface SessionPartsDeps {
  readonly scheduler: TaskScheduler;
  readonly openSession: (template: string) => Promise<McpSession>;
  /** A part was opened, and its messages follow. */
  readonly opened: (template: string, part: McpSession) => void;
}

/**
 * The parts of one session, which `close` ends. A part is opened at the first use of its template, and another one after it has
 * ended. aggregate-session.ts restores the state of the client in a new part.
 */
export class SessionParts {
  readonly #deps: SessionPartsDeps;
  /** The parts that are open or being opened, by template. */
  readonly #openings = new Map<string, Promise<McpSession>>();
  readonly #open = new Map<string, McpSession>();
  readonly #opened = new Subject<readonly [template: string, part: McpSession]>();
  /** Parts whose template was deleted. */
  readonly #left = new Subject<McpSession>();
  #endReason: EndReason | undefined;

  constructor(deps: SessionPartsDeps) {
    this.#deps = deps;
  }

  get all(): readonly McpSession[] {
    return [...this.#open.values()];
  }

  /** The session with this template. Undefined while there is none, or it is being opened. */
  get(template: string): McpSession | undefined {
    return this.#open.get(template);
  }

  /** The part with this template, which is opened if there is none. */
  with(template: string): Promise<McpSession> {
    const known = this.#openings.get(template);
    if (known !== undefined) return known;
    const opening = this.#openWith(template);
    this.#openings.set(template, opening);
    opening.catch(() => this.#openings.delete(template));
    return opening;
  }

  /**
   * Messages of the parts, present and later ones, as the client gets them. A part does not expire while they are
   * subscribed to.
   */
  messages(
    asAsked: (template: string, message: ServerMessage) => readonly ServerMessage[],
  ): Observable<ServerMessage> {
    const present$ = defer(() => from([...this.#open]));
    return merge(present$, this.#opened).pipe(
      mergeMap(([template, part]) =>
        this.#messagesOf(part).pipe(mergeMap((message) => asAsked(template, message))),
      ),
    );
  }

  /** Parts whose template does not exist are held no longer: they expire when their calls have ended. */
  leaveDeleted(hasTemplate: (template: string) => boolean): void {
    for (const [template, part] of this.#open) {
      if (hasTemplate(template)) continue;
      this.#forget(template, part);
      this.#left.next(part);
    }
  }

  /**
   * Ends all parts, in several turns of the event loop: there may be one for each template. A part that is being opened ends when
   * it is open.
   */
  async close(reason: EndReason): Promise<void> {
    this.#endReason = reason;
    this.#opened.complete();
    const closed = this.#deps.scheduler.each(this.all, (part) => part.close(reason));
    await Promise.allSettled([closed, ...this.#openings.values()]);
  }

  async #openWith(template: string): Promise<McpSession> {
    const part = await this.#deps.openSession(template);
    if (this.#endReason !== undefined) {
      await part.close(this.#endReason);
      throw sessionEnded(this.#endReason);
    }
    this.#open.set(template, part);
    part.ended$.subscribe(() => this.#forget(template, part));
    this.#deps.opened(template, part);
    this.#opened.next([template, part]);
    return part;
  }

  #messagesOf(part: McpSession): Observable<ServerMessage> {
    const over$ = merge(part.ended$, this.#left.pipe(filter((left) => left === part)));
    return defer(() => part.messages$.pipe(takeUntil(over$), finalize(part.hold())));
  }

  /**
   * Forgets a part, so that new calls are made in another one. Calls under way in the part continue there, and it ends with them.
   */
  #forget(template: string, part: McpSession): void {
    if (this.#open.get(template) !== part) return;
    this.#open.delete(template);
    this.#openings.delete(template);
  }
}
