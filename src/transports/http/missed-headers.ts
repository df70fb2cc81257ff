// Calls that a modern HTTP backend refuses for the headers in which arguments are repeated, because it misses one or they are
// too large: whether such a call is worth making again, or at all. What tools ask for is in tool-headers.ts, how a refusal is
// recognised in http-refusal.ts.

import { concat, defer, type Observable, of } from 'rxjs';
import type { ExchangeRequest } from '../../domain/exchange.ts';
import { type JsonRpcError, RPC } from '../../domain/jsonrpc.ts';
import type { Peer } from '../../domain/mcp.ts';
import { headerBytes } from '../../domain/param-headers.ts';
import type { ToolHeaders } from './tool-headers.ts';

/** What is known of the tools of one backend. */
export interface KnownTools {
  readonly toolHeaders: ToolHeaders;
  /** Lists the tools anew while somebody subscribes, unless that was done just now. */
  readonly toolListing$: Observable<never>;
}

/** A call that was refused. */
export interface RefusedCall {
  readonly request: ExchangeRequest;
  readonly peer: Peer;
  /** The headers that were added to it. */
  readonly worn: ExchangeRequest['headers'];
}

/** Most bytes of added headers: half of what servers of Node take in all. */
export const MOST_HEADER_BYTES = 8 * 1024;

/** The answer to a call whose headers are too large. No other instance would take them, and no second attempt. */
export const TOO_LARGE: JsonRpcError = {
  code: RPC.invalidParams,
  message: 'the tool wants arguments repeated in HTTP headers, and these are too large for that',
};

/** Whether that is to be the answer instead of a call with these headers. */
export function areTooLarge(headers: Readonly<Record<string, string>>): boolean {
  return headerBytes(headers) > MOST_HEADER_BYTES;
}

/**
 * Emits once whether the call would wear a header now that it did not wear, and completes. If that is not so already, its
 * tools are listed first, unless it could not help. Never errors; takes as long as the listing.
 */
export function wouldWearMore(known: KnownTools, { request, peer, worn }: RefusedCall): Observable<boolean> {
  const { toolHeaders, toolListing$ } = known;
  const hasMore = (): boolean => {
    const headers = toolHeaders.for(request, peer) ?? {};
    return Object.entries(headers).some(([name, value]) => value !== worn?.[name]);
  };
  if (hasMore()) return of(true);
  if (!toolHeaders.areOursFor(request, peer) || toolHeaders.areImpossibleFor(request)) return of(false);
  return concat(
    toolListing$,
    defer(() => of(hasMore())),
  );
}
