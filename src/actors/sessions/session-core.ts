// The session as its components use it: its machine, SessionCalls, SessionRoute, SessionMessages and BackendState.
// ClientSession implements it. They do not import ClientSession, since circular imports are refused. Source: ADR 419.

import type { Observable } from 'rxjs';
import type { ExchangeRequest } from '../../domain/calls/exchange.ts';
import type { FinalEvent } from '../../domain/calls/exchange-event.ts';
import type { UnsafeMark } from '../../domain/sessions/all-sessions.ts';
import type { SessionValue } from '../../domain/sessions/session-value.ts';
import type { AttemptPlan } from '../calls/call-route.ts';
import type { Tries } from '../calls/tries.ts';
import type { TemplateGroup } from '../fleet/template-group.ts';
import type { Binding } from './binding/binding.ts';
import type { SessionDeps } from './session-deps.ts';
import type { ClientSessionEvent } from './session-transitions.ts';

/** A session with one template, as its components see it. */
export interface SessionCore {
  readonly value: SessionValue;
  /** The present or last binding; undefined before the first one, and after the session was recovered from its row. */
  readonly binding: Binding | undefined;
  readonly deps: SessionDeps;
  readonly group: TemplateGroup;
  /**
   * True for a part of an aggregate session. Where another session would end, a part begins again, because
   * the whole session continues.
   */
  readonly isPart: boolean;
  /** True while the client of the session has an open message stream that needs a binding. */
  readonly needsBindingForStream: boolean;
  /** True while calls are under way at the binding, or between two rounds. */
  readonly isCalling: boolean;
  /** True while calls wait for a binding. */
  readonly hasBindingWaits: boolean;
  /**
   * Finds an instance, and opens what the session needs there. Throws the failure of the last instance.
   * Aborting closes what was opened.
   */
  findBinding(signal: AbortSignal): Promise<Binding>;
  /** The binding, if requests may use it now; undefined otherwise. */
  readonly usableBinding: Binding | undefined;
  /** The URIs of the resources whose updates the client wants. */
  readonly uris: ReadonlySet<string>;
  /**
   * The mark `unsafe` in the stored row: it says that the session made calls that are not safe to repeat. A part of an
   * aggregate session uses the row of the whole session. Undefined when the session is not stored.
   */
  readonly unsafeMark: UnsafeMark | undefined;
  /** Changes the session by this event, in its actor if there is one. Without effect when the session is over. */
  send(event: ClientSessionEvent): void;
  /**
   * Asks the state machine for a usable binding: because a request found none, because a request needs a dedicated
   * conversation, or because a listening client has lost its binding.
   */
  requestBinding(needsDedicated?: boolean): void;
  /** Emits the next usable binding, once; cold. `needsDedicated`: the conversation must be dedicated. Default: it need not. */
  untilBound(needsDedicated?: boolean): Observable<Binding>;
  /**
   * Finds a second binding for one call, for a hedge, by the tries that the call has left. The session itself stays at its
   * binding. Throws and aborts like findBinding.
   */
  findHedgeBinding(tries: Tries, signal: AbortSignal): Promise<Binding>;
  /** How to carry out a request of `setsBackendState`; undefined for all other requests. */
  backendStatePlan(
    request: ExchangeRequest,
    binding: Binding,
  ): AttemptPlan | Observable<FinalEvent> | undefined;
  /** Called when a request begins: marks the session as used, and gives it an actor. */
  used(): void;
  callEnded(): void;
}
