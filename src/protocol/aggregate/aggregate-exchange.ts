// Routes one request to an aggregate: answers lists here, and sends all others to their template with the names that the
// template uses.

import { defer, from, isObservable, map, type Observable, of, switchMap, tap } from 'rxjs';
import type { ExchangeRequest, SourcedEvent } from '../../domain/calls/exchange.ts';
import { toolNotFound } from '../../domain/errors/backend-errors.ts';
import { GatewayError } from '../../domain/errors/errors.ts';
import { withHint } from '../../domain/errors/request-errors.ts';
import {
  definedFields,
  fieldValue,
  isJsonObject,
  type JsonFields,
  JsonText,
} from '../../domain/json/json.ts';
import type { Client } from '../../domain/mcp/client.ts';
import { RPC } from '../../domain/mcp/jsonrpc.ts';
import {
  isModernVersion,
  isTaskMethod,
  type ListField,
  listReturnedBy,
  META,
  SUBSCRIBE,
  UNSUBSCRIBE,
} from '../../domain/mcp/mcp.ts';
import type { Timing } from '../../domain/time/task-scheduler.ts';
import { GATEWAY_INFO } from '../../domain/version.ts';
import { ownAnswer, rpcErrorAnswer } from '../own-answers.ts';
import type { AggregateExtensions, ToTemplate } from './aggregate-extensions.ts';
import type { Listing, OwnTarget } from './lists/directory.ts';
import type { SearchMode } from './search-mode.ts';
import type { Selection } from './selection.ts';
import { asAsked, withShownUris } from './uris/composed-uris.ts';
import { whenConfirmed } from './views/confirmation.ts';
import { boundedAnswer } from './views/view-limits.ts';

interface AggregateCall extends Timing {
  readonly request: ExchangeRequest;
  readonly selection: Selection;
  readonly client: Client;
  readonly toTemplate: ToTemplate;
  /** The template of the instance that the request continues with. */
  readonly bound?: string | undefined;
  /** The search mode of the list of tools. Undefined where all tools are listed. */
  readonly search?: SearchMode | undefined;
  readonly extensions: AggregateExtensions;
}

/** Answers a request from the lists of the aggregate, refuses it, or passes it to `toTemplate`. Cold. */
export function aggregateExchange(given: AggregateCall): Observable<SourcedEvent> {
  const call = given.selection.view === undefined ? given : throughView(given, given.selection.view);
  return defer(() => knownCall(call) ?? answered(call));
}

/** The answers that are looked up first. A search ends when its client leaves; nothing else has to know. */
function answered(call: AggregateCall): Observable<SourcedEvent> {
  const { request, search } = call;
  if (search === undefined || request.method !== 'tools/call')
    return from(answersTo(call)).pipe(switchMap((events$) => events$));
  const leaving = new AbortController();
  return from(answersTo(call, leaving.signal)).pipe(
    switchMap((events$) => events$),
    tap({ unsubscribe: () => leaving.abort() }),
  );
}

/** Events and records of the call name the view, whichever template gets it. It starts only while the view has what it names. */
function throughView(call: AggregateCall, view: string): AggregateCall {
  const { toTemplate, request, selection } = call;
  if (request.report !== undefined) request.report.view = view;
  const isThere = selection.untilLost?.(); // now: what the request names may be looked up while the view changes
  return {
    ...call,
    toTemplate: (template, own) =>
      toTemplate(template, { ...own, view, ...(isThere && { mayBeSent: () => isThere(template, own) }) }),
  };
}

/** The exchange of a call of a tool whose name is known, which waits for nothing; undefined for others. */
function knownCall(call: AggregateCall): Observable<SourcedEvent> | undefined {
  const { request, selection, client, search } = call;
  const { name } = request.params ?? {};
  if (request.method !== 'tools/call' || search !== undefined || typeof name !== 'string') return undefined;
  const own = selection.directory.knownTarget(name, client.owner);
  return own && carried(call, 'tools', own);
}

