// Requests that wait for their answer. When the account of a caller has changed, its requests are authorized
// again, and requests that it may no longer make are ended. Event streams are checked in sse/event-stream.ts. Source:
// ADR 35.

import type { Observable } from 'rxjs';
import { type Linked, LinkedSet } from '../../domain/memory/linked-set.ts';
import { TaskScheduler } from '../../domain/time/task-scheduler.ts';
import type { HttpContext } from '../context.ts';

export interface OpenRequest extends Linked {
  readonly context: Pick<HttpContext, 'req' | 'state'>;
  /** The template or view of this name, which the caller must be allowed to use; undefined for a request of none. */
  readonly pathName: string | undefined;
  /** Cancels the work for the request, and answers it with this error. */
  readonly end: (reason: Error) => void;
}

/** The requests that are under way, until they are answered. */
export class OpenRequests {
  readonly #requests = new LinkedSet<OpenRequest>();

  /** `changed$`: ids of principals that may have lost permissions. Subscribes until it completes. */
  constructor(changed$: Observable<string>) {
    // This class has a scheduler of its own: a revocation does not wait for the tasks of the gateway.
    const scheduler = new TaskScheduler();
    changed$.subscribe((callerId) => {
      const theirs = this.#requests.values().filter(({ context }) => idOf(context) === callerId);
      void scheduler.each(theirs, (request) => this.#check(request));
    });
  }

  /** The ids of the principals whose requests are open. */
  get callers(): ReadonlySet<string> {
    return new Set(this.#requests.values().flatMap(({ context }) => idOf(context) ?? []));
  }

  add(request: OpenRequest): void {
    this.#requests.add(request);
  }

  delete(request: OpenRequest): void {
    this.#requests.delete(request);
  }

  /** Checks whether its caller still has the rights. Never rejects. */
  async #check(request: OpenRequest): Promise<void> {
    const { context, pathName, end } = request;
    const refusal = await context.state.check?.({ req: context.req, state: { ...context.state, pathName } });
    if (refusal !== undefined && this.#requests.delete(request)) end(refusal);
  }
}

function idOf({ state }: OpenRequest['context']): string | undefined {
  return state.principal?.id;
}
