// Calls of a view that their user confirms first. A client without a session is asked by the answer and repeats the call, whose
// state says that it was confirmed (modern/modern-affinity.ts); a session is asked on the stream of the call. Source: ADR 241.

import { map, Observable, of } from 'rxjs';
import {
  CONFIRM_MS,
  ConfirmationRequired,
  type ConfirmedTool,
  notConfirmed,
} from '../../../domain/calls/confirmation-required.ts';
import type { ExchangeRequest, SourcedEvent } from '../../../domain/calls/exchange.ts';
import { isJsonObject } from '../../../domain/json/json.ts';
import { type Client, type ClientAnswer, serverRequest } from '../../../domain/mcp/client.ts';
import { isModernVersion } from '../../../domain/mcp/mcp.ts';
import type { Clock } from '../../../domain/time/clock.ts';
import { itemKey } from '../../../domain/views/approval.ts';
import { failure, missingCapabilities } from '../../input-requests.ts';
import { ownAnswer } from '../../own-answers.ts';

interface UnconfirmedCall {
  readonly request: ExchangeRequest;
  readonly client: Client;
  readonly clock: Clock;
  readonly tool: ConfirmedTool;
  readonly carry: () => Observable<SourcedEvent>;
  /** Begins the call again: rights and the view may have changed while its user was asked. */
  readonly again: (request: ExchangeRequest) => Observable<SourcedEvent>;
}

/** Carries the call out if its user has confirmed it; else asks, or says that it cannot. */
export function whenConfirmed(call: UnconfirmedCall): Observable<SourcedEvent> {
  const { request, client, tool, carry } = call;
  const confirmed = itemKey(tool.template, tool.own);
  if (request.confirmed === confirmed) return carry().pipe(map((sourced) => ({ ...sourced, confirmed })));
  const required = new ConfirmationRequired(tool, request.params?.arguments);
  const { protocolVersion, capabilities } = client.profile;
  if (isModernVersion(protocolVersion)) return of(ownAnswer({ kind: 'error', error: required }));
  if (missingCapabilities([required.request], capabilities) !== undefined)
    return of(ownAnswer(failure(request.method, required.message)));
  return askedInSession(call, required);
}

function askedInSession({ request, clock, again }: UnconfirmedCall, required: ConfirmationRequired) {
  return new Observable<SourcedEvent>((subscriber) => {
    const end = (why: string): void => {
      subscriber.next(ownAnswer(failure(request.method, why)));
      subscriber.complete();
    };
    const question = serverRequest(required.request, (reply) => {
      disarm();
      if (subscriber.closed) return;
      const action = actionOf(reply);
      // The deadline of the confirmed call begins now.
      const next = { ...request, confirmed: required.tool, arrivedAtMs: clock.now() };
      if (action === 'accept') subscriber.add(again(next).subscribe(subscriber));
      else end('error' in reply ? `${notConfirmed(action)} ${reply.error.message}` : notConfirmed(action));
    });
    const disarm = clock.alarm(CONFIRM_MS, () => end(notConfirmed(undefined)));
    subscriber.add(disarm);
    subscriber.next(ownAnswer(question));
  });
}

function actionOf(reply: ClientAnswer): unknown {
  return 'result' in reply && isJsonObject(reply.result) ? reply.result.action : undefined;
}
