// An MCP client as the gateway sees it: its declarations, and its answers to requests of a server.
// The permission to call is in account.ts.

import type { JsonObject, JsonValue } from './json.ts';
import type { JsonRpcError } from './jsonrpc.ts';

/** The declarations of a client: in `initialize`, or in the `_meta` of every request. */
export interface ClientProfile {
  /** The revision it speaks. */
  readonly protocolVersion: string;
  /** Declared to backends on its behalf: they may ask for nothing else. */
  readonly capabilities: JsonObject;
  /** `name`, `version` and any other field. */
  readonly clientInfo: JsonObject;
}

/** What a client answered to a request of a server. */
export type ClientReply = { readonly result: JsonValue } | { readonly error: JsonRpcError };

/**
 * A request that a legacy server makes of its client: `sampling/createMessage`, `elicitation/create`, `roots/list`.
 * `answer` works once; what is said after that, or after the exchange or the conversation ended, is dropped.
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

/** What a server says outside of any exchange. */
export type ServerMessage = ServerNotification | ServerRequest;

export interface ServerNotification {
  readonly kind: 'notification';
  readonly method: string;
  readonly params: JsonObject;
}

/** Capabilities that let a server ask its client; each needs a conversation that carries no other client's messages. */
const ASKABLE = ['sampling', 'elicitation', 'roots'] as const;

/** True when a server may send requests to this client, which cannot be attributed to one client on a shared pipe. */
export function mayBeAsked({ capabilities }: Pick<ClientProfile, 'capabilities'>): boolean {
  return ASKABLE.some((name) => capabilities[name] !== undefined);
}
