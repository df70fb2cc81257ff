// The open sessions of MCP clients: a caller lists and ends its own sessions, an admin those of all callers. A
// session is identified by its fingerprint, because its id is a credential.

import Type, { type Static } from 'typebox';
import { cannotBeAsked } from '../../cluster/channel/ask-peer.ts';
import { TemplateId } from '../../domain/accounts/input-schemas.ts';
import { mayDo, type Principal } from '../../domain/accounts/principal.ts';
import { hasAllTemplates, mayUse } from '../../domain/accounts/rights.ts';
import { hasCode } from '../../domain/errors/errors.ts';
import { sessionUnknown } from '../../domain/errors/session-errors.ts';
import { compileShape } from '../../domain/errors/validation.ts';
import { cutText } from '../../domain/text.ts';
import type { ShownSession } from '../../gateway/gateway-types.ts';
import { MissingNodes, partialField } from '../all-nodes/other-members.ts';
import {
  closed,
  cursorOf,
  flag,
  idIn,
  nullableText,
  PageCursor,
  PageLimit,
  pageOf,
  Time,
  text,
} from '../records/schemas.ts';
import { type BytesReply, json, noContent } from '../replies/reply.ts';
import { defineRoute, type HttpRoute, type RouteInput } from '../routing/route.ts';
import { SessionParams } from '../routing/route-params.ts';
import type { Services } from '../services.ts';

const MAX_NAME_LENGTH = 256;
/** Sessions of a page, unless the query has a limit. */
const USUAL_PAGE = 100;

const ListedSession = Type.Object({
  id: SessionParams.properties.session_id,
  principal: text('user:3f6c1d0e-8a64-4d53-9f55-5a1c2b7e9d10'),
  /** Null for a deleted account, without authentication, and while the database is unavailable. */
  principal_name: nullableText('ada'),
  client: Type.Object({ name: nullableText('claude-code'), version: nullableText('2.1.0') }),
  bindings: Type.Array(
    Type.Object({
      template: text('everything'),
      instance_id: text('everything-1'),
      server_id: text('everything-1'),
    }),
  ),
  created_at: Time,
  last_used_at: Time,
  is_streaming: flag(true),
  /** The node that has it; only with several nodes. */
  node: Type.Optional(text('node-a')),
});
type ListedSession = Static<typeof ListedSession>;

const SessionPage = Type.Object({
  sessions: Type.Array(ListedSession),
  next_cursor: nullableText(),
  partial: MissingNodes,
});
type SessionPage = Static<typeof SessionPage>;
const SESSION_PAGE = compileShape(SessionPage, 'body');

/** Name of the list in cursors. */
const LIST = 'sessions';

const SessionQuery = closed({
  limit: PageLimit,
  /** `next_cursor` of the page before. */
  cursor: PageCursor,
  /** Lists only the session with this id. */
  id: Type.Optional(SessionParams.properties.session_id),
  template: Type.Optional(TemplateId),
  /** Lists only sessions of the caller with this id or name. */
  principal: Type.Optional(Type.String({ minLength: 1, maxLength: MAX_NAME_LENGTH, examples: ['ada'] })),
});
type SessionQuery = Static<typeof SessionQuery>;

export const sessionRoutes: readonly HttpRoute[] = [
  defineRoute('GET', '/gateway/sessions', {
    summary: 'Open sessions of MCP clients, and where they are bound: your own, or all for an admin',
    scope: 'gateway:read',
    isForwarded: true,
    request: { query: SessionQuery },
    errors: ['INVALID_CURSOR'],
    answers: {
      200: {
        description: 'One page of the sessions of all nodes, by id; `next_cursor` is null on the last one',
        body: SessionPage,
      },
    },
    handler: async ({ query, principal, request }, services) => {
      const pageFrom = request.isForwarded ? pageOfNode : pageOfDeployment;
      return json(200, await pageFrom(query, principal, services));
    },
  }),
  defineRoute('DELETE', '/gateway/sessions/:session_id', {
    summary: 'End a session: your own, or any for an admin; its client has to initialize again',
    scope: 'gateway:read',
    isForwarded: true,
    request: { params: SessionParams },
    answers: { 204: { description: 'The session takes no more calls; running calls are answered' } },
    errors: ['NODE_UNAVAILABLE'],
    handler: (input, services) => {
      const { session_id: id } = input.params;
      const { gateway } = services;
      const isHere = gateway
        .sessions()
        .some((session) => session.id === id && maySee(input.principal, session));
      if (!isHere) return endAtPeer(input, services);
      gateway.endSession(id);
      return noContent();
    },
  }),
];

