// Routes one request to the aggregate: answers lists here, and sends everything else to its template with the names that the
// template uses.

import { defer, from, map, type Observable, of, switchMap } from 'rxjs';
import type { Answer, ExchangeRequest } from '../../domain/exchange.ts';
import { fieldValue, isJsonObject, type JsonFields, JsonText } from '../../domain/json.ts';
import { type JsonRpcError, RPC } from '../../domain/jsonrpc.ts';
import { type ListField, listOf } from '../../domain/mcp.ts';
import type { Client } from '../ports.ts';
import type { AggregateDirectory } from './aggregate-directory.ts';

/** Carries a request to one template. */
export type ToTemplate = (template: string, request: ExchangeRequest) => Observable<Answer>;

/**
 * Answers a request from the lists of all templates, refuses it, or hands it to `toTemplate`. Cold. `bound`: the template of
 * the instance that the request continues with.
 */
export function aggregateExchange(
  request: ExchangeRequest,
  directory: AggregateDirectory,
  client: Client,
  toTemplate: ToTemplate,
  bound?: string,
): Observable<Answer> {
  return defer(() => from(destinationOf(request, directory, client, bound))).pipe(
    switchMap((destination) => {
      switch (destination.kind) {
        case 'list':
          return listed(destination.list, directory, client);
        case 'refused':
          return of(answerHere({ kind: 'error', error: destination.error }));
        case 'template':
          return toTemplate(destination.template, destination.request);
      }
    }),
  );
}

/** An answer that no instance gave. */
export function answerHere(event: Answer['event']): Answer {
  return { event, instanceId: '', serverId: '' };
}

function listed(list: ListField, directory: AggregateDirectory, client: Client): Observable<Answer> {
  return from(directory.list(list, client)).pipe(
    map((items) => answerHere({ kind: 'result', result: JsonText.ofValue({ [list]: items }) })),
  );
}

/** Where a request goes: the lists of all templates answer it, one template does, or it is refused. */
export type Destination =
  | { readonly kind: 'list'; readonly list: ListField }
  | { readonly kind: 'template'; readonly template: string; readonly request: ExchangeRequest }
  | { readonly kind: 'refused'; readonly error: JsonRpcError };

/** Finds the destination. Waits only when a name or a resource has to be looked up. */
export async function destinationOf(
  request: ExchangeRequest,
  directory: AggregateDirectory,
  client: Client,
  bound?: string,
): Promise<Destination> {
  const list = listOf(request.method);
  if (list !== undefined) return { kind: 'list', list };
  switch (request.method) {
    case 'tools/call':
      return byName(request, 'tools', directory, client);
    case 'prompts/get':
      return byName(request, 'prompts', directory, client);
    case 'resources/read':
    case 'resources/subscribe':
    case 'resources/unsubscribe':
      return byResource(request, request.params?.uri, directory, client);
    case 'completion/complete':
      return byReference(request, directory, client);
    default:
      // A request about a task goes to the template that runs it.
      if (bound !== undefined) return { kind: 'template', template: bound, request };
      if (TASK_METHODS.has(request.method)) return refused(RPC.invalidParams, 'Unknown task');
      return refused(RPC.methodNotFound, `${request.method} is not offered for all templates together.`);
  }
}

const TASK_METHODS: ReadonlySet<string> = new Set([
  'tasks/get',
  'tasks/update',
  'tasks/result',
  'tasks/cancel',
]);

async function byName(
  request: ExchangeRequest,
  list: 'tools' | 'prompts',
  directory: AggregateDirectory,
  client: Client,
): Promise<Destination> {
  const { params = {} } = request;
  const name = typeof params.name === 'string' ? params.name : '';
  const own = await directory.ownerOfName(name, list, client);
  if (own === undefined)
    return refused(RPC.invalidParams, `Unknown ${list === 'tools' ? 'tool' : 'prompt'}.`);
  return to(own.template, request, { ...params, name: own.name });
}

async function byResource(
  request: ExchangeRequest,
  uri: unknown,
  directory: AggregateDirectory,
  client: Client,
): Promise<Destination> {
  const template = typeof uri === 'string' ? await directory.ownerOfResource(uri, client) : undefined;
  if (template === undefined) return refused(RPC.resourceNotFound, 'Resource not found.');
  return { kind: 'template', template, request };
}

async function byReference(
  request: ExchangeRequest,
  directory: AggregateDirectory,
  client: Client,
): Promise<Destination> {
  const { params = {} } = request;
  const ref = fieldValue(params.ref);
  const reference = isJsonObject(ref) ? ref : {};
  if (typeof reference.uri === 'string') return byResource(request, reference.uri, directory, client);
  const name = typeof reference.name === 'string' ? reference.name : '';
  const own = await directory.ownerOfName(name, 'prompts', client);
  if (own === undefined) return refused(RPC.invalidParams, 'Unknown prompt.');
  return to(own.template, request, { ...params, ref: { ...reference, name: own.name } });
}

function to(template: string, request: ExchangeRequest, params: JsonFields): Destination {
  return { kind: 'template', template, request: { ...request, params } };
}

function refused(code: number, message: string): Destination {
  return { kind: 'refused', error: { code, message } };
}
