// What the parts of a session need of it: SessionHost for its machine, SessionCore for the others; ClientSession
// is both. The parts know only these, because imports in a circle are refused. Source: ADR 302, ADR 345.

import type { Observable } from 'rxjs';
import type { ExchangeRequest } from '../../domain/calls/exchange.ts';
import type { UnsafeMark } from '../../domain/sessions/session-value.ts';
import type { Clock } from '../../domain/time/clock.ts';
import type { AttemptPlan, LocalAnswer } from '../calls/call-route.ts';
import type { ResourceUris } from '../subscriptions/feed.ts';
import type { TemplateGroup } from '../template-group.ts';
import type { Binding } from './binding.ts';
import type { SessionDeps } from './session-deps.ts';
import type { ClientSessionEvent, SessionState } from './session-state.ts';

/** For client-session.machine.ts: what decides about its states, and the search. */
export interface SessionHost extends SessionState {
  readonly deps: Pick<Clock, 'now'>;
  readonly group: TemplateGroup;
  /**
   * The session is a part of one with several templates, which continues: where another session would end, a part
   * begins anew.
   */
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

/** For SessionCalls and SessionRoute, WaitingRequests, SessionMessages and BackendState. */
export interface SessionCore extends SessionState, Pick<SessionHost, 'group' | 'isPart' | 'isListened'> {
  readonly deps: SessionDeps;
  readonly isUnbound: boolean;
  /** The binding, if requests may use it now. */
  readonly usableBinding: Binding | undefined;
  /** The resources whose updates its client wants. */
  readonly uris: ResourceUris;
  /** In its row, or in that of the session of which it is a part; undefined where nothing is stored. */
  readonly mark: UnsafeMark | undefined;
  /** To its actor, while it has one. */
  send(event: ClientSessionEvent): void;
  /** A request found no usable binding, or needs a dedicated conversation; or the client listens at a binding that is gone. */
  requestBinding(needsDedicated: boolean): void;
  /** Cold: emits the next usable binding, once. `needsDedicated`: a dedicated conversation is required. */
  untilBound(needsDedicated: boolean): Observable<Binding>;
  /** Finds a binding for one call, at none of these instances; the session stays at its own. As `find`. */
  findBeside(at: Binding, without: ReadonlySet<string>, signal: AbortSignal): Promise<Binding>;
  /** For requests of `setsBackendState`; undefined for others. */
  backendStatePlan(request: ExchangeRequest, binding: Binding): AttemptPlan | LocalAnswer | undefined;
  /** A request begins: the session has an actor from now on. */
  used(): void;
  callEnded(): void;
}
