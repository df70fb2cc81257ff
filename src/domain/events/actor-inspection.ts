// The inspection events of a gateway's actors: the parts of xstate's events that tools for xstate read, as plain
// interfaces, so that an embedding program needs no types of xstate.

export interface InspectedActor {
  /** Unique in the process; that of the root is `rootId`. */
  readonly sessionId: string;
  /** State and context as they are now; `value` of a machine's snapshot is its state. */
  getSnapshot(): unknown;
}

/**
 * One step of one actor: `@xstate.actor` when it is created, `@xstate.event` when it gets an event, `@xstate.microstep`,
 * `@xstate.transition` and `@xstate.snapshot` when its state changes, `@xstate.action` for each of its actions.
 */
export interface ActorInspection {
  readonly type: `@xstate.${string}`;
  /** `sessionId` of the root. */
  readonly rootId: string;
  readonly actorRef: InspectedActor;
  /** The event that the step belongs to; not with `@xstate.actor` and `@xstate.action`. */
  readonly event?: { readonly type: string };
  /** The new state; with `@xstate.snapshot`, `@xstate.microstep` and `@xstate.transition`. */
  readonly snapshot?: unknown;
}

/** A function, or an observer such as the `inspect` of Stately's inspector. */
export type ActorInspector = ((event: ActorInspection) => void) | { next?(event: ActorInspection): void };
