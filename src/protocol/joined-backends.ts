// All templates of a caller as if they were one server: lists are joined, calls go to the template that owns the name or
// the resource. It knows templates only as Backends; an instance is named `{template}/{instance}` here.

import { defer, from, map, merge, type Observable, switchMap } from 'rxjs';
import { mayUse } from '../domain/account.ts';
import type { ClientProfile, ServerNotification } from '../domain/client.ts';
import type { Answer, ExchangeRequest } from '../domain/exchange.ts';
import type { JsonObject } from '../domain/json.ts';
import { LEGACY_VERSIONS, type ListField, type Peer, type Tool } from '../domain/mcp.ts';
import { JoinedDirectory } from './joined-directory.ts';
import { JoinedLists, type TemplateListChange } from './joined-lists.ts';
import { splitName } from './joined-names.ts';
import { joinedExchange } from './joined-requests.ts';
import { JoinedSession } from './joined-session.ts';
import type { ListMemory } from './list-memory.ts';
import type { ServerInfo } from './modern-discover.ts';
import type { Backends, Owner, Session, SessionlessOptions, WantedChanges } from './ports.ts';
import { SessionShelf, type ShelfOptions } from './session-shelf.ts';

/** What all templates are joined from, and the bounds of their sessions. */
export interface JoinedOptions extends ShelfOptions {
  /** Names of all templates. */
  readonly templates: () => readonly string[];
  readonly of: (template: string) => Backends;
  /** Hot: an instance of any template said that a list changed. */
  readonly listChanges$: Observable<TemplateListChange>;
  /** Name and version of the gateway, which is the server that clients see. */
  readonly serverInfo: ServerInfo;
  /** The room for lists, which others may share. Default: room of its own. */
  readonly memory?: ListMemory;
}

/** The templates as one server. Whoever makes it closes it. */
export class JoinedBackends implements Backends {
  readonly #options: JoinedOptions;
  readonly #lists: JoinedLists;
  readonly #directory: JoinedDirectory;
  readonly #sessions: SessionShelf<JoinedSession>;
  readonly #changes$: Observable<TemplateListChange>;

  constructor(options: JoinedOptions) {
    this.#options = options;
    this.#lists = new JoinedLists(options.of, options.memory);
    this.#directory = new JoinedDirectory({
      lists: this.#lists,
      templates: (owner) => this.#templates(owner),
    });
    this.#sessions = new SessionShelf(options);
    this.#changes$ = merge(options.listChanges$, this.#lists.late$);
  }

  get listChanged$(): Observable<ListField> {
    return this.#changes$.pipe(map(({ list }) => list));
  }

  peers(owner: Owner): readonly Peer[] {
    return [this.#peer(owner)];
  }

  async openSession(owner: Owner, profile: ClientProfile): Promise<Session> {
    const session = new JoinedSession({
      owner,
      profile,
      peer: this.#peer(owner),
      directory: this.#directory,
      of: this.#options.of,
      listChanges$: this.#changes$,
    });
    this.#sessions.put(session);
    return session;
  }

  session(id: string, owner: Owner): Session | undefined {
    const session = this.#sessions.take(id);
    if (session?.ownerId === owner.id) session.servesAs(owner);
    return session;
  }

  exchange(request: ExchangeRequest, options: SessionlessOptions): Observable<Answer> {
    const { owner, profile, instanceId } = options;
    const pinned = instanceId === undefined ? undefined : splitInstance(instanceId);
    return joinedExchange(request, this.#directory, { owner, profile }, (template, own) => {
      const isPinned = pinned?.template === template;
      const there = { owner, profile, instanceId: isPinned ? pinned.instanceId : undefined };
      return this.#options
        .of(template)
        .exchange(own, there)
        .pipe(map(seenFrom(template)));
    });
  }

  changes(owner: Owner, profile: ClientProfile, wanted: WantedChanges): Observable<ServerNotification> {
    const lists: WantedChanges = { lists: wanted.lists, resources: new Set() };
    const lists$ = this.#templates(owner).map((template) =>
      this.#options.of(template).changes(owner, profile, lists),
    );
    if (wanted.resources.size === 0) return merge(...lists$);
    const owners = () => this.#directory.ownersOfResources(wanted.resources, { owner, profile });
    const updates$ = defer(() => from(owners())).pipe(
      switchMap((owned) =>
        merge(
          ...[...owned].map(([template, resources]) =>
            this.#options.of(template).changes(owner, profile, { lists: new Set(), resources }),
          ),
        ),
      ),
    );
    return merge(...lists$, updates$);
  }

  tool(joined: string, owner?: Owner): Tool | undefined {
    const own = splitName(joined);
    if (own === undefined || owner === undefined) return undefined;
    if (!this.#templates(owner).includes(own.template)) return undefined;
    return this.#options.of(own.template).tool(own.name);
  }

  /** Ends all sessions of an owner. */
  async endOf(ownerId: string): Promise<void> {
    await this.#sessions.endOf(ownerId);
  }

  /** Refuses new sessions, lets calls under way finish within the grace, and ends every session. */
  async close(graceMs: number): Promise<void> {
    await this.#sessions.close(graceMs);
  }

  #templates(owner: Owner): readonly string[] {
    return this.#options.templates().filter((template) => mayUse(owner, template));
  }

  /** It offers what one of them offers, and always tells of changed lists: those that came late are changed by that. */
  #peer(owner: Owner): Peer {
    const { serverInfo, of: backendsOf } = this.#options;
    const peers = this.#templates(owner).flatMap((template) => backendsOf(template).peers(owner));
    const offers = (name: string) => peers.some(({ capabilities }) => capabilities[name] !== undefined);
    const capabilities: JsonObject = { tools: { listChanged: true } };
    if (offers('prompts')) capabilities.prompts = { listChanged: true };
    if (offers('resources')) capabilities.resources = { subscribe: true, listChanged: true };
    if (offers('completions')) capabilities.completions = {};
    if (offers('logging')) capabilities.logging = {};
    return {
      era: 'legacy',
      protocolVersion: LEGACY_VERSIONS[0],
      serverName: serverInfo.name,
      serverVersion: serverInfo.version,
      capabilities,
      greeting: { capabilities, serverInfo: { ...serverInfo } },
    };
  }
}

function seenFrom(template: string): (answer: Answer) => Answer {
  return ({ event, instanceId, serverId }) => ({ event, instanceId: `${template}/${instanceId}`, serverId });
}

function splitInstance(
  joined: string,
): { readonly template: string; readonly instanceId: string } | undefined {
  const at = joined.indexOf('/');
  return at === -1 ? undefined : { template: joined.slice(0, at), instanceId: joined.slice(at + 1) };
}
