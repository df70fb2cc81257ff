// One request of a modern client that was read and checked, on its way to a backend; and what ties a text that the
// client carries to it. How it travels is modern-exchange.ts.

import { createHash } from 'node:crypto';
import type { Tracker } from '../../domain/exchange.ts';
import { canonicalText, fieldValue, type JsonFields, type JsonObject } from '../../domain/json.ts';
import { type JsonRpcId, RPC } from '../../domain/jsonrpc.ts';
import type { Backends, Owner } from '../ports.ts';
import { RpcFailure } from '../rpc-failure.ts';
import type { Envelope } from './modern-envelope.ts';

/** A request, who sent it, and what stands behind its path. */
export interface ModernCall extends Tracker {
  readonly id: JsonRpcId;
  readonly method: string;
  readonly params: JsonFields;
  readonly envelope: Envelope;
  readonly owner: Owner;
  /** Of the path; undefined for all templates together. */
  readonly template: string | undefined;
  readonly backends: Backends;
}

/** The call as the backend is to get it, and who is to get it when it cannot be anybody. */
export interface Routed {
  readonly params: JsonFields;
  readonly instanceId?: string;
}

/** What ties something to an owner and a path, for one purpose. */
export function pathKey(
  purpose: string,
  { owner, template }: Pick<ModernCall, 'owner' | 'template'>,
): string {
  return JSON.stringify([purpose, template ?? null, owner.id]);
}

/**
 * What ties something to this very call: owner, path, method, and what is asked for. A retry has all of that, too; its
 * `_meta`, and what was carried and answered, may differ. Not for the hot path: it takes a digest of the arguments.
 */
export function callKey(call: ModernCall): string {
  const { method, params } = call;
  const { name = null, uri = null, arguments: args = {} } = params;
  const asked = createHash('sha256')
    .update(canonicalText([name, uri, args].map(fieldValue)))
    .digest('base64url');
  return `${pathKey(method, call)}${asked}`;
}

/** The refusal of something in `params`. An answer like those of backends, hence 200. */
export function invalidParams(message: string, data?: JsonObject): RpcFailure {
  return new RpcFailure(200, { code: RPC.invalidParams, message, ...(data === undefined ? {} : { data }) });
}
