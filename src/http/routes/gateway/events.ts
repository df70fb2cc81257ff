// The events of the gateway as a stream: those of the embedding API, each for the callers that may read it.

import { map, merge } from 'rxjs';
import Type from 'typebox';
import { TemplateId } from '../../../domain/accounts/input-schemas.ts';
import { mayDo, type Principal } from '../../../domain/accounts/principal.ts';
import { hasAllTemplates, mayCall, mayUse, mayUseView } from '../../../domain/accounts/rights.ts';
import { validationFailed } from '../../../domain/errors/request-errors.ts';
import { EVENT_ALIASES, EVENTS } from '../../../domain/events/events.ts';
import { EVENT_STREAM_TYPE } from '../../../domain/mcp/media-types.ts';
import { SAMPLED } from '../../../metrics/samples.ts';
import { closed } from '../../records/schemas.ts';
import type { EventSource } from '../../replies/reply.ts';
import { defineRoute, type HttpRoute } from '../../routing/route.ts';
import type { SelectableEvent } from '../../sse/recent-events.ts';

const NAMES = Object.keys(EVENTS);
/** `instance` selects all types that begin with `instance.`. */
const GROUPS = [...new Set(NAMES.map(groupOf))];
const SELECTABLE = [...NAMES, ...GROUPS, SAMPLED];
const ALIASES = Object.keys(EVENT_ALIASES);

export const eventRoutes: readonly HttpRoute[] = [
  defineRoute('GET', '/events', {
    summary: 'The events of the gateway, as server-sent events',
    scope: 'gateway:read',
    isForwarded: true,
    requestHeaders: {
      'Last-Event-ID': 'Id of the last event that was read: later events follow, as far as they are kept.',
    },
    request: {
      query: closed({
        template: Type.Optional(TemplateId),
        type: Type.Optional(
          Type.String({
            maxLength: 1_024,
            examples: ['instance,call.finished'],
            description: `Several are separated by commas: ${SELECTABLE.join(', ')}`,
          }),
        ),
        follow: Type.Optional(
          Type.Boolean({
            description:
              'Continues with new events, which is the default; `false` ends after the kept events',
          }),
        ),
      }),
    },
    answers: {
      200: {
        description:
          'The kept events and, unless `follow` is `false`, new ones. `event` is the type, `data` a JSON object with `type`, `at` and the fields of ' +
          'that type; no event contains arguments or results. Without the scope `admin`: only calls and sessions of the caller. ' +
          '`gateway.sampled`, which is neither kept nor in a group, comes once a second while a reader follows it by its name: the load of the gateway, and ' +
          'of the templates and instances that changed since the previous one. ' +
          '`missed` says in `count` how many events the reader lost because it was too slow or reconnected too late; a reader that ' +
          'does not see all events gets no count if it reconnected too late. Where several nodes share a database, a reader that follows gets the events ' +
          'of all of them: those of other nodes have `node`; samples have the load of all nodes, and name missing ones in `partial`; and `missed` without a count says that some may be missing. Ids and numbers of calls are in no order.',
        types: [EVENT_STREAM_TYPE],
        body: Type.Object({ type: Type.String(), at: Type.String() }),
      },
    },
    errors: ['QUEUE_FULL'],
    handler: ({ query, principal, request }, { events, samples, peerEvents }) => {
      const { template, follow = true } = query;
      const selection = query.type === undefined ? undefined : selectionOf(query.type);
      const types = selection?.types;
      const isFollowing = follow && !request.isHead;
      const { 'last-event-id': lastId } = request.headers;
      const after = typeof lastId === 'string' ? lastId : undefined;
      const isSelected = (event: SelectableEvent): boolean =>
        (template === undefined || event.template === template) &&
        // Another node asks for the events of this one alone.
        (event.node === undefined || peerEvents !== undefined) &&
        selection?.excludes(event) !== true &&
        mayRead(principal, event);
      const events$: EventSource = (reader) => {
        const seesAll = mayDo(principal, ['admin']) && hasAllTemplates(principal);
        const options = {
          owner: principal,
          seesAll,
          types,
          isSelected,
          isFollowing,
          after,
        };
        const kept$ =
          isFollowing && peerEvents !== undefined
            ? peerEvents.read(options, reader)
            : events.read(options, reader);
        if (!isFollowing || types?.has(SAMPLED) !== true) return kept$;
        const samples$ = samples.read({ viewer: principal, template }, reader);
        return merge(kept$, samples$.pipe(map((data) => ({ name: SAMPLED, data }))));
      };
      return { kind: 'stream', events$ };
    },
  }),
];

function groupOf(name: string): string {
  return name.replace(/\..*$/, '');
}

/**
 * The types of events that names, former names and groups of names select. A former name selects some events of its type
 * only: `excludes` is true for the others. Throws VALIDATION_ERROR for any other name.
 */
function selectionOf(list: string): {
  readonly types: ReadonlySet<string>;
  readonly excludes: (event: SelectableEvent) => boolean;
} {
  const wanted = list.split(',').map((name) => name.trim());
  const isWanted = (name: string): boolean => wanted.includes(name) || wanted.includes(groupOf(name));
  const aliases = ALIASES.filter(isWanted);
  const types = new Set(NAMES.filter(isWanted));
  if (wanted.includes(SAMPLED)) types.add(SAMPLED);
  const excludes = (event: SelectableEvent): boolean =>
    event.alias !== undefined && !isWanted(event.type) && !aliases.includes(event.alias);
  for (const name of wanted) {
    if (SELECTABLE.includes(name) || aliases.some((alias) => alias === name || groupOf(alias) === name))
      continue;
    const msg = `Input should be types or groups of events: ${SELECTABLE.join(', ')}`;
    throw validationFailed([{ loc: ['query', 'type'], msg, type: 'enum' }]);
  }
  return { types: new Set([...types, ...aliases.flatMap((alias) => EVENT_ALIASES[alias] ?? [])]), excludes };
}

/**
 * Admins read all events of their templates; other callers read their own calls and sessions, but not the
 * conversations with backends that serve them: these events say how instances are run.
 */
function mayRead(principal: Principal, event: SelectableEvent): boolean {
  const { template, tool, view } = event;
  if (template !== undefined && !mayUse(principal, template)) return false;
  if (template !== undefined && tool !== undefined && !mayCall(principal, template, tool)) return false;
  if (mayDo(principal, ['admin']))
    return view === undefined || template !== undefined || mayUseView(principal, view);
  return event.principal === principal.id && groupOf(event.type) !== 'upstream';
}
