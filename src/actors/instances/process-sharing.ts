// The rules that decide which clients share a conversation with an instance, and which need a conversation of their own:
// for sessions (`needsDedicated`, `isShareable`), and for requests without a session (`conversationFor`). binder.ts and
// stateless-route.ts apply them.

import type { TemplatePolicy } from '../../balancing/policy.ts';
import type { ExchangeRequest } from '../../domain/calls/exchange.ts';
import type { FinalEvent } from '../../domain/calls/exchange-event.ts';
import type { InstanceDefinition } from '../../domain/instances/instance.ts';
import {
  hasProcesses,
  isFunction,
  isNetworked,
  TRANSPORT_TRAITS,
} from '../../domain/instances/transport-kinds.ts';
import { acceptsServerRequests, type ClientProfile, extensionsOf } from '../../domain/mcp/client.ts';
import { RPC } from '../../domain/mcp/jsonrpc.ts';
import { type Handshake, isOfOtherEra, isTaskMethod, listReturnedBy } from '../../domain/mcp/mcp.ts';
import type { InstanceRef } from './instance-ref.ts';

// --- sessions ----------------------------------------------------------------------------------------------

/** What a client requires of the conversation of its session. */
export interface ClientNeeds {
  readonly profile: ClientProfile;
  /** True when the session has set a log level, or is about to: log messages do not say which client they are for. */
  readonly asksForLog: boolean;
}

/**
 * Whether a session needs a dedicated conversation. Over HTTP always: legacy backends have sessions, and a
 * modern one may speak both eras. Over a pipe, when the template requires it, or when a legacy backend may send
 * messages or requests that cannot be attributed to one client of a shared process; a modern program may speak both
 * eras, and sends requests only in the legacy one. Clients with equal extensions share one. Bare backends do not tell
 * clients apart. Source: ADR 24, ADR 26.
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

/** True when clients with equal extensions may share the process of the session. */
export function isShareable(
  { definition }: InstanceRef,
  { processSharing }: TemplatePolicy,
  { profile, asksForLog }: ClientNeeds,
): boolean {
  const isAuto = hasProcesses(definition) && processSharing === 'auto';
  return isAuto && !asksForLog && !acceptsServerRequests(profile);
}

/** True when the template requires a dedicated process, for backends of every era. */
export function isIsolated({ definition }: InstanceRef, { processSharing }: TemplatePolicy): boolean {
  return processSharing === 'isolated' && hasProcesses(definition);
}

/** False when the template demands that all clients share a conversation. */
export function allowsDedicated({ processSharing }: TemplatePolicy): boolean {
  return processSharing !== 'shared';
}

// --- clients without a session -----------------------------------------------------------------------------

/**
 * The conversation that carries a request. `direct`: the transport of the instance, and the request is unchanged; the
 * backend tells callers apart by request. `transport`: the transport, and the request has its legacy form.
 * `equalExtensions`: one that clients with equal extensions share. `dedicated`: one of the caller's owner. `noTasks`:
 * none, for a task where clients share a process. `unknownMethod`: none, because the backend's era does not have the method.
 */
export type ConversationChoice =
  | 'direct'
  | 'transport'
  | 'equalExtensions'
  | 'dedicated'
  | 'noTasks'
  | 'unknownMethod';

interface ChoiceInput {
  readonly sharing: TemplatePolicy['processSharing'];
  readonly profile: ClientProfile;
  readonly request: ExchangeRequest;
  /** See logLevelOf of transports/legacy-form.ts. */
  readonly logLevel: string | undefined;
  /** True when the backend is known to list the same tools to such a client as in its shared process. */
  readonly hasEqualTools: boolean;
}

/**
 * Chooses the conversation for a request without a session. In-process functions never ask the client, and tell
 * callers apart. Without a connection the last handshake decides: an independent conversation may continue, and
 * everything else is refused anyway.
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
  if (handshake !== undefined && isOfOtherEra(input.request.method, handshake.era)) return 'unknownMethod';
  if (handshake === undefined || handshake.era === 'modern') return 'direct';
  if (handshake.era === 'bare' || isFunction(definition)) return 'transport';
  if (isNetworked(definition)) return 'dedicated';
  return conversationOverPipe(input);
}

/**
 * True when one conversation may carry several calls at the same time. Over Streamable HTTP a question of the
 * server comes in the stream of its call. Over HTTP+SSE a question does not name its call, so that this is true only
 * for clients that cannot be asked anything.
 */
export function tellsCallsApart(
  definition: Pick<InstanceDefinition, 'transport'>,
  profile: ClientProfile,
): boolean {
  const { attributesRequests } = TRANSPORT_TRAITS[definition.transport];
  return isNetworked(definition) && (attributesRequests || !acceptsServerRequests(profile));
}

/**
 * Chooses the conversation over a pipe. A dedicated process is for messages that could not be attributed in a shared
 * one, unless the template lets clients share it anyway. During a list request a backend asks nothing; but the tools
 * may depend on the capabilities of the client, which only a dedicated process knows. A client with extensions never
 * shares with clients that declare none: its tools may have the same names and other contents. Source: ADR 26.
 */
function conversationOverPipe(input: ChoiceInput): ConversationChoice {
  const { sharing, profile, request } = input;
  if (sharing === 'isolated') return 'dedicated';
  if (isAboutTask(request)) return sharing === 'auto' ? 'dedicated' : 'noTasks';
  if (sharing === 'shared') return 'transport';
  const hasExtensions = extensionsOf(profile) !== undefined;
  if (needsDedicatedProcess(input, hasExtensions)) return 'dedicated';
  return hasExtensions ? 'equalExtensions' : 'transport';
}

function needsDedicatedProcess(
  { profile, request, logLevel, hasEqualTools }: ChoiceInput,
  hasExtensions: boolean,
): boolean {
  const list = listReturnedBy(request.method);
  const isAskable = acceptsServerRequests(profile);
  if (list === undefined) return isAskable || logLevel !== undefined;
  return isAskable && (hasExtensions || (list === 'tools' && !hasEqualTools));
}

// --- tasks, for both ---------------------------------------------------------------------------------------

/**
 * True when a request starts a task or refers to one. A legacy backend keeps tasks per conversation, so that
 * clients that share one could see, read and cancel the tasks of each other. Source: MCP 2025-11-25
 * basic/utilities/tasks.
 */
export function isAboutTask({ method, params }: ExchangeRequest): boolean {
  if (method === 'tools/call') return params?.task !== undefined;
  return isTaskMethod(method);
}

/** The answer that refuses a task where clients share a conversation. */
export const NO_TASKS: FinalEvent = {
  kind: 'error',
  error: {
    code: RPC.methodNotFound,
    message: 'Tasks require a dedicated process, which the template does not allow.',
  },
};
