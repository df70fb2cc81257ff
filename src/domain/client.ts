// An MCP client: its declarations, and its answers to requests of a server. Its permissions are in account.ts.

import type { JsonObject, JsonValue } from './json.ts';
import type { JsonRpcError } from './jsonrpc.ts';

/** The declarations of a client: in `initialize`, or in the `_meta` of every request. */
export interface ClientProfile {
  /** The revision it speaks. */
  readonly protocolVersion: string;
  /** Declared to backends for it; they may request nothing else. */
  readonly capabilities: JsonObject;
  /** `name`, `version` and any other field. */
  readonly clientInfo: JsonObject;
}

/** What a client answered to a request of a server. */
export type ClientReply = { readonly result: JsonValue } | { readonly error: JsonRpcError };

/**
 * A request of a legacy server to its client: `sampling/createMessage`, `elicitation/create`, `roots/list`. Only the first `answer`
 * counts, and none after the end of the exchange or the conversation.
 */
export interface ServerRequest {
  readonly kind: 'request';
  readonly method: string;
  readonly params: JsonObject;
  readonly answer: (reply: ClientReply) => void;
}

/** A request of a server. `answered` gets the first answer of its client; further answers are dropped. */
export function serverRequest(
  { method, params }: Pick<ServerRequest, 'method' | 'params'>,
  answered: ServerRequest['answer'],
): ServerRequest {
  let isAnswered = false;
  const answer: ServerRequest['answer'] = (reply) => {
    if (isAnswered) return;
    isAnswered = true;
    answered(reply);
  };
  return { kind: 'request', method, params, answer };
}

/** The same request; `answered` is called once, when the answer comes, before it is passed on. */
export function answeredOnce(request: ServerRequest, answered: () => void): ServerRequest {
  return serverRequest(request, (reply) => {
    answered();
    request.answer(reply);
  });
}

/** A message of a server that belongs to no exchange. */
export type ServerMessage = ServerNotification | ServerRequest;

export interface ServerNotification {
  readonly kind: 'notification';
  readonly method: string;
  readonly params: JsonObject;
}

/** Capabilities that let a server send requests; each needs a conversation without messages of other clients. */
const ASKABLE = ['sampling', 'elicitation', 'roots'] as const;

/** True when a server may send requests to this client, which cannot be attributed to one client of a shared process. */
export function mayBeAsked({ capabilities }: Pick<ClientProfile, 'capabilities'>): boolean {
  return ASKABLE.some((name) => capabilities[name] !== undefined);
}
