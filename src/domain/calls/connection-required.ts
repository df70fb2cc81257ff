// The answer to a call that needs an account which its user has not connected: where to connect it. It is the
// error of MCP for that, so each door gives it in its form: an input request, the error, the result of a tool, or
// an error of REST. Source: MCP 2025-11-25 client/elicitation#url-elicitation-required-error, ADR 220.

import type { JsonObject } from '../json/json.ts';
import type { JsonRpcError } from '../mcp/jsonrpc.ts';

/** The page at which a user connects the account. */
export interface ConnectLink {
  readonly url: string;
  /** The id that the notification has when the account is connected. */
  readonly elicitationId: string;
}

export const URL_ELICITATION_REQUIRED = -32042;
/** The time for which the page, the authorization that begins there, and the state of the call that waits are valid, in ms. */
export const CONNECT_LINK_MS = 10 * 60_000;

/** A class, so that no backend can make such an answer. */
export class ConnectionRequired implements JsonRpcError {
  readonly code = URL_ELICITATION_REQUIRED;
  /** Says what to do; with the URL, for clients that show nothing else. */
  readonly message: string;
  readonly data: { readonly elicitations: JsonObject[] };

  constructor(message: string, elicitations: JsonObject[]) {
    this.message = message;
    this.data = { elicitations };
  }

  /** The address of the page; undefined for a caller without an account of its own: an API key. */
  get url(): string | undefined {
    const url = this.data.elicitations[0]?.url;
    return typeof url === 'string' ? url : undefined;
  }
}

export function connectAt(template: string, link: ConnectLink): ConnectionRequired {
  const message = `Connect your account at "${template}" in the browser.`;
  return new ConnectionRequired(
    `"${template}" needs your account there. Open ${link.url} in a browser, connect the account, and repeat the call.`,
    [{ mode: 'url', message, url: link.url, elicitationId: link.elicitationId }],
  );
}

/** The user has not followed the address. */
export function connectionDeclined(template: string): ConnectionRequired {
  return new ConnectionRequired(`"${template}" needs your account there, and it was not connected.`, []);
}

/** The caller is not a user. */
export function noOwnAccount(template: string): ConnectionRequired {
  return new ConnectionRequired(
    `"${template}" is used with the account of each user, and this caller has none: sign in by URL instead of using an API key, ` +
      'or let an admin register the instance with `who: shared`.',
    [],
  );
}
