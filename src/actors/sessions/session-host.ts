// What the parts of a session need of it, one interface for each part; ClientSession is all of them. The parts know only these, because imports
// in a circle are refused. Source: ADR 302, ADR 331.

import type { Observable } from 'rxjs';
import type { ExchangeRequest } from '../../domain/calls/exchange.ts';
import type { UnsafeMark } from '../../domain/sessions/session-value.ts';
import type { Clock } from '../../domain/time/clock.ts';
import type { AttemptPlan, LocalAnswer } from '../calls/route.ts';
import type { ResourceUris } from '../subscriptions/feed.ts';
import type { TemplateGroup } from '../template-group.ts';
import type { Binding } from './binding.ts';
import type { SessionServices } from './session-services.ts';
import type { ClientSessionEvent, SessionState } from './session-state.ts';

/** For client-session.machine.ts: what decides about its states, and the search. */
export interface SessionHost extends SessionState {
  readonly deps: Pick<Clock, 'now'>;
  readonly group: TemplateGroup;
  /** The session is a part of one with several templates, which continues: where another session would end, a part begins anew. */
  readonly isPart: boolean;
  /** The client of the session listens. */
  readonly isListened: boolean;
  /** Calls are under way at the binding, or between two rounds there. */
  readonly isCalling: boolean;
  /** Requests wait for a binding. */
  readonly isAwaited: boolean;
  /** Finds an instance, and opens what is needed there. Rejects with the failure. Aborting closes what was opened. */
  find(signal: AbortSignal): Promise<Binding>;
}

/** For WaitingRequests. */
export interface SessionInNeed extends Pick<SessionState, 'value'> {
  readonly deps: Pick<SessionServices, 'isAccepting'>;
  readonly group: TemplateGroup;
  /** A request found no usable binding, or needs a dedicated conversation; or the client listens at a binding that is gone. */
  requestBinding(needsDedicated: boolean): void;
}

/** For SessionMessages. */
export interface ListeningSession
  extends Pick<SessionInNeed, 'requestBinding'>,
    Pick<SessionState, 'binding'> {
  readonly deps: Pick<SessionServices, 'scheduler'>;
  readonly isUnbound: boolean;
  /** The client of the session listens. */
  readonly isListened: boolean;
  /** The resources whose updates its client wants. */
  readonly uris: ResourceUris;
}

/** For ClientState, which changes the value. */
export interface ChangingSession extends SessionState {
  readonly deps: Clock;
  /** To its actor, while it has one. */
  send(event: ClientSessionEvent): void;
}

/** For SessionRoute: where the next attempt of a call may go. */
export interface RoutingSession extends ChangingSession {
  readonly group: TemplateGroup;
  /** As in SessionHost. */
  readonly isPart: boolean;
  /** The binding, if requests may use it now. */
  readonly usableBinding: Binding | undefined;
  /** In its row, or in that of the session of which it is a part; undefined where nothing is stored. */
  readonly mark: UnsafeMark | undefined;
  /** Cold: emits the next usable binding, once. `needsDedicated`: a dedicated conversation is required. */
  untilBound(needsDedicated: boolean): Observable<Binding>;
  /** Finds a binding for one call, at none of these instances; the session stays at its own. As `find`. */
  findBeside(at: Binding, without: ReadonlySet<string>, signal: AbortSignal): Promise<Binding>;
  /** For requests of `setsClientState`; undefined for others. */
  statePlan(request: ExchangeRequest, binding: Binding): AttemptPlan | LocalAnswer | undefined;
}

/** For SessionCalls, which makes a route for each call. */
export interface CallingSession extends RoutingSession {
  readonly deps: Clock & Pick<SessionServices, 'dispatcher'>;
  /** A request begins: the session has an actor from now on. */
  used(): void;
  callEnded(): void;
}
