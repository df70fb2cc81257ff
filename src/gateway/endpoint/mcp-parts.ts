// Composes the MCP endpoint of a gateway: the endpoint (src/protocol), the backends of each template and of all templates, and
// src/actors behind them, which owns sessions, conversations and calls with questions.

import { randomBytes } from 'node:crypto';
import { endWith, ignoreElements, NEVER, Subscription, takeUntil } from 'rxjs';
import type { Dispatcher } from '../../actors/calls/dispatcher.ts';
import { CallsWithQuestions } from '../../actors/calls/stateless/calls-with-questions.ts';
import { StatelessConversations } from '../../actors/calls/stateless/stateless-conversations.ts';
import { ChangeFeed } from '../../actors/changes/change-feed.ts';
import type { Fleet } from '../../actors/fleet/fleet.ts';
import type { ClientSessions } from '../../actors/sessions/client-sessions.ts';
import { timeoutFor } from '../../balancing/policy.ts';
import { droppingErrors } from '../../domain/errors/dropping-errors.ts';
import { templateNotFound } from '../../domain/errors/registry-errors.ts';
import type { GatewayEvent } from '../../domain/events/events.ts';
import { changedList } from '../../domain/mcp/mcp.ts';
import { FairLruMap } from '../../domain/memory/fair-lru-map.ts';
import type { Timing } from '../../domain/time/task-scheduler.ts';
import type { Store } from '../../persistence/store.ts';
import { AggregateBackends } from '../../protocol/aggregate/aggregate-backends.ts';
import { allTemplates } from '../../protocol/aggregate/all-templates.ts';
import { AggregateLists, type AggregateListsDeps } from '../../protocol/aggregate/lists/aggregate-lists.ts';
import { ToolIndexes } from '../../protocol/aggregate/lists/findable-tools.ts';
import { StoredLists } from '../../protocol/aggregate/lists/stored-lists.ts';
import { CallCounts } from '../../protocol/aggregate/views/view-limits.ts';
import { Endpoint } from '../../protocol/endpoint.ts';
import type { Backends } from '../../protocol/endpoint-backends.ts';
import type { McpEndpoint } from '../../protocol/endpoint-types.ts';
import { CACHE_BYTES } from '../../protocol/template-lists.ts';
import type { Registry } from '../../registry/registry.ts';
import type { GatewayOptions } from '../gateway-types.ts';
import type { MemoryBudgets } from '../memory-budgets.ts';
import { type BackendDeps, hasUserAccounts, TemplateBackends } from './template-backends.ts';
import { useOnceIn } from './used-confirmations.ts';
import { Views, type ViewsDeps } from './views.ts';
import { WithheldItems } from './withheld-items.ts';

/** Interval at which a gateway that closes checks for calls in flight. */
const IDLE_CHECK_MS = 50;

interface McpPartsDeps extends Timing {
  readonly options: Pick<
    GatewayOptions,
    'aggregate' | 'callLimiter' | 'changedCallers$' | 'stateKeys' | 'onFault' | 'random'
  >;
  readonly fleet: Fleet;
  readonly dispatcher: Dispatcher;
  /** They are closed with the endpoint. */
  readonly sessions: ClientSessions;
  /** The views, and the approved tools of pinned templates and views. */
  readonly registry: Pick<Registry, 'views' | 'approvals'>;
  readonly emit: (event: GatewayEvent) => void;
  readonly recovered$?: AggregateListsDeps['recovered$'];
  readonly memory: Pick<MemoryBudgets, 'bufferedBytes' | 'declarations' | 'heldQuestions' | 'listReader'>;
  /** Keeps lists of templates over restarts, and records the first use of the id of a confirmation on all nodes. */
  readonly store: Pick<Store, 'kind' | 'lists' | 'oauth' | 'serverTimeMs'>;
  readonly userNotices$?: BackendDeps['userNotices$'];
}