/** Each node gives its part of the page: the cursor is a place in the order of the ids, at all of them. */
async function pageOfDeployment(
  query: SessionQuery,
  principal: Principal,
  { gateway, auth, otherMembers }: Pick<Services, 'gateway' | 'auth' | 'otherMembers'>,
): Promise<SessionPage> {
  const { limit = USUAL_PAGE } = query;
  const wanted = new URLSearchParams();
  for (const [name, value] of Object.entries({ ...query, limit })) wanted.set(name, String(value));
  const target = `/gateway/sessions?${wanted}`;
  const [own, { answers, partial }] = await Promise.all([
    pageOfNode(query, principal, { gateway, auth }),
    otherMembers.ask({ target, principal, shape: SESSION_PAGE }),
  ]);
  if (answers.size === 0) return { ...own, ...partialField(partial) };
  const parts = [[otherMembers.ownId, own] as const, ...answers];
  const found = parts.flatMap(([node, { sessions }]) => sessions.map((session) => ({ ...session, node })));
  // A session that moves may be seen at two nodes.
  const byId = new Map(found.map((session) => [session.id, session]));
  const sorted = [...byId.values()].sort((left, right) => (left.id < right.id ? -1 : 1));
  const sessions = sorted.slice(0, limit);
  const isLast = sorted.length <= limit && parts.every(([, part]) => part.next_cursor === null);
  const last = isLast ? undefined : sessions.at(-1);
  return {
    sessions,
    next_cursor: last === undefined ? null : cursorOf(LIST, last.id),
    ...partialField(partial),
  };
}

async function pageOfNode(
  { limit = USUAL_PAGE, cursor, id, template, principal: owner }: SessionQuery,
  principal: Principal,
  { gateway, auth }: Pick<Services, 'gateway' | 'auth'>,
): Promise<SessionPage> {
  const after = idIn(LIST, cursor) ?? '';
  const visible = gateway
    .sessions()
    .filter((session) => session.id > after && maySee(principal, session))
    .filter((session) => id === undefined || session.id === id)
    .filter(({ bindings }) => template === undefined || bindings.some((one) => one.template === template))
    .sort((left, right) => (left.id < right.id ? -1 : 1));
  // Only a search by name needs the accounts; the session has the id.
  const isName = owner !== undefined && !visible.some(({ ownerId }) => ownerId === owner);
  const owners = isName ? await namesOf(visible, auth) : undefined;
  const rest = visible.filter(
    ({ ownerId }) => owner === undefined || (owners?.get(ownerId) ?? ownerId) === owner,
  );
  const { page, nextCursor } = pageOf(LIST, rest, limit, (session) => session.id);
  const names = owners ?? (await namesOf(page, auth).catch(withoutNames));
  return { sessions: page.map((session) => recordOf(session, names)), next_cursor: nextCursor };
}

/** Throws SESSION_NOT_FOUND; NODE_UNAVAILABLE if a node that may have it does not answer. */
async function endAtPeer(
  input: RouteInput<Static<typeof SessionParams>, unknown, unknown>,
  { otherMembers }: Pick<Services, 'otherMembers'>,
): Promise<BytesReply> {
  const { session_id: id } = input.params;
  const target = `/gateway/sessions?${new URLSearchParams({ id })}`;
  const { principal } = input;
  const { answers, partial } = await otherMembers.ask({ target, principal, shape: SESSION_PAGE });
  for (const [node, { sessions }] of answers) {
    const member = sessions.length > 0 ? otherMembers.member(node) : undefined;
    if (member !== undefined) return otherMembers.send(member, 'DELETE', input);
  }
  const [silent] = partial;
  if (silent !== undefined) throw cannotBeAsked(silent, 'it does not answer, and may have the session');
  throw sessionUnknown(id);
}

/** True for sessions of the viewer; an admin of some templates also sees those that use no other templates. */
function maySee(viewer: Principal, { ownerId, bindings }: ShownSession): boolean {
  if (ownerId === viewer.id) return true;
  if (!mayDo(viewer, ['admin'])) return false;
  if (hasAllTemplates(viewer)) return true;
  return bindings.length > 0 && bindings.every(({ template }) => mayUse(viewer, template));
}

function namesOf(sessions: readonly ShownSession[], { accounts }: Services['auth']) {
  return accounts.names(sessions.map(({ ownerId }) => ownerId));
}

function withoutNames(thrown: unknown): ReadonlyMap<string, string> {
  if (!hasCode(thrown, 'DATABASE_UNAVAILABLE')) throw thrown;
  return new Map();
}

function recordOf(session: ShownSession, names: ReadonlyMap<string, string>): ListedSession {
  const { id, ownerId, clientInfo, bindings, openedAtMs, usedAtMs, isStreaming } = session;
  return {
    id,
    principal: ownerId,
    principal_name: names.get(ownerId) ?? null,
    client: { name: textOf(clientInfo.name), version: textOf(clientInfo.version) },
    bindings: bindings.map(({ template, instanceId, serverId }) => ({
      template,
      instance_id: instanceId,
      server_id: serverId,
    })),
    created_at: new Date(openedAtMs).toISOString(),
    last_used_at: new Date(usedAtMs).toISOString(),
    is_streaming: isStreaming,
  };
}

const SHOWN_CHARACTERS = 128;

function textOf(value: unknown): string | null {
  return typeof value === 'string' ? cutText(value, SHOWN_CHARACTERS) : null;
}
