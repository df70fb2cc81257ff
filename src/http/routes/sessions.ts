// The open sessions of MCP clients: a caller lists and ends its own sessions, an admin those of all callers. A session is identified by
// its fingerprint, because its id is a credential.

import Type, { type Static } from 'typebox';
import { mayDo, mayUse, type Principal } from '../../domain/account.ts';
import { hasCode } from '../../domain/errors.ts';
import { sessionUnknown } from '../../domain/session-errors.ts';
import { TemplateId } from '../../domain/template.ts';
import { cutText } from '../../domain/text.ts';
import type { ClientSessionView } from '../../gateway/gateway-types.ts';
import { json, noContent } from '../reply.ts';
import { defineRoute, type Route, type Services, SessionParams } from '../route.ts';
import { closed, flag, nullableText, PageLimit, pageOf, Time, text } from '../schemas.ts';

const SessionRecord = Type.Object({
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
});

const LONGEST_NAME = 256;

export const sessionRoutes: readonly Route[] = [
  defineRoute('GET', '/gateway/sessions', {
    summary: 'Open sessions of MCP clients, and where they are bound: your own, or all for an admin',
    scope: 'gateway:read',
    request: {
      query: closed({
        limit: PageLimit,
        /** `next_cursor` of the page before. */
        cursor: Type.Optional(SessionParams.properties.session_id),
        template: Type.Optional(TemplateId),
        /** Of this caller: id or name. */
        principal: Type.Optional(Type.String({ minLength: 1, maxLength: LONGEST_NAME, examples: ['ada'] })),
      }),
    },
    answers: {
      200: {
        description: 'One page, by id; `next_cursor` is null on the last one',
        body: Type.Object({ sessions: Type.Array(SessionRecord), next_cursor: nullableText() }),
      },
    },
    handler: async ({ query, principal }, { gateway, auth }) => {
      const { limit = 100, cursor = '', template, principal: owner } = query;
      const visible = gateway
        .sessions()
        .filter((session) => session.id > cursor && maySee(principal, session))
        .filter(({ bindings }) => template === undefined || bindings.some((one) => one.template === template))
        .sort((left, right) => (left.id < right.id ? -1 : 1));
      // Only a name needs the accounts; an id is in the session.
      const isName = owner !== undefined && !visible.some(({ ownerId }) => ownerId === owner);
      const owners = isName ? await namesOf(visible, auth) : undefined;
      const rest = visible.filter(
        ({ ownerId }) => owner === undefined || (owners?.get(ownerId) ?? ownerId) === owner,
      );
      const { page, nextCursor } = pageOf(rest, limit, ({ id }) => id);
      const names = owners ?? (await namesOf(page, auth).catch(withoutNames));
      const sessions = page.map((session) => recordOf(session, names));
      return json(200, { sessions, next_cursor: nextCursor });
    },
  }),
  defineRoute('DELETE', '/gateway/sessions/:session_id', {
    summary: 'End a session: your own, or any for an admin; its client has to initialize again',
    scope: 'gateway:read',
    request: { params: SessionParams },
    answers: { 204: { description: 'The session takes no more calls; running calls are answered' } },
    handler: ({ params, principal }, { gateway }) => {
      const { session_id: id } = params;
      if (!gateway.sessions().some((session) => session.id === id && maySee(principal, session)))
        throw sessionUnknown(id);
      gateway.endSession(id);
      return noContent();
    },
  }),
];

/** An admin of some templates sees sessions that use no other templates. */
function maySee(viewer: Principal, { ownerId, bindings }: ClientSessionView): boolean {
  if (ownerId === viewer.id) return true;
  if (!mayDo(viewer, ['admin'])) return false;
  if (viewer.templates === undefined) return true;
  return bindings.length > 0 && bindings.every(({ template }) => mayUse(viewer, template));
}

function namesOf(sessions: readonly ClientSessionView[], { accounts }: Services['auth']) {
  return accounts.names(sessions.map(({ ownerId }) => ownerId));
}

function withoutNames(thrown: unknown): ReadonlyMap<string, string> {
  if (!hasCode(thrown, 'DATABASE_UNAVAILABLE')) throw thrown;
  return new Map();
}

function recordOf(
  session: ClientSessionView,
  names: ReadonlyMap<string, string>,
): Static<typeof SessionRecord> {
  const { id, ownerId, clientInfo, bindings, openedAtMs, usedAtMs, isStreaming } = session;
  return {
    id,
    principal: ownerId,
    principal_name: names.get(ownerId) ?? null,
    client: { name: textOf(clientInfo.name), version: textOf(clientInfo.version) },
    bindings: bindings.map(({ template, instanceId, serverId }) => ({
      ...{ template, instance_id: instanceId, server_id: serverId },
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
