// The backends of an aggregate: several templates as one server, all that a caller may use or those of a view.

import {
  BehaviorSubject,
  defer,
  EMPTY,
  endWith,
  filter,
  finalize,
  ignoreElements,
  map,
  merge,
  mergeMap,
  mergeWith,
  Observable,
  repeat,
  retry,
  Subject,
  type Subscriber,
  takeUntil,
  throttle,
} from 'rxjs';
import type { ExchangeRequest, SentTo, SourcedEvent } from '../../domain/calls/exchange.ts';
import type { GatewayError } from '../../domain/errors/errors.ts';
import { templateNotFound } from '../../domain/errors/registry-errors.ts';
import type { EndReason } from '../../domain/errors/session-ends.ts';
import { sessionEnded, sessionLost } from '../../domain/errors/session-errors.ts';
import {
  type Client,
  type ClientProfile,
  listNotice,
  type Notification,
  type Owner,
  type StatelessOptions,
} from '../../domain/mcp/client.ts';
import {
  type Handshake,
  LEGACY_VERSIONS,
  type ListChange,
  type ListField,
  type Tool,
  type WantedChanges,
} from '../../domain/mcp/mcp.ts';
import { LruMap } from '../../domain/memory/lru-map.ts';
import type { SessionOpening } from '../../domain/sessions/all-sessions.ts';
import type { McpSession } from '../../domain/sessions/mcp-session.ts';
import type { AggregateSessionValue } from '../../domain/sessions/session-value.ts';
import { timer$ } from '../../domain/time/clock-streams.ts';
import { inTasks } from '../../domain/time/task-streams.ts';
import { shortKey } from '../client-bounds.ts';
import type { Backends } from '../endpoint-backends.ts';
import type { FaultListener } from '../endpoint-types.ts';
import { aggregateExchange } from './aggregate-exchange.ts';
import { AggregateExtensions, type ToTemplate } from './aggregate-extensions.ts';
import { aggregateHandshakeResult } from './aggregate-handshake.ts';
import { splitInstance, withAggregateInstance } from './aggregate-names.ts';
import type { AggregateLists } from './lists/aggregate-lists.ts';
import { FindableTools, type ToolIndexes } from './lists/findable-tools.ts';
import { SearchMode } from './search-mode.ts';
import type { Presentation, Selection } from './selection.ts';
import { AggregateSession, type AggregateSessionDeps } from './sessions/aggregate-session.ts';
import { checkRecoverable, newAggregateSession, viewIdOf } from './sessions/aggregate-session-value.ts';
import { askedNames, isUpdate, updatesAsAsked } from './uris/composed-uris.ts';

/** Greetings that sessions share; callers with equal permissions have the same. */
const MAX_HANDSHAKES = 100;
/** An owner without a limit, which gets the changes for any caller. */
const EVERYONE: Owner = { id: '' };
/** The shortest time between two lookups of the templates that own the subscribed resources. */
const LOOKUP_MS = 1_000;
/** A look-up that fails is tried again after LOOKUP_MS, then after twice as long each time, up to this, in ms. */
const MAX_RETRY_MS = 30_000;
/** The failure that is reported. A first one may be that of a template that is deleted meanwhile. */
const REPORTED_FAILURE = 2;

export interface AggregateDeps extends Omit<AggregateSessionDeps, 'route'> {
  /** The lists of templates, which all aggregates share. */
  readonly lists: AggregateLists;
  /** The search indexes, which all aggregates share. */
  readonly indexes: ToolIndexes;
  /** Gets, once for each look-up, why templates of subscribed resources cannot be found. It must not throw. Default: ignored. */
  readonly onFault?: FaultListener | undefined;
}

/**
 * One aggregate, until `close`. It merges the lists of its templates and sends each call to the template that owns the name or
 * the resource. It knows templates only as Backends, and names an instance `{template}/{instance}`.
 */
export class AggregateBackends implements Backends {
  readonly #deps: AggregateDeps;
  readonly #selection: Selection;
  readonly #extensions: AggregateExtensions;
  #search: { readonly presentation: Presentation; readonly mode: SearchMode } | undefined;
  #findable: FindableTools | undefined;
  readonly #changes$: Observable<ListChange>;
  readonly #sessionDeps: AggregateSessionDeps;
  readonly #open = new Map<string, AggregateSession>();
  /** The exchanges of clients without a session through a view, which end when it is deleted. */
  readonly #exchanges = new Set<Subscriber<SourcedEvent>>();
  readonly #closed$ = new Subject<void>();
  #closedFor: EndReason | undefined;
  readonly #handshakes = new LruMap<Handshake>(MAX_HANDSHAKES);

