// Adapts the instances of one template to the interface of the MCP endpoint (protocol/endpoint-backends.ts), with
// their lists from a cache. src/actors owns sessions, stateless clients and changes.

import {
  EMPTY,
  filter,
  firstValueFrom,
  map,
  merge,
  type Observable,
  race,
  Subject,
  takeUntil,
  tap,
} from 'rxjs';
import { type StatelessDeps, statelessExchange } from '../../actors/calls/stateless/stateless-route.ts';
import type { ChangeFeed } from '../../actors/changes/change-feed.ts';
import type { Fleet } from '../../actors/fleet/fleet.ts';
import { noHealthyError } from '../../actors/fleet/no-instance.ts';
import { InstanceRef } from '../../actors/instances/instance-ref.ts';
import type { ClientSessions } from '../../actors/sessions/client-sessions.ts';
import { timeoutFor } from '../../balancing/policy.ts';
import { userIdIn } from '../../domain/accounts/principal.ts';
import { mayCall } from '../../domain/accounts/rights.ts';
import type { ExchangeRequest, SourcedEvent } from '../../domain/calls/exchange.ts';
import type { GatewayError } from '../../domain/errors/errors.ts';
import { templateNotFound } from '../../domain/errors/registry-errors.ts';
import type { InstanceDefinition } from '../../domain/instances/instance.ts';
import type { ListReader } from '../../domain/lists/list-reader.ts';
import { listedAnswers } from '../../domain/lists/listed-tools.ts';
import type { ClientProfile, Notification, Owner, StatelessOptions } from '../../domain/mcp/client.ts';
import {
  changedList,
  type Handshake,
  type ListField,
  type Tool,
  type WantedChanges,
} from '../../domain/mcp/mcp.ts';
import type { SessionOpening } from '../../domain/sessions/all-sessions.ts';
import type { McpSession } from '../../domain/sessions/mcp-session.ts';
import type { SessionValue } from '../../domain/sessions/session-value.ts';
import { timer$ } from '../../domain/time/clock-streams.ts';
import type { Timing } from '../../domain/time/task-scheduler.ts';
import type { Backends } from '../../protocol/endpoint-backends.ts';
import { TemplateLists, type TemplateListsDeps } from '../../protocol/template-lists.ts';
import type { UserNotice } from '../instances/accounts-at-backends.ts';

export interface BackendDeps extends Timing, StatelessDeps {
  readonly sessions: ClientSessions;
  readonly changeFeed: ChangeFeed;
  readonly listReader: ListReader;
  /** The notices of a server, or of a new connection, to one user. Hot. Default: none. */
  readonly userNotices$?: Observable<UserNotice> | undefined;
  /** See TemplateListsDeps. */
  readonly cache: TemplateListsDeps['cache'];
}

/** Backends of one template. Its creator closes them when nothing uses the template any more. */
export class TemplateBackends implements Backends {
  readonly #template: string;
  readonly #deps: BackendDeps;
  readonly #lists: TemplateLists;
  readonly #closed$ = new Subject<void>();