/** The MCP endpoint of a gateway, and everything that clients have open through it. Its creator closes it. */
export class McpParts {
  readonly endpoint: McpEndpoint;
  readonly withheld: WithheldItems;
  readonly views: Views;
  readonly #deps: McpPartsDeps;
  readonly #onFault: (thrown: unknown) => void;
  readonly #actors: BackendDeps;
  readonly #askingCalls: CallsWithQuestions;
  readonly #statelessConversations: StatelessConversations;
  readonly #aggregate: AggregateBackends;
  readonly #backends = new Map<string, TemplateBackends>();
  readonly #subscriptions = new Subscription();

  constructor(deps: McpPartsDeps) {
    const { clock, scheduler, memory } = deps;
    this.#deps = deps;
    this.#onFault = droppingErrors(deps.options.onFault);
    this.withheld = new WithheldItems(clock, deps.emit, deps.registry.approvals.withheldOf);
    const newId = () => deps.sessions.newId();
    this.#askingCalls = new CallsWithQuestions({ scheduler, held: memory.heldQuestions, clock, newId });
    this.#statelessConversations = new StatelessConversations(memory.declarations, scheduler);
    this.#actors = this.#backendDeps();
    const aggregate = this.#aggregateDeps();
    const { lists, listChanges$ } = aggregate;
    const templates = () => deps.fleet.templates.names;
    const selection = allTemplates(lists, templates, scheduler, deps.options.aggregate, listChanges$);
    this.#aggregate = new AggregateBackends({ ...aggregate, selection });
    this.views = this.#makeViews(aggregate);
    this.endpoint = this.#makeEndpoint();
    this.#followChanges();
  }

