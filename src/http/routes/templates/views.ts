// Views: their definitions, their problems, and the items that they would list.

import Type, { type Static } from 'typebox';
import { mayDo, type Principal } from '../../../domain/accounts/principal.ts';
import { mayUse, mayUseInView, mayUseView, type Rights } from '../../../domain/accounts/rights.ts';
import { insufficientPermissions } from '../../../domain/errors/account-errors.ts';
import type { ErrorCode } from '../../../domain/errors/errors.ts';
import { templateNotFound, viewNotFound } from '../../../domain/errors/registry-errors.ts';
import { inGroups } from '../../../domain/time/task-groups.ts';
import type { StoredView, ViewDefinition, ViewProblem } from '../../../domain/views/view.ts';
import { checkedView, VIEW_FIELDS, ViewBody, withViewId } from '../../../domain/views/view-schema.ts';
import type { Gateway } from '../../../gateway/gateway.ts';
import { etagOf } from '../../../registry/kinds/view-registry.ts';
import { callerRefusalOf } from '../../callers/caller-check.ts';
import { AnyObject, closed, integer, LOCATION, named, Time, text } from '../../records/schemas.ts';
import { jsonInTurns } from '../../replies/json-in-turns.ts';
import { json, noContent } from '../../replies/reply.ts';
import { defineRoute, type HttpRoute } from '../../routing/route.ts';
import { ViewParams } from '../../routing/route-params.ts';
import type { Services } from '../../services.ts';

const Problem = named('ViewProblem', {
  code: text('glob_unmet'),
  template: text('everything'),
  tool: text(''),
  message: text('The glob "none_*" matches none of the tools of everything.'),
});

const ViewRecord = named('View', {
  id: text('support'),
  ...VIEW_FIELDS,
  problems: Type.Array(Problem, { examples: [[]] }),
  updated_at: Time,
  etag: text('5d41402abc4b2a76'),
});

const EXAMPLE = {
  title: 'Support desk',
  from: [{ template: 'everything', tools: ['echo', 'get-sum'], rename: { echo: 'say' } }],
};
const Body = Type.Unsafe<object>(Type.Object(ViewBody.properties, { ...ViewBody, examples: [EXAMPLE] }));
const Preview = named('ViewPreview', {
  tools: Type.Array(AnyObject),
  count: Type.Integer(),
  tokens: integer(420),
  asks: Type.Array(Type.String(), { examples: [['say']] }),
  problems: Type.Array(Problem, { examples: [[]] }),
});

/** The number of characters of JSON that are about one token. */
const TOKEN_CHARACTERS = 3.5;

const WRITES: readonly ErrorCode[] = [
  'TEMPLATE_NOT_FOUND',
  'DUPLICATE_VIEW',
  'PRECONDITION_FAILED',
  'REGISTRY_FULL',
];
const IF_MATCH = { 'If-Match': 'The `etag` of the version that was read: another one is not changed.' };

/** The most views of a list that are surveyed at one time: each may have thousands of tools, or wait for a silent server. */
const SURVEYED_TOGETHER = 10;