  constructor(deps: AggregateDeps) {
    this.#deps = deps;
    this.#selection = deps.selection;
    const closed$ = deps.listChanges$.pipe(ignoreElements(), endWith(true));
    this.#changes$ = merge(deps.listChanges$, deps.lists.late$).pipe(takeUntil(closed$));
    this.#extensions = new AggregateExtensions(deps);
    this.#sessionDeps = { ...deps, route: this.#route.bind(this), listChanges$: this.#changes$ };
  }

  /** Ends the sessions, streams and calls of its clients: the view was deleted. */
  close(reason: EndReason): void {
    this.#closedFor = reason;
    this.#closed$.next();
    for (const session of this.#open.values()) void session.close(reason);
    void this.#deps.scheduler.each(this.#exchanges, (exchange) => exchange.error(this.#notFound()));
  }

  handshakes(owner: Owner): readonly Handshake[] {
    return [this.#handshake(owner)];
  }

  /** See Backends; the servers that are starting for the first time are waited for as by lists (ADR 117). */
  untilStarted(owner: Owner): Promise<void> | undefined {
    return this.#deps.lists.untilStarted(this.#templates(owner), owner);
  }

  async openSession(owner: Owner, profile: ClientProfile, { id }: SessionOpening = {}): Promise<McpSession> {
    await this.untilStarted(owner);
    if (this.#closedFor !== undefined) throw sessionEnded(this.#closedFor);
    const handshake = this.#handshake(owner);
    const value = newAggregateSession(owner, profile, handshake, this.#selection.view);
    const session = new AggregateSession({ value, owner, handshake, id }, this.#sessionDeps);
    this.#deps.sessions.add(session, 'new');
    this.#noteOpen(session);
    return session;
  }

  /**
   * Makes a session again from its value, under the id that its client has; the client already has the handshake of the value.
   * `owner`: its owner with its current permissions. Nothing is opened before its first use. Throws SESSION_NOT_FOUND
   * when it is over or open, may not move (`session_failover`), or its owner may use other templates than before;
   * SESSION_LIMIT, SHUTTING_DOWN.
   */
  recoverFrom(id: string, value: AggregateSessionValue, owner: Owner, generation: number): AggregateSession {
    if (this.#deps.sessions.findAny(id) !== undefined) throw sessionLost('it is open already');
    const handshake = { ...checkRecoverable(value, owner, this.#deps.movesUnsafe), greeting: {} };
    const session = new AggregateSession({ value, owner, handshake, id }, this.#sessionDeps);
    this.#deps.sessions.add(session, 'recovered');
    this.#noteOpen(session);
    session.recoverAs(generation);
    return session;
  }

  session(id: string, owner: Owner): McpSession | undefined {
    const session = this.#open.get(id);
    if (session === undefined) return undefined;
    if (session.value.ownerId === owner.id && !session.isAllowedFor(owner)) {
      void session.close('rightsChanged');
      return undefined;
    }
    this.#deps.sessions.used(session);
    return session;
  }

  recoverSession(id: string, owner: Owner): Promise<void> | undefined {
    return this.#deps.sessions.recover(id, owner.id, {
      isOwn: (value): value is AggregateSessionValue =>
        value.kind !== 'template' && viewIdOf(value) === this.#selection.view,
      check: async (value) => void checkRecoverable(value, owner, this.#deps.movesUnsafe),
      make: (value, generation) => void this.recoverFrom(id, value, owner, generation),
    });
  }

  exchange(request: ExchangeRequest, options: StatelessOptions): Observable<SourcedEvent> {
    const { owner, profile, instanceId } = options;
    const bound = instanceId === undefined ? undefined : splitInstance(instanceId);
    const isPermitted = bound !== undefined && this.#templates(owner).includes(bound.template);
    const client = { owner, profile };
    const toTemplate = this.#toTemplate(client, bound);
    return this.route(request, client, toTemplate, isPermitted ? bound.template : undefined);
  }

  #toTemplate(client: Client, bound?: SentTo): ToTemplate {
    return (template, own) => {
      const instanceId = bound?.template === template ? bound.id : undefined;
      const events$ = this.#deps.backendsOf(template).exchange(own, { ...client, instanceId });
      return events$.pipe(map(withAggregateInstance(template)));
    };
  }

  /**
   * Answers one request of a client without a session, or passes it to `toTemplate` with the names of the template. `bound`: the
   * template that it continues with. Throws TEMPLATE_NOT_FOUND once the view is deleted.
   */
  route(
    request: ExchangeRequest,
    client: Client,
    toTemplate: ToTemplate,
    bound?: string | undefined,
  ): Observable<SourcedEvent> {
    const events$ = this.#route(request, client, toTemplate, bound);
    if (this.#selection.view === undefined) return events$;
    return new Observable((subscriber) => {
      if (this.#closedFor !== undefined) {
        subscriber.error(this.#notFound());
        return;
      }
      this.#exchanges.add(subscriber);
      subscriber.add(() => this.#exchanges.delete(subscriber));
      subscriber.add(events$.subscribe(subscriber));
    });
  }

  #notFound(): GatewayError {
    return templateNotFound(this.#selection.view ?? '');
  }

  #route(
    request: ExchangeRequest,
    client: Client,
    toTemplate: ToTemplate,
    bound: string | undefined,
  ): Observable<SourcedEvent> {
    const { clock, scheduler } = this.#deps;
    const common = { selection: this.#selection, extensions: this.#extensions, search: this.search };
    return aggregateExchange({ ...common, clock, scheduler, request, client, toTemplate, bound });
  }

  changes(owner: Owner, profile: ClientProfile, wanted: WantedChanges): Observable<Notification> {
    const permitted$ = this.#changes$.pipe(
      filter(({ template }) => this.#selection.includes(owner, template)),
    );
    const lists$ = merge(permitted$.pipe(map(({ list }) => list)), this.#selection.changed$).pipe(
      filter((list) => wanted.lists.has(list)),
      takeUntil(permitted$.pipe(ignoreElements(), endWith(true))),
      map(listNotice),
    );
    const own = { lists: wanted.lists, resources: new Set<string>() };
    const { scheduler } = this.#deps;
    const notified$ = defer(() => {
      const followed = new Set<string>();
      return permitted$.pipe(
        map(({ template }) => template),
        mergeWith(inTasks(this.#templates(owner), scheduler)),
        // A deleted template is left out. Another one may get its name.
        filter((template) => !followed.has(template) && this.#isThere(template, owner)),
        mergeMap((template) => {
          followed.add(template);
          const changes$ = this.#deps.backendsOf(template).changes(owner, profile, own);
          return changes$.pipe(finalize(() => followed.delete(template)));
        }),
      );
    });
    const updates$ = this.#updates({ owner, profile }, wanted.resources, permitted$);
    return merge(notified$, updates$, lists$).pipe(takeUntil(this.#closed$));
  }

  /** Includes resources that a template lists only later. */
  #updates(
    client: Client,
    resources: ReadonlySet<string>,
    changes$: Observable<ListChange>,
  ): Observable<Notification> {
    const { owner, profile } = client;
    const { scheduler } = this.#deps;
    return defer(() => {
      const unknown = new Set(resources);
      if (unknown.size === 0) return EMPTY;
      const { uris } = this.#selection.directory;
      const isServed = (template: string) => (uri: string) => uris.isServed(template, uri);
      const readSkills = () => this.#extensions.listSkills(client, this.#toTemplate(client));
      let isOver = false;
      const wanted = {
        *[Symbol.iterator]() {
          for (const uri of [...unknown]) {
            if (isOver) throw new Error('its stream has ended'); // ends the look-up
            yield uri;
          }
        },
      };
      const lookUp = async () => {
        const targets = await uris.targetsOf(wanted, client, readSkills, scheduler);
        for (const asked of targets.keys()) unknown.delete(asked);
        return [...Map.groupBy(targets, ([, { template }]) => template)];
      };
      return this.#eachLookUp(lookUp, changes$).pipe(
        mergeMap((owned) => inTasks(owned, scheduler)),
        mergeMap(([template, found]) => {
          if (!this.#isThere(template, owner)) {
            for (const [asked] of found) unknown.add(asked);
            return EMPTY;
          }
          const subscribed = found.map(([asked, { uri }]) => [asked, uri] as const);
          const names = askedNames(subscribed);
          const own = { lists: new Set<ListField>(), resources: new Set(names.keys()) };
          return this.#deps
            .backendsOf(template)
            .changes(owner, profile, own)
            .pipe(
              mergeMap((notice) =>
                isUpdate(notice) ? updatesAsAsked(notice, names, isServed(template)) : [notice],
              ),
              finalize(() => subscribed.forEach(([asked]) => void unknown.add(asked))),
            );
        }),
        finalize(() => {
          isOver = true;
        }),
      );
    });
  }

  /**
   * Makes one look-up at a time: at first, after changes of lists of resources, and after failures, such as of a template that
   * is deleted meanwhile. An error that leaves this stream would end the process.
   */
  #eachLookUp<T>(lookUp: () => Promise<T>, changes$: Observable<ListChange>): Observable<T> {
    const { clock, onFault } = this.#deps;
    const changed$ = changes$.pipe(
      filter(({ list }) => list === 'resources' || list === 'resourceTemplates'),
      throttle(() => timer$(clock, LOOKUP_MS), { leading: true, trailing: true }),
      map(() => true),
    );
    return defer(() => {
      const isOutdated$ = new BehaviorSubject(true);
      const outdated$ = isOutdated$.pipe(filter((isOutdated) => isOutdated));
      const noting = changed$.subscribe(isOutdated$);
      return defer(() => {
        isOutdated$.next(false);
        return lookUp();
      }).pipe(
        retry({
          delay: (thrown, failures) => {
            if (failures === REPORTED_FAILURE) onFault?.(thrown);
            const waitMs = Math.min(LOOKUP_MS * 2 ** Math.min(failures - 1, 10), MAX_RETRY_MS);
            return merge(timer$(clock, waitMs), outdated$);
          },
        }),
        repeat({ delay: () => outdated$ }),
        finalize(() => noting.unsubscribe()),
      );
    });
  }

  tool(aggregated: string, owner?: Owner): Tool | undefined {
    const own = owner && this.#selection.directory.knownTarget(aggregated, owner);
    return own && this.#deps.backendsOf(own.template).tool(own.name);
  }

  relistTool(aggregated: string, owner?: Owner): void {
    const own = owner && this.#selection.directory.knownTarget(aggregated, owner);
    if (own !== undefined) this.#deps.backendsOf(own.template).relistTool(own.name);
  }

  /** The search mode of the list of tools. Undefined where all tools are listed. It may change with the view. */
  get search(): SearchMode | undefined {
    const presentation = this.#selection.presentation();
    if (presentation?.mode !== 'search') return undefined;
    const { directory } = this.#selection;
    const { scheduler } = this.#deps;
    if (this.#search?.presentation !== presentation) {
      this.#findable ??= this.#newFindable();
      const mode = new SearchMode({
        tools: this.#findable,
        directory,
        scheduler,
        always: presentation.always ?? [],
      });
      this.#search = { presentation, mode };
    }
    return this.#search.mode;
  }

  #newFindable(): FindableTools {
    const { scheduler, clock, indexes } = this.#deps;
    const { directory, changed$ } = this.#selection;
    const isShown = ({ list, template }: ListChange) =>
      list === 'tools' && this.#selection.includes(EVERYONE, template);
    const changes$ = merge(this.#changes$.pipe(filter(isShown)), changed$).pipe(takeUntil(this.#closed$));
    return new FindableTools({ directory, scheduler, clock, indexes, changes$ });
  }

  #noteOpen(session: AggregateSession): void {
    this.#open.set(session.id, session);
    session.ended$.subscribe(() => this.#open.delete(session.id));
  }

  #templates(owner: Owner): readonly string[] {
    return this.#selection.templates(owner);
  }

  /** True for one of `#templates`, without that list: each stream asks for each template. */
  #isThere(template: string, owner: Owner): boolean {
    return this.#deps.hasTemplate(template) && this.#selection.includes(owner, template);
  }

  /** The handshake result: one object for equal results, since each session keeps it. */
  #handshake(owner: Owner): Handshake {
    const templates = this.#templates(owner);
    const handshakesOf = (template: string) => this.#deps.backendsOf(template).handshakes(owner);
    const result = aggregateHandshakeResult(
      templates.map((template) => ({ template, handshakes: handshakesOf(template) })),
      this.#selection.presentation(),
    );
    const key = shortKey(JSON.stringify(result));
    const { capabilities, serverInfo } = result;
    const protocolVersion = LEGACY_VERSIONS[0];
    const handshake = this.#handshakes.get(key) ?? {
      era: 'legacy',
      protocolVersion,
      serverInfo,
      capabilities,
      greeting: result,
    };
    this.#handshakes.set(key, handshake);
    return handshake;
  }
}