  /** The dependencies of the backends of each template. */
  #backendDeps(): BackendDeps {
    const { fleet, dispatcher, sessions, clock, scheduler, memory, userNotices$ } = this.#deps;
    const { random = Math.random } = this.#deps.options;
    const statelessConversations = this.#statelessConversations;
    const closed$ = fleet.listChanged$.pipe(ignoreElements(), endWith(true));
    return {
      fleet,
      sessions,
      dispatcher,
      conversations: statelessConversations,
      changeFeed: new ChangeFeed({ fleet, statelessConversations, scheduler, random, clock }),
      clock,
      scheduler,
      listReader: memory.listReader,
      cache: new FairLruMap(CACHE_BYTES),
      userNotices$: userNotices$?.pipe(takeUntil(closed$)),
    };
  }

  /** The dependencies of all aggregates: the one of all templates, and each view. */
  #aggregateDeps() {
    const { fleet, sessions, clock, scheduler, recovered$, store } = this.#deps;
    const backendsOf = (template: string) => this.#of(template);
    const listChanges$ = fleet.listChanged$;
    const hasUserLists = (template: string) => hasUserAccounts(fleet, template);
    const lists = new AggregateLists({
      clock,
      backendsOf,
      scheduler,
      listChanges$,
      recovered$,
      reader: this.#deps.memory.listReader,
      onListed: this.withheld.listed,
      hasInstances: (template) =>
        fleet.templates.has(template) && fleet.templates.group(template).byId.size > 0,
      kept: store.kind === 'memory' ? undefined : new StoredLists(store.lists, clock, hasUserLists),
    });
    return {
      clock,
      lists,
      backendsOf,
      indexes: new ToolIndexes({ clock, scheduler }),
      scheduler,
      sessions,
      hasTemplate: (template: string) => fleet.templates.has(template),
      timeoutFor: (template: string, tool?: string, ofViewMs?: number) =>
        timeoutFor(fleet.templates.group(template).policy, tool, ofViewMs),
      movesUnsafe: (template: string) =>
        !fleet.templates.has(template) || fleet.templates.group(template).policy.sessionFailover === 'always',
      listChanges$,
      onFault: this.#onFault,
    };
  }

  #makeViews(aggregate: ViewsDeps['aggregate']): Views {
    const { fleet, dispatcher } = this.#deps;
    const { approvals, views: registry } = this.#deps.registry;
    const { callLimiter = new CallCounts(this.#deps.clock) } = this.#deps.options;
    const withheldOf = (template: string) => this.withheld.of(template);
    return new Views({ fleet, aggregate, dispatcher, callLimiter, approvals, registry, withheldOf });
  }

  #makeEndpoint(): McpEndpoint {
    const { fleet, sessions, scheduler, clock, memory, store } = this.#deps;
    const { stateKeys = [randomBytes(32)] } = this.#deps.options;
    return new Endpoint({
      backends: (pathName) => {
        if (pathName === undefined) return this.#aggregate;
        if (this.views.has(pathName)) return this.views.backends(pathName) ?? this.#of(pathName);
        fleet.templates.existingGroup(pathName); // refuses a deleted template
        return this.#of(pathName);
      },
      views: this.views,
      askingCalls: this.#askingCalls,
      newSessionId: () => sessions.newId(),
      stateKeys,
      useOnce: useOnceIn(store, clock),
      onFault: this.#onFault,
      scheduler,
      clock,
      declarations: memory.declarations,
      bufferedBytes: memory.bufferedBytes,
    });
  }

  #followChanges(): void {
    const { fleet, sessions, userNotices$ } = this.#deps;
    const { changedCallers$ = NEVER } = this.#deps.options;
    // Ends the questions, sessions and conversations of an owner. The HTTP layer ends event streams without a session.
    const perOwner = [this.#askingCalls, sessions, this.#statelessConversations];
    const changes = changedCallers$.subscribe((ownerId) => {
      Promise.all(perOwner.map((each) => each.endOf(ownerId))).catch(this.#onFault);
    });
    this.#subscriptions.add(changes);
    const noticed = userNotices$?.subscribe(({ template, notice }) =>
      this.#backends.get(template)?.noteChange(changedList(notice.method)),
    );
    this.#subscriptions.add(noticed);
    this.#subscriptions.add(fleet.templates.forgotten$.subscribe((template) => this.#forget(template)));
  }

  /** Ids of the owners that have something open that `changedCallers$` can end. */
  get owners(): ReadonlySet<string> {
    return new Set([
      ...this.#deps.sessions.owners,
      ...this.#askingCalls.owners,
      ...this.#statelessConversations.owners,
    ]);
  }

  /** Ends everything that clients have open: calls in flight have the grace time, streams end. Resolves when all is closed. */
  async close(graceMs: number): Promise<void> {
    this.#subscriptions.unsubscribe();
    this.views.close();
    // No client could answer the questions of a call, or a question without a connection, any more, because the gateway refuses
    // new requests.
    const dismissed = Promise.all([this.#askingCalls.dismiss(), this.endpoint.dismiss()]);
    // Independent of the rest: a program that does not end must not delay the answers of clients.
    const closing = this.#untilIdle(graceMs).then(() =>
      Promise.all([this.#askingCalls.close(), this.endpoint.close(), this.#statelessConversations.close()]),
    );
    await Promise.all([dismissed, this.#deps.sessions.closeAll(graceMs), closing]);
  }

  /** Resolves when no call is in flight, or waits within a session, or the grace time is over. */
  #untilIdle(graceMs: number): Promise<void> {
    const { fleet, sessions, clock } = this.#deps;
    const untilMs = clock.now() + graceMs;
    const { promise, resolve } = Promise.withResolvers<void>();
    const check = (): void => {
      if (fleet.underWay + sessions.size === 0 || clock.now() >= untilMs) resolve();
      else clock.alarm(IDLE_CHECK_MS, check);
    };
    check();
    return promise;
  }

  #forget(template: string): void {
    this.#backends.get(template)?.close();
    this.#backends.delete(template);
    this.withheld.forget(template);
  }

  /** The backends of a template, or of a deleted template that is in use. Throws TEMPLATE_NOT_FOUND. */
  #of(template: string): Backends {
    const known = this.#backends.get(template);
    if (known !== undefined) return known;
    if (!this.#deps.fleet.templates.has(template)) throw templateNotFound(template);
    const backends = new TemplateBackends(template, this.#actors);
    this.#backends.set(template, backends);
    return backends;
  }
}