export const viewRoutes: readonly HttpRoute[] = [
  defineRoute('GET', '/gateway/views', {
    summary: 'The views that the caller may use',
    scope: ['gateway:read', 'tools:call'],
    answers: {
      200: { description: 'In the order of their ids', body: Type.Object({ views: Type.Array(ViewRecord) }) },
    },
    handler: async ({ principal }, { gateway, scheduler }) => {
      const visible = gateway.views.list().filter((view) => isVisible(principal, view));
      const views: Static<typeof ViewRecord>[] = [];
      for (const group of inGroups(visible, SURVEYED_TOGETHER))
        views.push(...(await Promise.all(group.map((view) => recordOf(principal, gateway, view)))));
      return jsonInTurns({ views }, scheduler);
    },
  }),
  defineRoute('POST', '/gateway/views/preview', {
    summary: 'What a view would list, without storing it',
    scope: 'gateway:write',
    changesNothing: true,
    request: { body: Body },
    answers: { 200: { description: 'Its tools, and the tokens that they take', body: Preview } },
    errors: ['TEMPLATE_NOT_FOUND'],
    handler: async ({ body, principal }, { gateway }) => {
      const definition = checkedView(withViewId(body, 'preview'));
      requireTemplates(principal, definition);
      return json(200, previewOf(principal, await gateway.views.preview(definition, principal)));
    },
  }),
  defineRoute('GET', '/gateway/views/:view', {
    summary: 'A view, and what is wrong with it',
    scope: ['gateway:read', 'tools:call'],
    request: { params: ViewParams },
    answers: { 200: { description: 'Its definition', body: ViewRecord } },
    handler: async ({ params, principal }, { gateway }) => {
      const view = visibleView(principal, gateway, params.view);
      return json(200, await recordOf(principal, gateway, view), { headers: etagHeader(view) });
    },
  }),
  defineRoute('PUT', '/gateway/views/:view', {
    summary: 'Create or replace a view',
    scope: 'gateway:write',
    request: { params: ViewParams, body: Body },
    requestHeaders: IF_MATCH,
    answers: {
      200: { description: 'It was replaced', body: ViewRecord },
      201: { description: 'It is new', body: ViewRecord, headers: LOCATION },
    },
    errors: WRITES,
    handler: async ({ params: { view: id }, body, principal, request }, { gateway, auth }) => {
      const definition = checkedView(withViewId(body, id), id);
      requireTemplates(principal, definition);
      const { view, isNew, problems } = await gateway.views.put(definition, {
        ifMatch: request.headers['if-match'],
        admit: (before) => requireRightToWrite(principal, auth, { id, before, after: definition }),
      });
      const path = `/gateway/views/${id}`;
      return json(isNew ? 201 : 200, writtenView(principal, view, problems), {
        headers: [...etagHeader(view), ...(isNew ? ['Location', path] : [])],
        trail: { subject: path },
      });
    },
  }),
  defineRoute('DELETE', '/gateway/views/:view', {
    summary: 'Delete a view',
    scope: 'gateway:write',
    request: { params: ViewParams },
    requestHeaders: IF_MATCH,
    answers: { 204: { description: 'It is gone; its sessions end' } },
    errors: ['TEMPLATE_NOT_FOUND', 'PRECONDITION_FAILED'],
    handler: async ({ params: { view: id }, principal, request }, { gateway, auth }) => {
      await gateway.views.delete(id, {
        ifMatch: request.headers['if-match'],
        admit: (before) => requireRightToWrite(principal, auth, { id, before }),
      });
      return noContent();
    },
  }),
  defineRoute('GET', '/gateway/views/:view/preview', {
    summary: 'What a view lists',
    scope: ['gateway:read', 'tools:call'],
    request: {
      params: ViewParams,
      query: closed({ as: Type.Optional(Type.String({ pattern: '^[A-Za-z0-9-]{1,64}$' })) }),
    },
    errors: ['USER_NOT_FOUND'],
    answers: {
      200: { description: 'Its tools as the caller gets them, and the tokens that they take', body: Preview },
    },
    handler: async ({ params, query, principal }, { gateway, auth }) => {
      const { definition } = visibleView(principal, gateway, params.view);
      const refusal = query.as === undefined ? undefined : callerRefusalOf(principal, ['admin']);
      if (refusal !== undefined) throw refusal;
      const viewer = query.as === undefined ? principal : await auth.principalOf(query.as);
      if (query.as !== undefined && !mayUseView(viewer, definition.id)) throw viewNotFound(definition.id);
      return json(200, previewOf(principal, await gateway.views.preview(definition.id, viewer)));
    },
  }),
];

function etagHeader(view: StoredView): readonly string[] {
  return ['ETag', `"${etagOf(view)}"`];
}

