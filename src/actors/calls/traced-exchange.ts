// The exchange of an attempt inside its span, if its call is traced (`parent`).

import { type Observable, tap } from 'rxjs';
import {
  type ExchangeEvent,
  type ExchangeRequest,
  isFinal,
  type RequestTrace,
} from '../../domain/exchange.ts';
import type { ExchangeHooks, InstanceRef } from '../instances/instance-ref.ts';

/** Like `InstanceRef.exchange`; to be subscribed to once, immediately. `number`: that of the attempt. */
export function tracedExchange(
  parent: RequestTrace | undefined,
  ref: InstanceRef,
  request: ExchangeRequest,
  number: number,
  hooks: ExchangeHooks,
): Observable<ExchangeEvent> {
  if (parent === undefined) return ref.exchange(request, hooks);
  const { template, id: instanceId, definition } = ref;
  const { method, params } = request;
  const { transport } = definition;
  const trace = parent.attempt({ method, params, template, instanceId, transport, number });
  const finished: ExchangeHooks['finished'] = (ending) => {
    trace.ended(ending.error?.code);
    hooks.finished?.(ending);
  };
  return ref
    .exchange({ ...request, trace }, { ...hooks, finished })
    .pipe(tap((event) => isFinal(event) && trace.answered(event)));
}
