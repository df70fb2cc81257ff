// One exchange: a request to a backend and everything that comes back for it.
// An exchange is an Observable of these events; its errors are GatewayError (errors.ts).

import type { JsonObject, JsonText } from './json.ts';
import type { JsonRpcError } from './jsonrpc.ts';

/** A request on its way to a backend. Ids are given by the transport; `_meta` of the caller stays in `params`. */
export interface ExchangeRequest {
  readonly method: string;
  readonly params?: JsonObject;
}

/**
 * What an exchange emits: zero or more notifications, then one result or one error, then it completes.
 * `error` is an answer of the backend (it was delivered and heard), not a failure of the way there.
 */
export type ExchangeEvent =
  | { readonly kind: 'notification'; readonly method: string; readonly params: JsonObject }
  | { readonly kind: 'result'; readonly result: JsonText }
  | { readonly kind: 'error'; readonly error: JsonRpcError };

/** Emitted by the dispatcher: the event and the instance that said it. */
export interface Answer {
  readonly event: ExchangeEvent;
  readonly instanceId: string;
  readonly serverId: string;
}
