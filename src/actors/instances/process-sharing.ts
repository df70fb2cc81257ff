// Which clients share a conversation with an instance, and which need one of their own: of a session
// (`needsDedicated`, `isShareable`), and for a request of a client without one (`conversationFor`). binder.ts and
// stateless-route.ts apply these rules.

import type { ProcessSharing, TemplatePolicy } from '../../balancing/policy.ts';
import type { ExchangeRequest } from '../../domain/calls/exchange.ts';
import type { FinalEvent } from '../../domain/calls/exchange-event.ts';
import type { InstanceDefinition } from '../../domain/instances/instance.ts';
import { isNetworked, TRANSPORT_TRAITS } from '../../domain/instances/transport-kinds.ts';
import { acceptsServerRequests, type ClientProfile, extensionsOf } from '../../domain/mcp/client.ts';
import { RPC } from '../../domain/mcp/jsonrpc.ts';
import { type Handshake, isOfOtherEra, listOf } from '../../domain/mcp/mcp.ts';
import type { InstanceRef } from './instance-ref.ts';

// --- sessions ----------------------------------------------------------------------------------------------

/** What a client needs of the conversation of its session. */
export interface ClientNeeds {
  readonly profile: ClientProfile;
  /** The session has set a log level, or is about to: log messages name no client. */
  readonly asksForLog: boolean;
}

/**
 * Whether a session needs a dedicated conversation. Over HTTP always: legacy backends have sessions there, and a
 * modern one may speak both eras. Over a pipe when the template requires it, or when a legacy backend may send
 * messages or requests that cannot be attributed to one client of a shared process; a modern program may speak
 * both eras, and send requests only in the legacy one. A client that declares extensions shares one with its like.
 * Bare backends know no clients. Source: ADR 24, ADR 48, ADR 104.
 */
export function needsDedicated(
  ref: InstanceRef,
  { era }: Handshake,
  policy: TemplatePolicy,
  { profile, asksForLog }: ClientNeeds,
): boolean {
  if (era === 'bare') return false;
  if (isNetworked(ref.definition) || isIsolated(ref, policy)) return true;
  if (policy.processSharing !== 'auto') return false;
  return (
    acceptsServerRequests(profile) || extensionsOf(profile) !== undefined || (era === 'legacy' && asksForLog)
  );
}

/** True when clients with the same extensions may share the process of the session. */
export function isShareable(
  { definition: { transport } }: InstanceRef,
  { processSharing }: TemplatePolicy,
  { profile, asksForLog }: ClientNeeds,
): boolean {
  const isAuto = TRANSPORT_TRAITS[transport].hasProcesses && processSharing === 'auto';
  return isAuto && !asksForLog && !acceptsServerRequests(profile);
}

/** True where the template requires a dedicated process, in whichever era. */
export function isIsolated(
  { definition: { transport } }: InstanceRef,
  { processSharing }: TemplatePolicy,
): boolean {
  return processSharing === 'isolated' && TRANSPORT_TRAITS[transport].hasProcesses;
}

/** False when the template demands that clients share a conversation. */
export function allowsDedicated({ processSharing }: TemplatePolicy): boolean {
  return processSharing !== 'shared';
}

// --- clients without a session -----------------------------------------------------------------------------

/**
 * `direct`: unchanged in the conversation of the instance; the backend tells callers apart by request. `shared`:
 * in the same conversation, in legacy form. `extended`: in one that clients with equal extensions share.
 * `dedicated`: in a conversation of the caller's owner. `refused`: in none. `unknown`: in none, because the era of
 * the backend does not have the method.
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

// --- tasks, for both ---------------------------------------------------------------------------------------

/**
 * True when a request starts a task or refers to one. A legacy backend keeps tasks by conversation, so clients
 * that share one could see, read and cancel the tasks of each other. Source: MCP 2025-11-25 basic/utilities/tasks.
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
