// A list of a template for a route: gathered from one instance, and given up when the client leaves.

import type { ListField } from '../domain/mcp.ts';
import type { Gateway } from '../gateway.ts';
import type { ListResult } from '../gateway-types.ts';
import { ClientGone } from './client-gone.ts';
import type { RequestState } from './request-state.ts';

/** All items and who gave them. Rejects with ClientGone when nobody waits any more; the backend is told. */
export async function gatherList(
  gateway: Pick<Gateway, 'list'>,
  template: string,
  field: ListField,
  { signal, callerId }: Pick<RequestState, 'signal' | 'callerId'>,
): Promise<ListResult> {
  try {
    return await gateway.list(template, field, { signal, caller: callerId });
  } catch (thrown) {
    throw signal.aborted ? new ClientGone() : thrown;
  }
}
