// The conversations of one endpoint, by session: made when there is something to remember, forgotten when nothing is left.
// One timer for all. What a conversation remembers is its own business.

import { SlowWatch } from '../../domain/slow-watch.ts';
import type { TaskScheduler } from '../../domain/task-scheduler.ts';
import type { FaultListener } from '../fault-listener.ts';
import type { Session } from '../ports.ts';
import { type ConversationHost, LegacyConversation } from './legacy-conversation.ts';
import { EventBudget } from './legacy-event-budget.ts';

/** How often what waited too long is looked for, in ms. */
const SWEEP_MS = 10_000;

/** Whoever makes them closes them. */
export class LegacyConversations {
  readonly #bySession = new Map<string, LegacyConversation>();
  readonly #host: ConversationHost;
  readonly #scheduler: TaskScheduler;
  #lastNumber = 0;
  #sweeper: NodeJS.Timeout | undefined;

  constructor(onFault: FaultListener, scheduler: TaskScheduler, keptBytes?: number) {
    this.#scheduler = scheduler;
    this.#host = {
      budget: EventBudget.ofAll(keptBytes),
      slow: new SlowWatch(scheduler),
      nextNumber: () => {
        this.#lastNumber += 1;
        return this.#lastNumber;
      },
      onFault,
      emptied: (sessionId, conversation) => {
        // One that was dropped may say so again after the next one began.
        if (this.#bySession.get(sessionId) === conversation) this.#bySession.delete(sessionId);
      },
    };
  }

  /** How many there are. */
  get size(): number {
    return this.#bySession.size;
  }

  /** That of a session, if there is one. */
  find(sessionId: string): LegacyConversation | undefined {
    return this.#bySession.get(sessionId);
  }

  /** That of a session; a new one if need be. Who does nothing with it says that it has settled, and it is forgotten. */
  of(session: Session): LegacyConversation {
    const known = this.#bySession.get(session.id);
    if (known !== undefined) return known;
    const conversation = new LegacyConversation(session, this.#host);
    this.#bySession.set(session.id, conversation);
    this.#sweeper ??= setInterval(() => this.#sweep(), SWEEP_MS).unref();
    return conversation;
  }

  /** Ends them all: calls that are left are answered with the error, streams end. */
  close(error: Error): Promise<void> {
    clearInterval(this.#sweeper);
    this.#host.slow.close();
    return this.#scheduler.each([...this.#bySession.values()], (conversation) => conversation.close(error));
  }

  #sweep(): void {
    const nowMs = Date.now();
    for (const conversation of [...this.#bySession.values()]) conversation.sweep(nowMs);
  }
}
