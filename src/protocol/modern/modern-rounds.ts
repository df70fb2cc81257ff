// Calls that take several rounds, because the server asks its client for input first. This file encrypts the state that the
// client carries from one round to the next, with the instance, or the parked call, that it belongs to.
// Source: MCP 2026-07-28 basic/patterns/mrtr.

import type { ClientReply } from '../../domain/client.ts';
import { fieldValue, isJsonObject, type JsonFields, type JsonObject, JsonText } from '../../domain/json.ts';
import { RPC } from '../../domain/jsonrpc.ts';
import { META, withoutMeta } from '../../domain/mcp.ts';
import type { InputRequest } from '../input-requests.ts';
import { hasRounds } from '../input-requests.ts';
import type { ClientQuestion } from '../ports.ts';
import { RpcFailure } from '../rpc.ts';
import { callKey, invalidParams, type ModernCall, type RoutedRequest } from './modern-call.ts';
import type { StateCipher } from './state-cipher.ts';

/** A round after the first one: the call that waits here, or an instance that keeps nothing. */
export type Round =
  | { readonly kind: 'parked'; readonly id: string; readonly replies: ReadonlyMap<string, ClientReply> }
  | ({ readonly kind: 'routed' } & RoutedRequest);

/** Input requests by a key that the responses carry. */
export type InputRequests = Readonly<Record<string, InputRequest>>;

/** Encrypts what a client carries between two rounds, and decrypts it. */
export class ModernRounds {
  readonly #cipher: StateCipher;

  constructor(cipher: StateCipher) {
    this.#cipher = cipher;
  }

  /**
   * What a retry goes on with; undefined for a request that carries nothing. Throws RpcFailure (-32602) when what it
   * carries was not given out here, to this client, for this call, within the hour.
   */
  open(call: ModernCall): Round | undefined {
    const { requestState } = call.params;
    if (requestState === undefined || !hasRounds(call.method)) return undefined;
    const decrypted =
      typeof requestState === 'string' ? this.#cipher.decrypt(requestState, callKey(call)) : undefined;
    if (typeof decrypted?.p === 'string')
      return { kind: 'parked', id: decrypted.p, replies: repliesOf(call.params) };
    if (typeof decrypted?.i !== 'string')
      throw invalidParams('Invalid or expired requestState', { reason: 'invalid_request_state' });
    const { requestState: _, ...params } = call.params;
    const own = typeof decrypted.s === 'string' ? { requestState: decrypted.s } : {};
    return { kind: 'routed', params: { ...params, ...own }, instanceId: decrypted.i };
  }

  /**
   * The result of an instance that wants to know something, with its state encrypted. Without a state any instance may be
   * asked the next time, and nothing is added.
   */
  encrypt(call: ModernCall, result: JsonText, instanceId: string): JsonText {
    const value = result.exactValue;
    if (!isJsonObject(value) || typeof value.requestState !== 'string') return result;
    const requestState = this.#carried(call, { i: instanceId, s: value.requestState });
    return JsonText.ofValue({ ...value, requestState });
  }

  /** The result for a call whose legacy backend asks for input: the call waits here. */
  askParked(call: ModernCall, { id, requests }: ClientQuestion, serverInfo: JsonObject): JsonText {
    const questions = [...requests].map(([key, { method, params }]) => [
      key,
      { method, params: asked(params) },
    ]);
    return this.#ask(call, Object.fromEntries(questions), { p: id }, serverInfo);
  }

  /** The result for a call that its legacy instance refused until the client has answered. */
  askFirst(call: ModernCall, requests: InputRequests, instanceId: string, serverInfo: JsonObject): JsonText {
    return this.#ask(call, requests, { i: instanceId }, serverInfo);
  }

  #ask(call: ModernCall, requests: InputRequests, content: JsonObject, serverInfo: JsonObject): JsonText {
    return JsonText.ofValue({
      resultType: 'input_required',
      inputRequests: requests,
      requestState: this.#carried(call, content),
      _meta: { [META.serverInfo]: serverInfo },
    });
  }

  #carried(call: ModernCall, content: JsonObject): string {
    const encrypted = this.#cipher.encrypt(content, callKey(call));
    if (encrypted !== undefined) return encrypted;
    throw new RpcFailure(200, {
      code: RPC.internalError,
      message: 'The server wants the client to carry more state than may be carried',
    });
  }
}

/** The request becomes a part of a result, for which there is no progress. */
function asked(params: JsonObject): JsonObject {
  const { _meta } = params;
  const wantsProgress = isJsonObject(_meta) && _meta[META.progressToken] !== undefined;
  return wantsProgress ? withoutMeta(params, [META.progressToken]) : params;
}

/** The refusal of answers to a call that is not parked here, although the state is valid. */
export function callNotHere(): RpcFailure {
  return invalidParams(
    'No call waits here for these answers: it went on, it has ended, or it waits on another node.',
    { reason: 'call_not_here' },
  );
}

/**
 * The answers in a retry. They are bare results: a wrapped one, or what is no object, counts as none, and the server is
 * left to ask again. Throws RpcFailure (-32602) when they are no object themselves.
 */
function repliesOf(params: JsonFields): ReadonlyMap<string, ClientReply> {
  const inputResponses = fieldValue(params.inputResponses) ?? {};
  if (!isJsonObject(inputResponses)) throw invalidParams('Invalid params: inputResponses must be an object');
  const replies = new Map<string, ClientReply>();
  for (const [key, result] of Object.entries(inputResponses)) {
    if (isJsonObject(result) && !('method' in result) && !('result' in result)) replies.set(key, { result });
  }
  return replies;
}
