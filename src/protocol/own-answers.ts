// Answers that the endpoint gives itself, without an instance.

import { type Observable, of } from 'rxjs';
import type { SourcedEvent } from '../domain/calls/exchange.ts';
import { definedFields, type JsonObject } from '../domain/json/json.ts';

/** An event that comes from no instance: its ids are empty. */
export function ownAnswer(event: SourcedEvent['event']): SourcedEvent {
  return { event, instanceId: '', serverId: '' };
}

/** An exchange that answers with an error. */
export function rpcErrorAnswer(code: number, message: string, data?: JsonObject): Observable<SourcedEvent> {
  const error = { code, message, ...definedFields({ data }) };
  return of(ownAnswer({ kind: 'error', error }));
}