/** Waits only when a name or a resource has to be looked up. A request about a task goes to the template that it is bound to. */
async function answersTo(call: AggregateCall, signal?: AbortSignal): Promise<Observable<SourcedEvent>> {
  const { request, selection, client, toTemplate, bound, search, extensions, scheduler } = call;
  const { directory } = selection;
  const { method, params } = request;
  const list = listReturnedBy(method);
  if (list !== undefined) {
    // Each list is one page. Some clients of earlier revisions ask for the first one with an empty cursor.
    if (typeof params?.cursor === 'string' && params.cursor !== '')
      return rpcErrorAnswer(RPC.invalidParams, 'Invalid or expired cursor', { reason: 'invalid_cursor' });
    const all = await directory.listing(list, client);
    const listing = list === 'tools' && search !== undefined ? await search.listed(all, client) : all;
    await scheduler.turn(Math.max(1, listing.items.length / ANSWERED_TOGETHER));
    const result = listResult(list, listing, client);
    return of(ownAnswer({ kind: 'result', result, ...definedFields({ cut: cutOf(listing) }) }));
  }
  switch (method) {
    case 'tools/call': {
      const resolved = search === undefined ? request : await search.resolved(request, client, signal);
      if (isObservable(resolved)) return resolved;
      return byName({ ...call, request: resolved }, 'tools', resolved.params?.name);
    }
    case 'prompts/get':
      return byName(call, 'prompts', params?.name);
    case 'resources/read':
    case SUBSCRIBE:
    case UNSUBSCRIBE:
    case 'skills/get':
    case 'resources/directory/read':
      return byUri(call, params?.uri);
    case 'completion/complete': {
      const ref = fieldValue(params?.ref);
      const reference = isJsonObject(ref) ? ref : {};
      const isByUri = reference.type !== 'ref/prompt' && typeof reference.uri === 'string';
      return isByUri ? byUri(call, reference.uri) : byName(call, 'prompts', reference.name);
    }
    case 'skills/list':
      return from(extensions.listSkills(client, toTemplate)).pipe(
        map((result) => ownAnswer({ kind: 'result', result })),
      );
    default: {
      if (bound !== undefined) return toTemplate(bound, request);
      if (isTaskMethod(method) && method !== 'tasks/list' && extensions.hasTasks(client.owner))
        return rpcErrorAnswer(RPC.invalidParams, 'Unknown task');
      const template = extensions.templateOfMethod(method, client.owner);
      if (template !== undefined) return toTemplate(template, request);
      return rpcErrorAnswer(RPC.methodNotFound, `No server offers ${method} here.`);
    }
  }
}

/** Items of a list that are answered in one task of the scheduler: 5,000 are read and copied in 5 ms. */
const ANSWERED_TOGETHER = 200;

/**
 * The result of a list, whose `_meta` names the incomplete parts. In the modern era every list of an aggregate has `ttlMs: 0`:
 * see `completed`.
 */
function listResult(list: ListField, listing: Listing, client: Client): JsonText {
  const { items, missing, stale, truncated } = listing;
  if (missing.length + stale.length + truncated.length === 0)
    return listing.result?.() ?? JsonText.ofValue({ [list]: items });
  const isModern = isModernVersion(client.profile.protocolVersion);
  const _meta = {
    ...(isModern && { [META.serverInfo]: GATEWAY_INFO }),
    ...(missing.length > 0 && { [MISSING]: missing }),
    ...(stale.length > 0 && { [STALE]: stale }),
    ...(truncated.length > 0 && { [TRUNCATED]: truncated }),
  };
  return JsonText.ofValue({ [list]: items, _meta });
}

/** Incomplete templates that a warning names. */
const MAX_NAMED = 5;

/** The warning about incomplete parts for clients that do not get `_meta`: see `cut` of FinalEvent. */
function cutOf({ missing, stale, truncated }: Listing): string | undefined {
  const parts = [
    ...missing.map(({ template }) => `template "${template}" is missing`),
    ...stale.map(({ template }) => `template "${template}" is not up to date`),
    ...truncated.map(({ template }) => `template "${template}" ends early`),
  ];
  if (parts.length === 0) return undefined;
  const more = parts.length - MAX_NAMED;
  return [...parts.slice(0, MAX_NAMED), ...(more > 0 ? [`and ${more} more`] : [])].join('; ');
}

/** Keys of `_meta`. */
const MISSING = 'stagedoor/missing';
const STALE = 'stagedoor/stale';
const TRUNCATED = 'stagedoor/truncated';

/** Answers by the template of a tool or prompt, whose own name replaces the aggregate one. */
async function byName(
  call: AggregateCall,
  list: 'tools' | 'prompts',
  name: unknown,
): Promise<Observable<SourcedEvent>> {
  const { client, selection } = call;
  const { directory, view } = selection;
  const own = typeof name === 'string' ? await directory.targetOfName(name, list, client) : undefined;
  if (own === undefined) {
    const near = typeof name === 'string' ? await directory.nearestNames(name, list, client) : [];
    if (view !== undefined && list === 'tools') throw toolNotFound(String(name), view, near[0]);
    const [unknown, error_code] =
      list === 'tools' ? ['Unknown tool', 'TOOL_NOT_FOUND'] : ['Unknown prompt', 'PROMPT_NOT_FOUND'];
    return rpcErrorAnswer(RPC.invalidParams, withHint(unknown, near), { error_code });
  }
  return carried(call, list, own);
}