/** True for a view that the caller may use; one that may write all templates of a view sees it, too. */
function isVisible(principal: Principal, { definition }: StoredView): boolean {
  if (mayUseView(principal, definition.id)) return true;
  return (
    mayDo(principal, ['gateway:write']) &&
    definition.from.every(({ template }) => mayUseAll(principal, template))
  );
}

export function visibleView(principal: Principal, gateway: Pick<Gateway, 'views'>, id: string): StoredView {
  const view = gateway.views.find(id);
  if (!isVisible(principal, view)) throw viewNotFound(id);
  return view;
}

/** Requires rights to all tools of the templates of a view, since the view may give them to others. Throws TEMPLATE_NOT_FOUND. */
function requireTemplates(principal: Principal, { from }: ViewDefinition): void {
  const refused = from.find(({ template }) => !mayUseAll(principal, template));
  if (refused !== undefined) throw templateNotFound(refused.template);
}

/**
 * Requires all tools of the templates of the view as it was. Requires an admin, too, for a change of `approve`; for a view that
 * an account or a role names, since the change alters the rights of others; and for a view with `confirm`, which the change
 * could make ineffective. `after`: the new definition. Default: the view is deleted. Throws TEMPLATE_NOT_FOUND,
 * INSUFFICIENT_PERMISSIONS; DATABASE_UNAVAILABLE.
 */
async function requireRightToWrite(
  principal: Principal,
  auth: Pick<Services['auth'], 'namesView'>,
  {
    id,
    before,
    after,
  }: {
    readonly id: string;
    readonly before: ViewDefinition | undefined;
    readonly after?: ViewDefinition;
  },
): Promise<void> {
  if (before !== undefined) requireTemplates(principal, before);
  if (mayDo(principal, ['admin'])) return;
  const isTrustChanged = (before?.approve ?? 'none') !== (after?.approve ?? 'none');
  const isGuarded = before?.confirm !== undefined || after?.confirm !== undefined;
  if (isTrustChanged || isGuarded || (await auth.namesView(id))) throw insufficientPermissions(['admin']);
}

function mayUseAll(rights: Rights, template: string): boolean {
  return mayUse(rights, template) && rights.tools === undefined;
}

async function recordOf(
  principal: Principal,
  { views }: Pick<Services['gateway'], 'views'>,
  view: StoredView,
) {
  return writtenView(principal, view, await views.problems(view.definition.id));
}

/**
 * The record of a view for one viewer. A caller of some tools gets the names of its templates there; others get the
 * choices, and only with `gateway:write` the arguments that the gateway sets, which may be secrets.
 */
function writtenView(
  principal: Principal,
  view: StoredView,
  problems: readonly ViewProblem[],
): Static<typeof ViewRecord> {
  const { definition, updatedAt } = view;
  const record = { ...definition, problems, updated_at: updatedAt, etag: etagOf(view) };
  if (principal.tools !== undefined) {
    const { limits, always, confirm, ...others } = record;
    const templates = definition.from.filter(({ template }) => mayUseInView(principal, template));
    return { ...others, from: templates.map(({ template }) => ({ template })), problems: [] };
  }
  const isWriter = mayDo(principal, ['gateway:write']);
  const from = definition.from.map(({ defaults, ...source }) =>
    isWriter && defaults !== undefined ? { ...source, defaults } : source,
  );
  return { ...record, from } as Static<typeof ViewRecord>;
}

/** The preview for one caller: one of some tools gets no problems, which may name others. */
function previewOf(
  principal: Principal,
  { tools, asks, ...preview }: Awaited<ReturnType<Gateway['views']['preview']>>,
) {
  const problems = principal.tools === undefined ? preview.problems : [];
  const tokens = Math.ceil(JSON.stringify(tools).length / TOKEN_CHARACTERS);
  return { tools: [...tools], count: tools.length, tokens, asks: [...asks], problems: [...problems] };
}