  constructor(template: string, deps: BackendDeps) {
    this.#template = template;
    this.#deps = deps;
    this.#lists = new TemplateLists({
      listChanged$: deps.fleet.listChanged$.pipe(
        filter((change) => change.template === template),
        map(({ list }) => list),
      ),
      noticesFor: (ownerId) => this.#noticesFor(ownerId),
      hasHandshakes: () => this.#hasHandshakes,
      isThere: (instanceId) => deps.fleet.find(template, instanceId)?.state === 'healthy',
      clock: deps.clock,
      scheduler: deps.scheduler,
      cache: deps.cache,
    });
  }

  close(): void {
    this.#closed$.next();
    this.#lists.close();
  }

  handshakes(): readonly Handshake[] {
    const { fleet } = this.#deps;
    const refs = fleet.templates.has(this.#template) ? fleet.templates.group(this.#template).refs : [];
    const healthy = refs
      .filter(({ state }) => state === 'healthy')
      .flatMap(({ handshake }) => handshake ?? []);
    return healthy.length > 0 ? healthy : refs.flatMap(({ lastHandshake }) => lastHandshake ?? []);
  }

  /** Whether `handshakes` has any. Every request of a client without a session asks, so that it makes no list. */
  get #hasHandshakes(): boolean {
    const { fleet } = this.#deps;
    if (!fleet.templates.has(this.#template)) return false;
    for (const instance of fleet.templates.group(this.#template).byId.values()) {
      if (!(instance instanceof InstanceRef)) continue;
      if (
        instance.lastHandshake !== undefined ||
        (instance.state === 'healthy' && instance.handshake !== undefined)
      )
        return true;
    }
    return false;
  }

  untilStarted(owner: Owner): Promise<void> | undefined {
    const { fleet, clock } = this.#deps;
    if (!fleet.templates.has(this.#template) || this.#hasHandshakes) return undefined; // nearly always at the first instance
    const group = fleet.templates.group(this.#template);
    const started$ = group.untilStarted(owner.id);
    if (started$ === undefined) return undefined;
    return firstValueFrom(race(started$, timer$(clock, timeoutFor(group.policy))));
  }

  noHealthyError(): GatewayError {
    const { fleet } = this.#deps;
    if (!fleet.templates.has(this.#template)) return templateNotFound(this.#template);
    return noHealthyError(fleet.templates.group(this.#template));
  }

  instancesElsewhere(): readonly InstanceDefinition[] {
    const ready = this.#healthy;
    return ready.every(({ isElsewhere }) => isElsewhere) ? ready.map(({ definition }) => definition) : [];
  }

  openSession(owner: Owner, profile: ClientProfile, opening?: SessionOpening): Promise<McpSession> {
    return this.#deps.sessions.open(this.#template, owner.id, profile, { ...opening, lists: this.#lists });
  }

  session(id: string): McpSession | undefined {
    const session = this.#deps.sessions.find(id);
    return session?.group.template === this.#template ? session : undefined;
  }

  recoverSession(id: string, { id: ownerId }: Owner): Promise<void> | undefined {
    const { sessions } = this.#deps;
    return sessions.recover(id, ownerId, {
      isOwn: (value): value is SessionValue => value.kind === 'template' && value.template === this.#template,
      check: (value) => sessions.checkRecoverable(value),
      make: (value, generation) => void sessions.recoverFrom(id, value, generation, this.#lists),
    });
  }

  exchange(request: ExchangeRequest, options: StatelessOptions): Observable<SourcedEvent> {
    const ownRequest = { ...request, callerId: options.owner.id };
    const load = () => statelessExchange(this.#deps, this.#template, ownRequest, options);
    const events$ = this.#lists.exchange(ownRequest, options, load);
    return listedAnswers(this.#template, request, events$, this.#deps);
  }

  changes(owner: Owner, profile: ClientProfile, wanted: WantedChanges): Observable<Notification> {
    // A process that not all clients share announces its changes only here.
    const note = ({ method }: Notification) => this.#lists.noteChange(changedList(method));
    const changes$ = this.#deps.changeFeed.changes(this.#template, owner, profile, wanted);
    const own$ = this.#noticesFor(owner.id) ?? EMPTY;
    return merge(changes$, own$).pipe(tap(note), takeUntil(this.#closed$));
  }

  /** The result is undefined where no instance is used with the accounts of users. */
  #noticesFor(ownerId: string): Observable<Notification> | undefined {
    const { fleet, userNotices$ } = this.#deps;
    const userId = userIdIn(ownerId);
    if (userId === undefined || userNotices$ === undefined) return undefined;
    if (!hasUserAccounts(fleet, this.#template)) return undefined;
    return userNotices$.pipe(
      filter((each) => each.template === this.#template && each.userId === userId),
      map(({ notice }) => notice),
    );
  }

  /** The stored lists of a kind, of all owners, are no longer fresh. */
  noteChange(list: ListField | undefined): void {
    this.#lists.noteChange(list);
  }

  /** The tool as an instance that gets calls lists it, if there is one: the lists of other instances may be older. */
  tool(name: string, owner?: Owner): Tool | undefined {
    if (owner !== undefined && !mayCall(owner, this.#template, name)) return undefined;
    return find(name, this.#healthy) ?? find(name, this.#deps.fleet.templates.group(this.#template).refs);
  }

  relistTool(name: string): void {
    const listing = this.#healthy.find(({ tools }) => tools?.find(name) !== undefined);
    if (listing?.tools?.mayRefresh) void listing.tools.refresh();
  }

  get #healthy(): readonly InstanceRef[] {
    return this.#deps.fleet.templates.group(this.#template).pool.candidates;
  }
}

/** True when an instance of the template is used with the accounts of users. */
export function hasUserAccounts(fleet: Fleet, template: string): boolean {
  return (
    fleet.templates.has(template) &&
    fleet.templates.group(template).refs.some(({ definition }) => definition.auth?.who === 'user')
  );
}

function find(name: string, refs: readonly InstanceRef[]): Tool | undefined {
  for (const { tools } of refs) {
    const tool = tools?.find(name);
    if (tool !== undefined) return tool;
  }
  return undefined;
}
