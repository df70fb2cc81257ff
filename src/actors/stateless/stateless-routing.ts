// How an instance takes a call of a client without a session: which conversation it travels in, the form of a modern request
// for a legacy backend, and which log lines reach the client. The route of a call applies it (stateless-route.ts).

import { type ClientProfile, mayBeAsked } from '../../domain/client.ts';
import type { ExchangeEvent, ExchangeRequest } from '../../domain/exchange.ts';
import { type InstanceDefinition, TRANSPORT_TRAITS } from '../../domain/instance.ts';
import { isJsonObject } from '../../domain/json.ts';
import { includesLevel, isLogLevel, LIST_METHODS, META, withoutMeta } from '../../domain/mcp.ts';
import type { SessionSharing } from '../../domain/policy.ts';
import type { InstanceRef } from '../instances/instance-ref.ts';
import { isAboutTask } from '../task-requests.ts';

/**
 * `direct`: in the instance's own conversation, as it is; the backend tells its callers apart by request. `shared`: there,
 * too, in legacy form for a legacy backend. `dedicated`: in a conversation of the caller's owner. `refused`: nowhere.
 */
export type Routing = 'direct' | 'shared' | 'dedicated' | 'refused';

/** What decides besides the instance. */
export interface RoutingInput {
  readonly sharing: SessionSharing;
  readonly profile: ClientProfile;
  readonly request: ExchangeRequest;
  /** The level of log lines that the request opts in to. */
  readonly logLevel: string | undefined;
  /** True when the backend is known to list the same tools to a client with these capabilities as in its shared process. */
  readonly listsAlike: boolean;
}

/**
 * A function asks no client and tells its callers apart. An instance without a connection counts as its last peer: a
 * conversation that stands alone may go on, everything else is refused either way.
 */
export function routingTo(
  { peer: present, lastPeer, definition }: Pick<InstanceRef, 'peer' | 'lastPeer' | 'definition'>,
  facts: RoutingInput,
): Routing {
  const peer = present ?? lastPeer;
  if (peer === undefined || peer.era === 'modern') return 'direct';
  if (peer.era === 'bare' || TRANSPORT_TRAITS[definition.transport].isAlwaysShared) return 'shared';
  if (isNetworked(definition)) return 'dedicated';
  return routingOverPipe(facts);
}

/** True when one connection may carry the conversations of many, and each conversation many calls. */
export function isNetworked({ transport }: Pick<InstanceDefinition, 'transport'>): boolean {
  return TRANSPORT_TRAITS[transport].isNetworked;
}

/**
 * True when several calls may travel in one conversation at the same time: over Streamable HTTP what a server asks comes with
 * the answer to its call; on the one stream of its predecessor nothing says whose it is, so there must be nothing to ask.
 */
export function tellsCallsApart(
  definition: Pick<InstanceDefinition, 'transport'>,
  profile: ClientProfile,
): boolean {
  const { isNetworked, attributesRequests } = TRANSPORT_TRAITS[definition.transport];
  return isNetworked && (attributesRequests || !mayBeAsked(profile));
}

/**
 * A process of its own for messages that could not be attributed on a shared pipe, unless the template says that its clients
 * share it all the same. While it lists something a backend asks no client; but which tools it lists may depend on what it
 * could ask, and only a process that knows the capabilities of the client lists those. Source: ADR 49.
 */
function routingOverPipe({ sharing, profile, request, logLevel, listsAlike }: RoutingInput): Routing {
  if (sharing === 'isolated') return 'dedicated';
  if (isAboutTask(request)) return sharing === 'auto' ? 'dedicated' : 'refused';
  if (sharing === 'shared') return 'shared';
  if (request.method === LIST_METHODS.tools)
    return mayBeAsked(profile) && !listsAlike ? 'dedicated' : 'shared';
  if (isList(request)) return 'shared';
  return mayBeAsked(profile) || logLevel !== undefined ? 'dedicated' : 'shared';
}

/** True for requests in the middle of which a backend asks no client. */
export function isList({ method }: ExchangeRequest): boolean {
  return LISTS.has(method);
}

const LISTS: ReadonlySet<string> = new Set(Object.values(LIST_METHODS));

/** Keys of `_meta` that only the modern era knows; every other one is the caller's and stays. */
const MODERN_KEYS = [
  META.protocolVersion,
  META.clientCapabilities,
  META.clientInfo,
  META.logLevel,
  META.subscriptionId,
] as const;

/** The level of log lines that the request opts in to; undefined when it does not. */
export function logLevelOf({ params }: ExchangeRequest): string | undefined {
  const meta = params?._meta;
  const level = isJsonObject(meta) ? meta[META.logLevel] : undefined;
  return isLogLevel(level) ? level : undefined;
}

/** The same request without what the modern era added to it. */
export function forLegacy(request: ExchangeRequest): ExchangeRequest {
  const meta = request.params?._meta;
  if (!isJsonObject(meta) || !MODERN_KEYS.some((key) => key in meta)) return request;
  return { ...request, params: withoutMeta(request.params ?? {}, MODERN_KEYS) };
}

/** True for each event that reaches a client that opted in to `level`: log lines only from that level on. */
export function isLogged(level: string | undefined): (event: ExchangeEvent) => boolean {
  return (event) => {
    if (event.kind !== 'notification' || event.method !== 'notifications/message') return true;
    return level !== undefined && includesLevel(level, event.params.level);
  };
}
