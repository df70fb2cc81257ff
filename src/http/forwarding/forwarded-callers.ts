// Requests that another node forwarded: their callers were authenticated and counted there. They take the middleware of
// any request of the MCP endpoint, with the principal that the other node vouches for. Source: ADR 148.

import type { Observable } from 'rxjs';
import { invalidCredentials } from '../../domain/errors/account-errors.ts';
import { type GatewayError, internalError } from '../../domain/errors/errors.ts';
import { LruMap } from '../../domain/memory/lru-map.ts';
import type { Clock } from '../../domain/time/clock.ts';
import { callerRefusalOf, type MayUsePath } from '../callers/caller-check.ts';
import type { RouteMiddleware } from '../context.ts';
import type { HttpRoute } from '../routing/route.ts';

/** The most principals whose last change is remembered. */
const MAX_REMEMBERED = 10_000;

/** Gives a forwarded request its principal. */
export class ForwardedCallers {
  readonly #clock: Clock;
  /** The time at which a principal lost permissions, or may have, by principal. */
  readonly #changedAtMs = new LruMap<number>(MAX_REMEMBERED);

  /** `changed$`: ids of principals that may have lost permissions. Subscribes until it completes. */
  constructor(changed$: Observable<string>, clock: Clock) {
    this.#clock = clock;
    changed$.subscribe((id) => this.#changedAtMs.set(id, clock.now()));
  }

  /**
   * Takes the place of `authorize`. Without their credentials these callers cannot be verified again: a request
   * that is open when its principal changes ends with INVALID_CREDENTIALS, and the next one is authorized by the
   * node that receives it.
   */
  assume(route: Pick<HttpRoute, 'scope'>, mayUsePath: MayUsePath): RouteMiddleware {
    const anyOf = [route.scope].flat();
    return ({ state, params }, next) => {
      const caller = state.forwarded;
      if (caller === undefined || anyOf.includes('open')) throw internalError(undefined);
      const { principal } = caller;
      const sinceMs = this.#clock.now();
      state.isPrivate = true;
      state.principal = principal;
      state.check = () => this.#refusalOf(principal.id, sinceMs);
      const scopes = anyOf.filter((scope) => scope !== 'open');
      const refusal = callerRefusalOf(principal, scopes, params.template, mayUsePath);
      if (refusal !== undefined) throw refusal;
      return next();
    };
  }

  #refusalOf(id: string, sinceMs: number): GatewayError | undefined {
    return (this.#changedAtMs.get(id) ?? Number.NEGATIVE_INFINITY) >= sinceMs
      ? invalidCredentials()
      : undefined;
  }
}
