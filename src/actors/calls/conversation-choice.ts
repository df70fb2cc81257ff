// How a call of a stateless client travels to an instance: the conversation, the form of a modern request for a legacy backend,
// and the log messages that reach the client. stateless-route.ts applies these rules.

import type { ProcessSharing } from '../../balancing/policy.ts';
import type { ExchangeEvent, ExchangeRequest, FinalEvent } from '../../domain/calls/exchange.ts';
import type { InstanceDefinition } from '../../domain/instances/instance.ts';
import { isNetworked, TRANSPORT_TRAITS } from '../../domain/instances/transport-kinds.ts';
import { isJsonObject } from '../../domain/json/json.ts';
import { acceptsServerRequests, type ClientProfile, extensionsOf } from '../../domain/mcp/client.ts';
import { RPC } from '../../domain/mcp/jsonrpc.ts';
import {
  includesLevel,
  isLogLevel,
  isOfOtherEra,
  LOG,
  listOf,
  META,
  withoutMeta,
} from '../../domain/mcp/mcp.ts';
import type { InstanceRef } from '../instances/instance-ref.ts';

/**
 * `direct`: unchanged in the conversation of the instance; the backend tells callers apart by request. `shared`: in the same
 * conversation, in legacy form. `extended`: in one that clients with equal extensions share. `dedicated`: in a conversation of the
 * caller's owner. `refused`: in none. `unknown`: in none, because the era of the backend does not have the method.
 */
export type ConversationChoice = 'direct' | 'shared' | 'extended' | 'dedicated' | 'refused' | 'unknown';

interface ChoiceInput {
  readonly sharing: ProcessSharing;
  readonly profile: ClientProfile;
  readonly request: ExchangeRequest;
  /** The level of log messages that the request opts in to. */
  readonly logLevel: string | undefined;
  /** True when the backend is known to list the same tools to such a client as in its shared process. */
  readonly hasEqualTools: boolean;
}

/**
 * In-process functions ask no client and tell callers apart. Without a connection the last handshake counts: an independent
 * conversation may continue, everything else is refused either way.
 */
export function conversationFor(
  {
    handshake: present,
    lastHandshake,
    definition,
  }: Pick<InstanceRef, 'handshake' | 'lastHandshake' | 'definition'>,
  input: ChoiceInput,
): ConversationChoice {
  const handshake = present ?? lastHandshake;
  if (handshake !== undefined && isOfOtherEra(input.request.method, handshake.era)) return 'unknown';
  if (handshake === undefined || handshake.era === 'modern') return 'direct';
  if (handshake.era === 'bare' || TRANSPORT_TRAITS[definition.transport].isAlwaysShared) return 'shared';
  if (isNetworked(definition)) return 'dedicated';
  return conversationOverPipe(input);
}

/**
 * True when one conversation may carry several calls at the same time. Over Streamable HTTP a question of the server comes in
 * the stream of its call. On the one stream of HTTP+SSE a question names no call, so this is true only for clients that cannot
 * be asked anything.
 */
export function tellsCallsApart(
  definition: Pick<InstanceDefinition, 'transport'>,
  profile: ClientProfile,
): boolean {
  const { isNetworked, attributesRequests } = TRANSPORT_TRAITS[definition.transport];
  return isNetworked && (attributesRequests || !acceptsServerRequests(profile));
}

/**
 * A dedicated process for messages that could not be attributed on a shared pipe, unless the template lets clients share it all
 * the same. During a list request a backend asks no client; but the listed tools may depend on the capabilities of the client,
 * which only a dedicated process knows. A client with extensions never shares with clients that declare none: its tools may have
 * the same names and other contents. Source: ADR 49, ADR 104.
 */
function conversationOverPipe(input: ChoiceInput): ConversationChoice {
  const { sharing, profile, request } = input;
  if (sharing === 'isolated') return 'dedicated';
  if (isAboutTask(request)) return sharing === 'auto' ? 'dedicated' : 'refused';
  if (sharing === 'shared') return 'shared';
  const isExtended = extensionsOf(profile) !== undefined;
  if (needsOwnProcess(input, isExtended)) return 'dedicated';
  return isExtended ? 'extended' : 'shared';
}

function needsOwnProcess(
  { profile, request, logLevel, hasEqualTools }: ChoiceInput,
  isExtended: boolean,
): boolean {
  const list = listOf(request.method);
  const isAskable = acceptsServerRequests(profile);
  if (list === undefined) return isAskable || logLevel !== undefined;
  return isAskable && (isExtended || (list === 'tools' && !hasEqualTools));
}

/** Keys of `_meta` that only the modern era defines; all others belong to the caller and are kept. */
const MODERN_KEYS = [
  META.protocolVersion,
  META.clientCapabilities,
  META.clientInfo,
  META.logLevel,
  META.subscriptionId,
] as const;

/** The level of log messages that the request opts in to, if any. */
export function logLevelOf({ params }: ExchangeRequest): string | undefined {
  const meta = params?._meta;
  const level = isJsonObject(meta) ? meta[META.logLevel] : undefined;
  return isLogLevel(level) ? level : undefined;
}

/** The request without the metadata that only modern backends read. */
export function forLegacy(request: ExchangeRequest): ExchangeRequest {
  const meta = request.params?._meta;
  if (!isJsonObject(meta) || !MODERN_KEYS.some((key) => key in meta)) return request;
  return { ...request, params: withoutMeta(request.params ?? {}, MODERN_KEYS) };
}

/** Makes the filter for a client that opted in to `level`: log messages only from that level on. */
export function isLogged(level: string | undefined): (event: ExchangeEvent) => boolean {
  return (event) => {
    if (event.kind !== 'notification' || event.method !== LOG) return true;
    return level !== undefined && includesLevel(level, event.params.level);
  };
}

/**
 * True when a request starts a task or refers to one. A legacy backend keeps tasks by conversation, so clients that share one could
 * see, read and cancel the tasks of each other. Source: MCP 2025-11-25 basic/utilities/tasks.
 */
export function isAboutTask({ method, params }: ExchangeRequest): boolean {
  if (method === 'tools/call') return params?.task !== undefined;
  return method.startsWith('tasks/');
}

/** The refusal of a task where clients share a conversation. */
export const NO_TASKS: FinalEvent = {
  kind: 'error',
  error: {
    code: RPC.methodNotFound,
    message: 'Tasks require a dedicated process, which the template does not allow.',
  },
};
