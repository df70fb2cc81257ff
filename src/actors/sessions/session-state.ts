// The state of one session: its value, its binding, and, while the session is in use, the actor that decides about its states
// (client-session.machine.ts). Without an actor a session has no states: an event changes its value and its binding only. The
// work that follows from a change is in client-session.ts.

import { Actor, createActor } from 'xstate';
import type { SessionValue } from '../../domain/sessions/session-value.ts';
import { SESSION_ACTOR_ID } from '../fleet/root.machine.ts';
import type { Binding } from './binding/binding.ts';
import {
  type ClientSessionActor,
  type ClientSessionContext,
  type ClientSessionEmission,
  clientSessionMachine,
} from './client-session.machine.ts';
import type { SessionCore } from './session-core.ts';
import { type ClientSessionEvent, valueAfter } from './session-transitions.ts';

/** A session as its state sees it. `follow` is called after each change that the session has to follow. */
type FollowingSession = ClientSessionContext['session'] & { follow(emission: ClientSessionEmission): void };

/** The state of one session. It is in one place: in the context of the actor, or here while there is none. */
export class SessionState {
  readonly #session: FollowingSession;
  #present: ClientSessionActor | Pick<SessionCore, 'value' | 'binding'>;

  constructor(session: FollowingSession, value: SessionValue) {
    this.#session = session;
    this.#present = { value, binding: undefined };
  }

  get value(): SessionValue {
    return this.#known.value;
  }
  get binding(): Binding | undefined {
    return this.#known.binding;
  }
  get isOver(): boolean {
    return this.value.endReason !== undefined;
  }

  /** The context of the actor if it is in that state, or in any state; undefined otherwise. */
  contextIn(state?: 'serving' | 'unbound' | 'finishing'): ClientSessionContext | undefined {
    if (!(this.#present instanceof Actor)) return undefined;
    const { value, context } = this.#present.getSnapshot();
    return state === undefined || value === state ? context : undefined;
  }

  /** Changes the session by this event; without effect when the session is over. */
  send(event: ClientSessionEvent): void {
    if (this.#present instanceof Actor) this.#present.send(event);
    else if (!this.isOver) this.#change(this.#present, event);
  }

  /** Makes the actor, unless there is one or the session is over. */
  wake(): void {
    if (this.#present instanceof Actor || this.isOver) return;
    const input = this.#session;
    const { root: parent } = input.deps.fleet;
    const actor = createActor(clientSessionMachine, { id: SESSION_ACTOR_ID, parent, input });
    actor.on('*', (emission) => input.follow(emission)); // one listener: each kind would take a set of its own
    this.#present = actor; // before it starts: it may end synchronously
    actor.start();
  }

  /** Keeps the value and the binding of an actor that has ended. */
  dropActor(): void {
    const { value, binding } = this.#known;
    this.#present = { value, binding };
  }

  #change({ value, binding: from }: Pick<SessionCore, 'value' | 'binding'>, event: ClientSessionEvent): void {
    const binding = event.type === 'bound' ? event.binding : from;
    this.#present = { value: valueAfter(value, event), binding };
    if (event.type === 'bound') this.#session.follow({ type: 'bound', from, stored: value.binding });
    if (event.type === 'end') this.#session.follow({ type: 'ended', isLost: false, failure: undefined });
  }

  get #known(): Pick<SessionCore, 'value' | 'binding'> {
    return this.#present instanceof Actor ? this.#present.getSnapshot().context : this.#present;
  }
}
