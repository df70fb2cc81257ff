// Authorizes a caller for a route, and again while its event streams are open. Authentication is src/auth.

import type { Auth } from '../auth/auth.ts';
import { mayDo, mayUse, type Principal, type Scope } from '../domain/account.ts';
import {
  accountsNeedAllTemplates,
  insufficientPermissions,
  invalidCredentials,
  templateNotFound,
} from '../domain/error-catalogue.ts';
import { asGatewayError, type GatewayError, hasCode } from '../domain/errors.ts';
import { LIMITS } from '../domain/limits.ts';
import { TaskScheduler } from '../domain/task-scheduler.ts';
import { type CredentialedRequest, credentialsOf } from './credentials.ts';

/** The error for a caller that is not authorized; undefined for one that is. */
export type Refusal = GatewayError | undefined;

interface CheckedRequest extends CredentialedRequest {
  readonly state: CredentialedRequest['state'] & {
    readonly principal?: Principal;
    readonly template?: string | undefined;
  };
}

/** Authorizes the caller of a request again. Never throws or rejects; without a promise when its credentials are cached. */
export type CallerCheck = (context: CheckedRequest) => Refusal | Promise<Refusal>;

/** True for routes that need the registry: all but those for admins, which manage accounts. */
export function readsRegistry(anyOf: readonly Scope[]): boolean {
  return !anyOf.includes('admin');
}

/** INSUFFICIENT_PERMISSIONS, or TEMPLATE_NOT_FOUND for a template that the principal may not use. */
export function callerRefusalOf(principal: Principal, anyOf: readonly Scope[], template?: string): Refusal {
  if (!mayDo(principal, anyOf)) return insufficientPermissions(anyOf);
  // An admin of some templates could create an account for all of them.
  if (principal.templates !== undefined && anyOf.every((scope) => scope === 'admin'))
    return accountsNeedAllTemplates();
  if (template !== undefined && !mayUse(principal, template))
    return templateNotFound(template.slice(0, LIMITS.locCharacters));
  return undefined;
}

/**
 * Makes the check of a route that needs one of these scopes. It refuses a caller whose credentials are no longer valid or
 * now belong to another principal. On a route without a template it also refuses a caller whose templates changed or that
 * is no longer an admin, because its events were selected by them. While the database is unavailable, no caller is refused.
 */
export function callerCheck(anyOf: readonly Scope[], auth: Pick<Auth, 'authenticate'>): CallerCheck {
  return (context) => {
    const { principal: before, template } = context.state;
    const refusalNow = (now: Principal): Refusal => {
      if (now === before || before === undefined) return undefined;
      if (now.id !== before.id) return invalidCredentials();
      const isOther =
        template === undefined && (!hasSameTemplates(now, before) || (isAdmin(before) && !isAdmin(now)));
      return isOther ? insufficientPermissions(anyOf) : callerRefusalOf(now, anyOf, template);
    };
    try {
      const principal = auth.authenticate(credentialsOf(context));
      return principal instanceof Promise
        ? principal.then(refusalNow).catch(refusalAfter)
        : refusalNow(principal);
    } catch (thrown) {
      return refusalAfter(thrown);
    }
  };
}

function isAdmin(principal: Principal): boolean {
  return mayDo(principal, ['admin']);
}

function refusalAfter(thrown: unknown): Refusal {
  return hasCode(thrown, 'DATABASE_UNAVAILABLE') ? undefined : asGatewayError(thrown);
}

function hasSameTemplates({ templates: now }: Principal, { templates: before }: Principal): boolean {
  if (now === undefined || before === undefined) return now === before;
  return now.size === before.size && [...now].every((template) => before.has(template));
}

/** The checks of one round are spread over this many ticks. */
const TICKS = 10;

interface WatchedStream {
  /** Checks the caller of the stream. Never throws or rejects. */
  check(): Refusal | Promise<Refusal>;
  /** Ends the stream and its watch. */
  revoke(refusal: NonNullable<Refusal>): void;
}

/**
 * Checks the callers of open event streams periodically: a stream whose API key was revoked would otherwise stay open
 * forever. One timer for all streams, a few checks per tick.
 */
export class CallerWatch {
  readonly #roundMs: number;
  readonly #scheduler: TaskScheduler;
  /** In the order of the last check, oldest first. */
  readonly #queue = new Set<WatchedStream>();
  readonly #pending = new Set<WatchedStream>();
  /** Number of checks that are due, multiplied by TICKS. */
  #due = 0;
  #timer: NodeJS.Timeout | undefined;

  /** Each caller is checked about once in `roundMs`. `scheduler` spreads the end of the streams of one caller over time. */
  constructor(roundMs: number, scheduler = new TaskScheduler()) {
    this.#roundMs = roundMs;
    this.#scheduler = scheduler;
  }

  /** Watches a stream until the returned function is called. */
  watch(stream: WatchedStream): () => void {
    this.#queue.add(stream);
    this.#timer ??= setInterval(() => this.#tick(), this.#roundMs / TICKS).unref();
    return () => this.#queue.delete(stream);
  }

  /** Not called when the last stream ends: consecutive calls would each start a timer. */
  #stopTimer(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
    this.#due = 0;
  }

  #tick(): void {
    if (this.#queue.size === 0) {
      this.#stopTimer();
      return;
    }
    this.#due += this.#queue.size;
    // A checked stream goes to the end of the queue, so one tick checks each at most once.
    for (const stream of this.#queue) {
      if (this.#due < TICKS) return;
      this.#due -= TICKS;
      this.#queue.delete(stream);
      this.#queue.add(stream);
      this.#check(stream);
    }
  }

  #check(stream: WatchedStream): void {
    if (this.#pending.has(stream)) return;
    const refusal = stream.check();
    if (!(refusal instanceof Promise)) {
      this.#apply(stream, refusal);
      return;
    }
    this.#pending.add(stream);
    void refusal.then((result) => {
      this.#pending.delete(stream);
      this.#apply(stream, result);
    });
  }

  #apply(stream: WatchedStream, refusal: Refusal): void {
    if (refusal === undefined) return;
    this.#scheduler.run(() => {
      if (this.#queue.has(stream)) stream.revoke(refusal);
    });
  }
}
