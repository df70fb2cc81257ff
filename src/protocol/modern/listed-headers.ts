// Whether the headers of a call repeat its arguments as its tool is listed to want it. A client may know a newer list than the
// gateway: nobody is refused before the list was asked for again. The comparison itself is param-headers.ts.

import type { JsonFields } from '../../domain/json.ts';
import type { Tool } from '../../domain/mcp.ts';
import type { Headers } from '../headers.ts';
import { ParamHeaders } from '../param-headers.ts';
import type { ModernCall } from './modern-call.ts';

/** Judges calls; a call of anything but a tool is right. */
export class ListedHeaders {
  readonly #params = new ParamHeaders();

  /**
   * Undefined when they are right, which nobody waits for. Otherwise throws RpcFailure, 400 with -32020, or resolves when a
   * list that was renewed finds them right, and rejects in the same way when none does.
   */
  check({ method, params, owner, backends }: ModernCall, headers: Headers): Promise<void> | undefined {
    const { name, arguments: args } = params;
    if (method !== 'tools/call' || typeof name !== 'string') return undefined;
    if (this.#params.mismatch(backends.tool(name, owner), args, headers) === undefined) return undefined;
    const relisted = backends.relisted(name, owner);
    if (relisted instanceof Promise) return relisted.then((tools) => this.#checkAny(tools, args, headers));
    this.#checkAny(relisted, args, headers);
    return undefined;
  }

  /** While a server is replaced its instances do not agree: which of them gets the call is not known yet. */
  #checkAny(tools: readonly Tool[], args: JsonFields[string], headers: Headers): void {
    const mismatches = tools.map((tool) => this.#params.mismatch(tool, args, headers));
    const [first] = mismatches;
    if (first !== undefined && !mismatches.includes(undefined)) throw first;
  }
}
