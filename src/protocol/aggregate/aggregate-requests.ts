// Routes one request to the aggregate: answers lists here, and sends everything else to its template with the names that the
// template uses.

import { defer, from, map, type Observable, of, switchMap } from 'rxjs';
import type { Answer, ExchangeRequest } from '../../domain/exchange.ts';
import { fieldValue, isJsonObject, type JsonObject, JsonText } from '../../domain/json.ts';
import { type JsonRpcError, RPC } from '../../domain/jsonrpc.ts';
import { type ListField, listOf } from '../../domain/mcp.ts';
import type { Client } from '../ports.ts';
import type { AggregateDirectory } from './aggregate-directory.ts';

/**
 * Answers a request from the lists of all templates, refuses it, or passes it to `toTemplate`. Cold. `bound`: the template of
 * the instance that the request continues with.
 */
export function aggregateExchange(
  request: ExchangeRequest,
  directory: AggregateDirectory,
  client: Client,
  toTemplate: (template: string, request: ExchangeRequest) => Observable<Answer>,
  bound?: string,
): Observable<Answer> {
  return defer(() => from(destinationOf(request, directory, client, bound))).pipe(
    switchMap((destination) => {
      switch (destination.kind) {
        case 'list':
          return from(directory.list(destination.list, client)).pipe(
            map((items) => JsonText.ofValue({ [destination.list]: items })),
            map((result) => localAnswer({ kind: 'result', result })),
          );
        case 'refused':
          return of(localAnswer({ kind: 'error', error: destination.error }));
        case 'template':
          return toTemplate(destination.template, destination.request);
      }
    }),
  );
}

/** An answer that no instance gave. */
export function localAnswer(event: Answer['event']): Answer {
  return { event, instanceId: '', serverId: '' };
}

/** The lists of all templates answer the request, one template does, or it is refused. */
type Destination =
  | { readonly kind: 'list'; readonly list: ListField }
  | { readonly kind: 'template'; readonly template: string; readonly request: ExchangeRequest }
  | { readonly kind: 'refused'; readonly error: JsonRpcError };

/**
 * Finds the destination. Waits only when a name or a resource has to be looked up. `bound`: see aggregateExchange; a request
 * about a task goes to that template.
 */
async function destinationOf(
  request: ExchangeRequest,
  directory: AggregateDirectory,
  client: Client,
  bound?: string,
): Promise<Destination> {
  const { method, params } = request;
  const list = listOf(method);
  if (list !== undefined) return { kind: 'list', list };
  switch (method) {
    case 'tools/call':
      return byName(request, 'tools', params?.name, directory, client);
    case 'prompts/get':
      return byName(request, 'prompts', params?.name, directory, client);
    case 'resources/read':
    case 'resources/subscribe':
    case 'resources/unsubscribe':
      return byUri(request, params?.uri, directory, client);
    case 'completion/complete': {
      const ref = fieldValue(params?.ref);
      const reference = isJsonObject(ref) ? ref : {};
      if (typeof reference.uri === 'string') return byUri(request, reference.uri, directory, client);
      return byName(request, 'prompts', reference.name, directory, client, reference);
    }
    default:
      if (bound !== undefined) return { kind: 'template', template: bound, request };
      if (TASK_METHODS.has(method)) return refused(RPC.invalidParams, 'Unknown task');
      return refused(RPC.methodNotFound, `${method} is not offered for all templates together.`);
  }
}

const TASK_METHODS: ReadonlySet<string> = new Set([
  'tasks/get',
  'tasks/update',
  'tasks/result',
  'tasks/cancel',
]);

/** The template of a tool or prompt; its own name replaces the aggregate one, in `reference` if the request names it there. */
async function byName(
  request: ExchangeRequest,
  list: 'tools' | 'prompts',
  name: unknown,
  directory: AggregateDirectory,
  client: Client,
  reference?: JsonObject,
): Promise<Destination> {
  const own = typeof name === 'string' ? await directory.ownerOfName(name, list, client) : undefined;
  if (own === undefined)
    return refused(RPC.invalidParams, `Unknown ${list === 'tools' ? 'tool' : 'prompt'}.`);
  const named = reference === undefined ? { name: own.name } : { ref: { ...reference, name: own.name } };
  return {
    kind: 'template',
    template: own.template,
    request: { ...request, params: { ...request.params, ...named } },
  };
}

async function byUri(
  request: ExchangeRequest,
  uri: unknown,
  directory: AggregateDirectory,
  client: Client,
): Promise<Destination> {
  const template = typeof uri === 'string' ? await directory.ownerOfResource(uri, client) : undefined;
  if (template === undefined) return refused(RPC.resourceNotFound, 'Resource not found.');
  return { kind: 'template', template, request };
}

function refused(code: number, message: string): Destination {
  return { kind: 'refused', error: { code, message } };
}