function carried(call: AggregateCall, list: 'tools' | 'prompts', own: OwnTarget): Observable<SourcedEvent> {
  const { request } = call;
  const named = fieldsNaming(request, 'ref/prompt', { name: own.name });
  const given = own.defaults?.addedTo(request.params?.arguments);
  if (typeof given === 'string') throw new GatewayError('INVALID_TOOL_ARGUMENTS', given, { delivered: 'no' });
  const params = { ...request.params, ...named, ...(own.defaults && { arguments: given }) };
  if (own.asks !== true) return sent(call, list, own, params);
  return whenConfirmed({
    ...call,
    tool: { listed: own.listed ?? own.name, template: own.template, own: own.name },
    carry: () => sent(call, list, own, params),
    again: (next) => aggregateExchange({ ...call, request: next }),
  });
}

function sent(
  { request, selection, client, toTemplate }: AggregateCall,
  list: 'tools' | 'prompts',
  own: OwnTarget,
  params: JsonFields,
): Observable<SourcedEvent> {
  const listed = own.listed ?? own.name;
  const limit = list === 'tools' ? selection.limitOf?.(listed) : undefined;
  const isSafe = own.isRepeatable === undefined ? undefined : { isRepeatable: own.isRepeatable };
  const { headers, ...others } = request;
  // The headers of the client do not have the arguments that the view sets: the gateway writes all headers.
  const kept = own.defaults === undefined ? definedFields({ headers }) : undefined;
  const named = { ...others, ...kept, params, ...isSafe };
  if (limit === undefined) return toTemplate(own.template, named);
  const viewTimeoutMs = limit.timeout === undefined ? undefined : limit.timeout * 1_000;
  const most = limit.calls_per_minute;
  const events$ = toTemplate(own.template, { ...named, viewTimeoutMs });
  if (most === undefined) return events$.pipe(map((sourced) => boundedAnswer(sourced, limit)));
  const counted$ = events$.pipe(
    map((sourced) => ({ ...boundedAnswer(sourced, limit), isCounted: true as const })),
  );
  const count = () => selection.countCall?.(listed, client.owner, most);
  // The call is not made before it is awaited: its client may have cancelled it while its tool was looked up.
  return defer(() => {
    const counting =
      request.wasCounted?.().then((wasCounted) => (wasCounted ? undefined : count())) ?? count();
    return counting === undefined ? counted$ : from(counting).pipe(switchMap(() => counted$));
  });
}

/** Answers by the template that a URI leads to, whose own URI replaces it. */
async function byUri(
  { request, selection, client, toTemplate, extensions }: AggregateCall,
  asked: unknown,
): Promise<Observable<SourcedEvent>> {
  const { uris } = selection.directory;
  if (typeof asked !== 'string') return resourceNotFound();
  const target = await uris.targetOf(asked, client, () => extensions.listSkills(client, toTemplate));
  if (target === undefined) return resourceNotFound();
  const { template, uri } = target;
  const named = fieldsNaming(request, 'ref/resource', { uri });
  const own =
    uri === asked && 'uri' in named ? request : { ...request, params: { ...request.params, ...named } };
  const events$ = toTemplate(template, own);
  if (!WITH_URIS.has(request.method) || (uri === asked && !uris.hasShared)) return events$;
  const shown = (each: string) => asAsked(each, asked, uri) ?? uris.shown(template, each, client.owner);
  return events$.pipe(
    map((sourced) => {
      const { event } = sourced;
      if (event.kind !== 'result') return sourced;
      return { ...sourced, event: { ...event, result: withShownUris(event.result, shown) } };
    }),
  );
}

/** The params that name a target. A reference is made again: a server may go by another field of it than the gateway. */
function fieldsNaming<T extends JsonFields>({ method }: ExchangeRequest, type: string, target: T) {
  return method === 'completion/complete' ? { ref: { type, ...target } } : target;
}

/** Methods with URIs of resources in their results. */
const WITH_URIS: ReadonlySet<string> = new Set(['resources/read', 'resources/directory/read', 'skills/get']);

function resourceNotFound(): Observable<SourcedEvent> {
  return rpcErrorAnswer(RPC.resourceNotFound, 'Resource not found.');
}
