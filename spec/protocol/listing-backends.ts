// Backends and sessions for specs: they list given items, call nothing, and record requests. Answers come at once, or when the
// spec sends them.

import { EMPTY, type Observable, of } from 'rxjs';
import type { ExchangeRequest, SourcedEvent } from '../../src/domain/calls/exchange.ts';
import { type JsonObject, JsonText, writeFields } from '../../src/domain/json/json.ts';
import { ListReader } from '../../src/domain/lists/list-reader.ts';
import type { Client, ClientProfile, Owner, StatelessOptions } from '../../src/domain/mcp/client.ts';
import { type Handshake, LIST_METHODS, type ListField } from '../../src/domain/mcp/mcp.ts';
import { newSessionId } from '../../src/domain/nodes/life.ts';
import type { AllSessions, SessionOpening } from '../../src/domain/sessions/all-sessions.ts';
import type { McpSession } from '../../src/domain/sessions/mcp-session.ts';
import {
  AggregateLists,
  type AggregateListsDeps,
} from '../../src/protocol/aggregate/lists/aggregate-lists.ts';
import { HANDSHAKE } from '../helpers/backends/scripted-transport.ts';
import { simulatedClock } from '../helpers/time/simulated-time.ts';
import { untimedScheduler } from '../helpers/time/turns.ts';
import { ScriptedBackends, ScriptedSession } from './scripted-backends.ts';

export const PROFILE: ClientProfile = { protocolVersion: '2026-07-28', capabilities: {}, clientInfo: {} };
export const ADA: Owner = { id: 'user:ada' };
export const CLIENT: Client = { owner: ADA, profile: PROFILE };

/** Simulated if the spec simulates the timers. */
export const CLOCK = { clock: simulatedClock };

/** Sessions that are not kept. */
export const NO_SESSIONS: AllSessions = {
  newId: () => newSessionId('life-one'),
  add: () => {},
  findAny: () => undefined,
  used: () => {},
  remove: () => {},
  rowFor: () => undefined,
  recover: () => undefined,
  leavesRow: () => false,
};

/** The lists of templates. Default: they never change. */
export function aggregateLists({
  scheduler = untimedScheduler(),
  ...options
}: Pick<AggregateListsDeps, 'backendsOf'> & Partial<AggregateListsDeps>): AggregateLists {
  const reader = new ListReader({ scheduler });
  return new AggregateLists({ ...CLOCK, listChanges$: EMPTY, scheduler, reader, ...options });
}

export type Lists = Partial<Record<ListField, readonly JsonObject[]>>;

/** A result as an instance answers it. */
export function answered(result: JsonObject, instanceId = 'one'): SourcedEvent {
  return { event: { kind: 'result', result: JsonText.ofValue(result) }, instanceId, serverId: instanceId };
}

/** A tool that was listed with a name only, as the list of all templates shows it. */
export const shownTool = (name: string) => ({ name, inputSchema: { type: 'object' } });

export class ListingBackends extends ScriptedBackends {
  readonly asked: (ExchangeRequest & Pick<StatelessOptions, 'instanceId'>)[] = [];
  readonly sessions: ListingSession[] = [];
  readonly openings: SessionOpening[] = [];
  lists: Lists;
  /** Replaces the answer of every exchange. */
  instead: Observable<SourcedEvent> | undefined;
  handshake: Handshake = { ...HANDSHAKE, capabilities: { tools: {}, prompts: {}, resources: {} } };

  constructor(lists: Lists) {
    super();
    this.lists = lists;
  }

  override handshakes(): readonly Handshake[] {
    return [this.handshake];
  }

  override tool(name: string) {
    return this.lists.tools?.find((tool) => tool.name === name) === undefined ? undefined : { name };
  }

  override async openSession(
    owner: Owner,
    profile: ClientProfile,
    opening: SessionOpening = {},
  ): Promise<McpSession> {
    this.openings.push(opening);
    const session = new ListingSession(this, owner.id, profile);
    this.sessions.push(session);
    return session;
  }

  override session(id: string): McpSession | undefined {
    return this.sessions.find((session) => session.id === id);
  }

  override exchange(
    request: ExchangeRequest,
    { instanceId }: Partial<StatelessOptions> = {},
  ): Observable<SourcedEvent> {
    this.asked.push({ ...request, instanceId });
    if (this.instead !== undefined) return this.instead;
    const [list] = Object.entries(LIST_METHODS).find(([, method]) => method === request.method) ?? [];
    if (list === undefined) return of(answered({ called: JSON.parse(writeFields(request.params ?? {})) }));
    const [, items = []] = Object.entries(this.lists).find(([name]) => name === list) ?? [];
    return of(answered({ [list]: [...items] }));
  }
}

/** Its requests are answered by the backends. */
class ListingSession extends ScriptedSession {
  readonly #backends: ListingBackends;

  constructor(backends: ListingBackends, ownerId: string, profile: ClientProfile) {
    super(`session-${backends.sessions.length}`, ownerId, profile, backends.handshake);
    this.#backends = backends;
  }

  override exchange(request: ExchangeRequest): Observable<SourcedEvent> {
    return this.#backends.exchange(request);
  }
}
