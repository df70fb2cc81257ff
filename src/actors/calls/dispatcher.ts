// The entry point of calls: finds the template or instance, checks the caller's right to the tool, and creates the call.
// The route (call-route.ts) chooses the instance; domain/calls/retry-rules.ts has the rules of failover.

import { concatMap, Observable } from 'rxjs';
import {
  type ExchangeOptions,
  type ExchangeRequest,
  type SourcedEvent,
  toolOf,
} from '../../domain/calls/exchange.ts';
import { toolNotFound } from '../../domain/errors/backend-errors.ts';
import { asGatewayError } from '../../domain/errors/errors.ts';
import { shuttingDown } from '../../domain/errors/gateway-errors.ts';
import { SharedTimer } from '../../domain/time/shared-timer.ts';
import { InstanceRef } from '../instances/instance-ref.ts';
import { withHints } from '../instances/tool-hints.ts';
import { type ToolTrust, withTrustedTools } from '../instances/tool-trust.ts';
import { Call } from './call.ts';
import { CallEvents } from './call-events.ts';
import type { CallDeps, CallOptions } from './call-route.ts';
import { OWN_TIMER_AFTER_MS } from './deadline.ts';
import { DirectRoute } from './direct-route.ts';

const LIST_TOOLS = 'tools/list';

/** Creates the calls of a gateway: each is a Call with a route. */
export class Dispatcher {
  readonly #deps: CallDeps;
  /** The timer that all short calls share. */
  readonly #shortCallTimer: SharedTimer;
  #calls = 0;

  constructor(deps: CallDeps) {
    this.#deps = deps;
    this.#shortCallTimer = new SharedTimer({ ...deps, waitMs: OWN_TIMER_AFTER_MS });
  }

  /** See Gateway.exchange. */
  exchange(
    template: string,
    request: ExchangeRequest,
    options: ExchangeOptions = {},
  ): Observable<SourcedEvent> {
    return this.carry(template, request, () => {
      const { fleet } = this.#deps;
      const group = fleet.templates.existingGroup(template);
      const { instanceId, timeoutMs, isContinuation = false } = options;
      const only = instanceId === undefined ? undefined : group.ref(instanceId);
      const route = new DirectRoute(group, request, only, isContinuation);
      return { group, route, refusesUnknownTools: true, timeoutMs };
    });
  }

  /** Makes a call on any route. `optionsOf` throws when no instance can ever take the call. */
  carry(template: string, request: ExchangeRequest, optionsOf: () => CallOptions): Observable<SourcedEvent> {
    const events$ = this.#carry(template, request, optionsOf);
    return request.method === LIST_TOOLS ? this.#asListed(template, events$) : events$;
  }

  /** Keeps only trusted tools in a tool list, and adds the annotations that the template sets. */
  #asListed(template: string, events$: Observable<SourcedEvent>): Observable<SourcedEvent> {
    const { trustOf, fleet, scheduler } = this.#deps;
    const trusted$ = events$.pipe(
      concatMap((sourced) => {
        const trust = trustOf(template);
        return trust === undefined ? [sourced] : this.#trusted(template, sourced, trust);
      }),
    );
    return trusted$.pipe(
      concatMap((sourced) => {
        const { annotate = {} } = fleet.templates.has(template) ? fleet.templates.group(template).policy : {};
        return Object.keys(annotate).length === 0 ? [sourced] : withHints(sourced, annotate, scheduler);
      }),
    );
  }

  /**
   * Removes tools that are not trusted from a list. Such a list may be newer than the instance's own list, by which
   * calls are refused: the instance is therefore informed of these tools.
   */
  async #trusted(template: string, sourced: SourcedEvent, trust: ToolTrust): Promise<SourcedEvent> {
    const { trusted, definitions } = await withTrustedTools(sourced, trust, this.#deps.scheduler);
    if (definitions === undefined) return trusted;
    const instance = this.#deps.fleet.find(template, sourced.instanceId);
    if (instance instanceof InstanceRef) void instance.tools?.distrust(definitions);
    return trusted;
  }

  #carry(template: string, request: ExchangeRequest, optionsOf: () => CallOptions): Observable<SourcedEvent> {
    return new Observable((subscriber) => {
      const { emit, budget, isAccepting, clock } = this.#deps;
      this.#calls += 1;
      const events = new CallEvents(emit, clock.wall, template, this.#calls, request);
      const { report } = request;
      if (report !== undefined) {
        report.attempts = 0;
        report.template = template;
        report.tool = toolOf(request) ?? report.tool;
      }
      events.started();
      let options: CallOptions;
      try {
        if (!isAccepting()) throw shuttingDown();
        checkTool(template, request);
        options = optionsOf();
      } catch (thrown) {
        const error = asGatewayError(thrown);
        const waitMs = request.arrivedAtMs === undefined ? 0 : clock.now() - request.arrivedAtMs;
        events.refused(error.code, waitMs);
        subscriber.error(error);
        return;
      }
      budget.countCall();
      const call = new Call(this.#deps, this.#shortCallTimer, options, events, subscriber);
      subscriber.add(() => call.end());
      call.tryNow();
    });
  }
}

/** Throws TOOL_NOT_FOUND for a tool that the caller may not call, whether it exists or not. */
function checkTool(template: string, request: ExchangeRequest): void {
  if (request.tools === undefined) return;
  const tool = toolOf(request);
  if (tool !== undefined && !request.tools.allow(template, tool)) throw toolNotFound(tool, template);
}
